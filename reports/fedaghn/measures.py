"""What FedAGHN's case study measures: how much a client takes of itself, of similar clients and of others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bench.federation.scenarios import parse
from bench.studies.measures import Measure
from bench.studies.members import Members

STAGES = {"First": None, "Prior": 6, "Middle": 2, "Final": 1}
"""Stage -> the part of the best round at which it is; First is the first round that depends on data."""

LAYERS = {"all": slice(None), "shallow": slice(3), "deep": slice(-3, None)}
"""Name of some layers -> which they are."""

PAIRS = {
    "self": "the weight of a client's own model in the mixture that it starts from",
    "similar": "the mean weight of another client of its group",
    "other": "the mean weight of a client of another group",
}
"""Whose models clients weigh -> what the mean weight over clients is."""


def shares(weights: NDArray[np.floating], groups: NDArray[np.int64]) -> dict[str, float]:
    """How clients weigh themselves, each of their group and each of the others (``PAIRS``).

    ``weights`` are matrices ``[..., clients, clients]``, averaged over all but the last two axes; ``groups``
    says which group a client belongs to, each of the same size g: self + (g - 1) similar + (clients - g)
    other is 1.
    """
    matrix = np.asarray(weights, np.float64).reshape(-1, *weights.shape[-2:]).mean(axis=0)
    same_group = groups[:, None] == groups[None, :]
    diagonal = np.eye(len(groups), dtype=bool)
    masks = {"self": diagonal, "similar": same_group & ~diagonal, "other": ~same_group}
    return {pair: float(matrix[mask].mean()) for pair, mask in masks.items()}


def stage_round(stage: str, best_round: int) -> int:
    """The round of a stage, counted from 0, where ``best_round`` is the best one; 1 at least."""
    part = STAGES[stage]
    return 1 if part is None else max(1, best_round // part)


def best_rounds(members: Members) -> pd.Series[int]:
    """The row of the curve, from 0, that the rule reads, by member: the one row with the counts that it
    reads of every client. Where several have these, it can't be told.
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
    """The round of the stage that is the point (else Final), of every member with a curve."""
    rounds = best_rounds(members)
    stages = members.rows["point"].where(members.rows["point"].isin(list(STAGES)), "Final").loc[rounds.index]
    return pd.Series(map(stage_round, stages, rounds), rounds.index, dtype=int)


def _shares(members: Members, layers: str, pair: str) -> pd.Series[float]:
    """A share of every member that keeps its weights by round, ``[rounds, clients, clients]`` or
    ``[rounds, layers, clients, clients]``; one matrix for all layers is that of each.
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
"""Beside those of any study."""
