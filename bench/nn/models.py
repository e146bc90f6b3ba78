"""Finds the client model that a run's settings name."""

from __future__ import annotations

from bench.data import Family
from bench.errors import RequestError
from bench.federation.types import Federation
from bench.nn.base import CLIENT_MODELS, ClientModel
from bench.spec import ClientSettings


def check_model(settings: ClientSettings, dataset: str, family: Family) -> type[ClientModel]:
    """Find the client model that the settings name, and check that it fits the data and the settings.

    Raises:
        RequestError: there is no such model, it cannot read this kind of data, or it cannot be trained as
            asked.
    """
    kind = CLIENT_MODELS.named(settings.model)
    if family not in kind.families:
        fitting = [name for name, model in CLIENT_MODELS.all().items() if family in model.families]
        raise RequestError(
            f"client.model '{settings.model}' reads {' or '.join(kind.families)} data, but {dataset} is "
            f"{family} data: "
            f"choose {', '.join(fitting)}"
        )
    if settings.batch_size is not None and not kind.batches:
        raise RequestError(
            f"client.batch_size: client.model '{settings.model}' trains on all of a client's items "
            f"together, got {settings.batch_size}; leave it out"
        )
    if settings.batch_size is None and kind.normalises:
        raise RequestError(
            f"client.batch_size: client.model '{settings.model}' normalises by the statistics of a batch, "
            f"got none: set client.batch_size=64"
        )
    return kind


def build_model(settings: ClientSettings, federation: Federation) -> ClientModel:
    """Build the client model that the settings name for a federation. See ``check_model``."""
    kind = check_model(settings, federation.dataset, federation.family)
    model = kind(federation.clients, federation.classes, settings)
    if settings.batch_size is not None and settings.dropout and model.dropout_widths:
        raise RequestError(
            f"client.model '{settings.model}' has no dropout in mini-batches: set client.dropout=0"
        )
    return model
