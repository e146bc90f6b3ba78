"""Measures of FedAGHN's case study: a client's weights on itself, on similar clients and on other clients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bench.federation.scenarios import parse
from bench.studies.measures import Measure
from bench.studies.members import Members

STAGES = {"First": None, "Prior": 6, "Middle": 2, "Final": 1}
"""Stage -> divisor of the best round; None for First, which is the first round that depends on data."""

LAYERS = {"all": slice(None), "shallow": slice(3), "deep": slice(-3, None)}
"""Name of a group of layers -> slice of the layers."""

PAIRS = {
    "self": "the weight of a client's own model in the mixture that it starts from",
    "similar": "the mean weight of another client of its group",
    "other": "the mean weight of a client of another group",
}
"""Pair of clients -> description of its weight, which is averaged over clients."""


def shares(weights: NDArray[np.floating], groups: NDArray[np.int64]) -> dict[str, float]:
    """Mean weight of a client on itself, on a client of its group, and on another client (``PAIRS``).

    ``weights`` ``[..., clients, clients]`` is averaged over all axes but the last two. ``groups`` gives the
    group of each client. If all groups have the same size g, self + (g - 1) similar + (clients - g) other
    is 1.
    """
    matrix = np.asarray(weights, np.float64).reshape(-1, *weights.shape[-2:]).mean(axis=0)
    same_group = groups[:, None] == groups[None, :]
    diagonal = np.eye(len(groups), dtype=bool)
    masks = {"self": diagonal, "similar": same_group & ~diagonal, "other": ~same_group}
    return {pair: float(matrix[mask].mean()) for pair, mask in masks.items()}


def stage_round(stage: str, best_round: int) -> int:
    """The round of a stage, at least 1. The stage's round and ``best_round`` are counted from 0."""
    part = STAGES[stage]
    return 1 if part is None else max(1, best_round // part)


def best_rounds(members: Members) -> pd.Series[int]:
    """The row of the curve, from 0, that the rule reads, by member. It is the row in which all clients have
    the correct counts that the rule reads. Unless exactly one row matches, the member is left out.
    """
    curves = members.source.curves(members.rows["run"].unique().tolist(), "test")
    test = members.test[members.test["run"].isin(members.rows["run"])]
    read: dict[Any, pd.DataFrame] = dict(list(test.groupby("run")))
    found = {}
    for run, rows in read.items():
        if (run, members.stage) in curves:
            counts = np.rint((rows["value"] * rows["samples"]).to_numpy())
            is_read = (curves[run, members.stage][:, rows["client"].to_numpy()] == counts).all(axis=1)
            if is_read.sum() == 1:
                found[run] = int(is_read.argmax())
    return members.rows["run"].map(found).dropna().astype(int)


def _stage_rounds(members: Members) -> pd.Series[int]:
    """The round of the stage of every member with a curve. The point names the stage; else it is Final."""
    rounds = best_rounds(members)
    stages = members.rows["point"].where(members.rows["point"].isin(list(STAGES)), "Final").loc[rounds.index]
    return pd.Series(map(stage_round, stages, rounds), rounds.index, dtype=int)


def _shares(members: Members, layers: str, pair: str) -> pd.Series[float]:
    """A mean weight of every member with stored weights, ``[rounds, clients, clients]`` or
    ``[rounds, layers, clients, clients]``. Without an axis of layers, the matrix stands for each layer.
    """
    kept, rounds = members.artefacts("collaboration_by_round"), _stage_rounds(members)
    found = {}
    for member in kept.index.intersection(rounds.index):
        weights_by_round, round, row = kept[member], rounds[member], members.rows.loc[member]
        groups = parse(row["scenario"]).groups(row["clients"])
        if groups is not None and round < len(weights_by_round):
            weights = weights_by_round[round]
            found[member] = shares(weights if weights.ndim == 2 else weights[LAYERS[layers]], groups)[pair]
    return pd.Series(found, dtype=float)


def _share(pair: str, layers: str) -> Measure:
    is_whole = layers == "all"
    return Measure(
        pair if is_whole else f"{pair}_{layers}",
        pair.capitalize() + ("" if is_whole else f", {layers}"),
        f"{PAIRS[pair]}, mean over clients and {layers} layers, at the round of the stage",
        lambda members: _shares(members, layers, pair),
        metric="collaboration_weight",
        printed=f"layers={layers};pair={pair}",
        digits=4,
        not_comparable_reason="a share of a mixture: tolerances are made for accuracies",
    )


MEASURES = (
    *(_share(pair, layers) for layers in LAYERS for pair in PAIRS),
    Measure(
        "stage_round",
        "Round",
        "the round of the stage, counted from 0",
        lambda members: _stage_rounds(members).astype(float),
        digits=1,
    ),
)
"""Measures of this study, in addition to the measures of all studies."""
