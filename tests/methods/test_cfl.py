"""CFL: when clusters are split and how, and what their models are."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from toy_federations import copied, make_spec, random_federation

from bench.engine.method import Message
from bench.engine.run import Run
from bench.federation.types import Federation
from bench.methods.cfl import CFL

ALWAYS = {"eps1": 1e9, "eps2": 0.0, "start_round": 0}
"""Every cluster that is large enough is split in every round."""


def six() -> Federation:
    return random_federation((9, 12, 14, 11, 10, 13), isolated=0)


def cfl(federation: Federation, **hyper: Any) -> Run:
    it = Run(make_spec("cfl", federation, hyper=hyper), federation)
    assert isinstance(it.method, CFL)
    return it


def play_updates(it: Run, updates: list[list[float]], round: int = 0, who: list[int] | None = None) -> Tensor:
    """A round in which clients change the head's bias alone; returns the models' biases before it."""
    it.method.round = round
    received = copied(it.method.broadcast().model)
    everybody = torch.tensor(who) if who is not None else torch.arange(len(updates))
    here = {name: value[everybody] for name, value in received.items()}
    trained = copied(here)
    trained["head.bias"] += torch.tensor(updates)
    it.method.aggregate(everybody, here, Message(trained))
    return received["head.bias"]


def parts(it: Run, round: int = 1) -> set[frozenset[int]]:
    """The clusters behind the models that are sent."""
    it.method.round = round
    it.method.broadcast()
    weights = it.method.records["collaboration"]
    assert torch.allclose(weights.sum(dim=1), torch.ones(len(weights)))
    clusters = {frozenset(torch.nonzero(row).flatten().tolist()) for row in weights}
    for row in weights:
        assert torch.allclose(row[row > 0], torch.full_like(row[row > 0], 1 / int((row > 0).sum())))
    return clusters


ONE, OTHER = [1.0, 0.1, 0.0], [-1.0, 0.2, 0.0]
SPLIT = {frozenset({0, 2, 4}), frozenset({1, 3, 5})}


def test_two_obvious_groups_are_split_and_have_models_of_their_own() -> None:
    it = cfl(six(), **ALWAYS)
    bias = play_updates(it, [ONE, OTHER] * 3)
    assert parts(it) == SPLIT
    sent = it.method.broadcast().model
    moved = sent["head.bias"] - bias
    assert torch.allclose(moved, torch.tensor([ONE, OTHER] * 3), atol=1e-6)
    common = it.method.task.common()
    assert torch.equal(sent["conv1.weight"], common["conv1.weight"])


def test_clusters_are_split_again_but_not_below_the_smallest_size() -> None:
    """Groups of four and two: the four are more than two clients, and split; the two and halves stay."""
    it = cfl(six(), **ALWAYS, min_cluster=2)
    play_updates(it, [ONE, ONE, ONE, ONE, OTHER, OTHER])
    assert parts(it) == {frozenset({0, 1, 2, 3}), frozenset({4, 5})}
    play_updates(it, [ONE, ONE, OTHER, OTHER, ONE, OTHER], round=1)
    split = {frozenset({0, 1}), frozenset({2, 3}), frozenset({4, 5})}
    assert parts(it, 2) == split
    play_updates(it, [ONE, OTHER, ONE, OTHER, ONE, OTHER], round=2)
    assert parts(it, 3) == split
    whole = cfl(six(), **ALWAYS, min_cluster=6)
    play_updates(whole, [ONE, OTHER] * 3)
    assert parts(whole) == {frozenset(range(6))}


@pytest.mark.parametrize(
    ("eps1", "eps2", "split"),
    [(0.5, 0.5, True), (0.1, 0.5, False), (0.5, 1.1, False)],
    ids=["between", "the mean is too long", "no update is long enough"],
)
def test_both_thresholds_decide(eps1: float, eps2: float, split: bool) -> None:
    """The mean of ONE and OTHER is (0, .15, 0), and the longest has sqrt(1.04)."""
    it = cfl(six(), eps1=eps1, eps2=eps2, start_round=0)
    play_updates(it, [ONE, OTHER] * 3)
    assert parts(it) == (SPLIT if split else {frozenset(range(6))})
    kept = {name: torch.from_numpy(value) for name, value in it.artefacts().items()}
    assert torch.allclose(kept["mean_norm_by_round"], torch.full((1, 6), 0.15), atol=1e-5)
    assert torch.allclose(kept["largest_norm_by_round"], torch.full((1, 6), 1.04**0.5), atol=1e-5)


def test_norms_are_those_of_the_clusters_before_a_split() -> None:
    it = cfl(six(), **ALWAYS)
    play_updates(it, [ONE, OTHER] * 3)
    play_updates(it, [[3.0, 0.0, 0.0], [0.0, 0.0, 2.0]] * 3, round=1)
    norms = {name: torch.from_numpy(value) for name, value in it.artefacts().items()}
    assert torch.allclose(norms["mean_norm_by_round"][1], torch.tensor([3.0, 2.0] * 3), atol=1e-5)
    assert torch.allclose(norms["largest_norm_by_round"][1], torch.tensor([3.0, 2.0] * 3), atol=1e-5)


def test_complete_linkage_is_not_single_linkage() -> None:
    """Single linkage would cut a chain of directions at its widest gap, before the last one.

    Complete linkage joins the pairs 30, 33 and 41 degrees apart, then the first two pairs (95 degrees
    at most, the last two have 108).
    """
    degrees = torch.tensor([0.0, 30.0, 62.0, 95.0, 129.0, 170.0]).deg2rad()
    it = cfl(six(), **ALWAYS)
    play_updates(it, torch.stack([degrees.cos(), degrees.sin(), 0 * degrees], dim=1).tolist())
    assert parts(it) == {frozenset({0, 1, 2, 3}), frozenset({4, 5})}


@pytest.mark.parametrize(("rounds", "first"), [(3, 1), (15, 1), (40, 4), (200, 20)])
def test_splits_start_after_a_tenth_of_the_rounds(rounds: int, first: int) -> None:
    toy = six()
    spec = make_spec("cfl", toy, rounds=rounds, hyper={"eps1": 1e9, "eps2": 0.0})
    it = Run(spec, toy)
    play_updates(it, [ONE, OTHER] * 3, round=first - 1)
    assert parts(it, first) == {frozenset(range(6))}
    play_updates(it, [ONE, OTHER] * 3, round=first)
    assert parts(it, first + 1) == SPLIT


def test_the_absent_share_their_clusters_model() -> None:
    """Means are of those who took part; an absent client splits by the update of its last round."""
    it = cfl(six(), **{**ALWAYS, "start_round": 1, "min_cluster": 3})
    start = play_updates(it, [ONE, OTHER] * 3)
    play_updates(it, [ONE, ONE, OTHER], round=1, who=[0, 2, 3])
    assert parts(it, 2) == SPLIT
    first = torch.tensor([ONE, OTHER]).mean(dim=0)
    moved = it.method.broadcast().model["head.bias"] - start
    assert torch.allclose(moved, first + torch.tensor([ONE, OTHER] * 3), atol=1e-6)
    bias = it.method.broadcast().model["head.bias"].clone()
    play_updates(it, [ONE], round=2, who=[4])
    moved = it.method.broadcast().model["head.bias"] - bias
    assert torch.allclose(moved, torch.tensor([ONE, [0.0, 0.0, 0.0]] * 3), atol=1e-6)


def test_clients_that_changed_nothing_are_clustered_all_the_same() -> None:
    it = cfl(six(), **ALWAYS)
    play_updates(it, [ONE, [0.0, 0.0, 0.0], OTHER, [0.0, 0.0, 0.0], ONE, OTHER])
    assert len(parts(it)) == 2
    assert all(torch.isfinite(value).all() for value in it.method.broadcast().model.values())
