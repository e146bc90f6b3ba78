"""What FedAGHN's case study measures: how much a client takes of itself, of similar clients and of others."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bench.errors import RequestError
from bench.federation.scenarios import parse
from bench.studies.measures import MIXED, Measure
from bench.studies.members import Members

STAGES = {"First": None, "Prior": 6, "Middle": 2, "Final": 1}
"""Stage -> the part of the best round at which it is; First is the first round that depends on data."""

EACH_SIDE = 3
"""Modules that are shallow, and that are deep."""

LAYERS = {"all": slice(None), "shallow": slice(EACH_SIDE), "deep": slice(-EACH_SIDE, None)}
"""Name of some layers -> which they are."""

SLACK = 1e-4
"""By how much the weights of a client may miss their sum of 1: they are kept as float32."""


class Shares(NamedTuple):
    """Mean weights over clients: of a client itself, of one of its group, and of one of another group."""

    self: float
    similar: float
    other: float


def shares(weights: NDArray[np.floating], groups: NDArray[np.int64]) -> Shares:
    """How clients weigh themselves, each of their group and each of the others.

    ``weights`` are matrices ``[..., clients, clients]``, averaged over all but the last two axes; ``groups``
    says which group a client belongs to, each of the same size g: Self + (g - 1) Similar + (clients - g)
    Other is 1.

    Raises:
        ValueError: the weights of a client do not sum to 1.
    """
    matrix = np.asarray(weights, np.float64).reshape(-1, *weights.shape[-2:]).mean(axis=0)
    if not np.allclose(matrix.sum(axis=1), 1.0, atol=SLACK, rtol=0.0):
        raise ValueError("the weights of a client do not sum to 1")
    same_group = groups[:, None] == groups[None, :]
    diagonal = np.eye(len(groups), dtype=bool)
    return Shares(*(float(matrix[mask].mean()) for mask in (diagonal, same_group & ~diagonal, ~same_group)))


def stage_round(stage: str, best_round: int) -> int:
    """The round of a stage, counted from 0, where ``best_round`` is the best one; 1 at least."""
    part = STAGES[stage]
    return 1 if part is None else max(1, best_round // part)


def _stage_rounds(members: Members) -> pd.Series[int]:
    """The round of the stage that is the point (else Final), of every member with a curve."""
    rounds = members.best_rounds()
    stages = members.rows["point"].where(members.rows["point"].isin(list(STAGES)), "Final").loc[rounds.index]
    return pd.Series(map(stage_round, stages, rounds), rounds.index, dtype=int)


def _shares(members: Members, layers: str) -> pd.Series[Any]:
    """The shares of every member that keeps its weights; one matrix for all layers is that of each."""
    kept, rounds = members.artefacts(MIXED), _stage_rounds(members)
    found = {}
    for member in kept.index.intersection(rounds.index):
        weights_by_round, round, row = kept[member], rounds[member], members.rows.loc[member]
        groups = parse(row["scenario"]).groups(row["clients"])
        if groups is None or len(weights_by_round) <= round:
            continue
        weights = weights_by_round[round]
        try:
            found[member] = shares(weights if weights.ndim == 2 else weights[LAYERS[layers]], groups)
        except ValueError as error:
            raise RequestError(f"run {row['run']}: {MIXED}: {error}") from None
    return pd.Series(found, dtype=object)


PAIRS = {
    "self": "the weight of a client's own model in the mixture that it starts from",
    "similar": "the mean weight of another client of its group",
    "other": "the mean weight of a client of another group",
}


def _share(pair: str, layers: str) -> Measure:
    def shares_of(members: Members) -> pd.Series[float]:
        return _shares(members, layers).map(lambda share: getattr(share, pair)).astype(float)

    suffix = "" if layers == "all" else f", {layers}"
    return Measure(
        pair if layers == "all" else f"{pair}_{layers}",
        f"{pair.capitalize()}{suffix}",
        f"{PAIRS[pair]}, mean over clients and {layers} layers, at the round of the stage",
        shares_of,
        metric="collaboration_weight",
        printed=f"layers={layers};pair={pair}",
        digits=4,
        not_comparable_reason="a share of a mixture: tolerances are made for accuracies",
        by_reading=False,
    )


MEASURES = (
    *(_share(pair, layers) for layers in LAYERS for pair in PAIRS),
    Measure(
        "stage_round",
        "Round",
        "the round of the stage, counted from 0",
        lambda members: _stage_rounds(members).astype(float),
        metric="stage_round",
        digits=1,
        by_reading=False,
    ),
)
"""Beside those of any study."""
