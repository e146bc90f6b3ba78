"""The client models by name."""

from __future__ import annotations

from bench.errors import RequestError, unknown
from bench.federation.types import Federation
from bench.nn.base import ClientModel
from bench.nn.cnn import CNN
from bench.nn.gcn import GCN
from bench.nn.hgnn import HGNN, HGNNRelu
from bench.spec import ClientSettings

MODELS: dict[str, type[ClientModel]] = {model.name: model for model in (GCN, HGNN, HGNNRelu, CNN)}


def build_model(settings: ClientSettings, federation: Federation) -> ClientModel:
    """The client model that the settings name, sized for the federation.

    Raises:
        RequestError: there is no such model, or it cannot read this kind of data.
    """
    if settings.model not in MODELS:
        raise unknown("client.model", settings.model, MODELS)
    kind = MODELS[settings.model]
    if kind.family != federation.family:
        fitting = [name for name, model in MODELS.items() if model.family == federation.family]
        raise RequestError(
            f"client.model '{settings.model}' reads {kind.family} data, but {federation.dataset} is "
            f"{federation.family} data: choose {', '.join(fitting)}"
        )
    if settings.batch_size is not None and not kind.batches:
        raise RequestError(
            f"client.batch_size: client.model '{settings.model}' trains on a client's whole graph, "
            f"got {settings.batch_size}; leave it out"
        )
    model = kind(federation.clients[0], federation.classes, settings)
    if settings.batch_size is not None and settings.dropout and model.dropout_widths:
        raise RequestError(
            f"client.model '{settings.model}' has no dropout in mini-batches: set client.dropout=0"
        )
    return model
