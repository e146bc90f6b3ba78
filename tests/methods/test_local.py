"""Training alone: one long training, and what federated methods of one client are."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from toy_federations import furthest, make_spec, permuted, play, same_counts

from bench.engine.run import Run
from bench.federation.types import Federation


@pytest.mark.parametrize("method", ["fedavg", "fedper"])
def test_one_client_alone_trains_as_local(federation: Federation, method: str) -> None:
    one = permuted(federation, [2])
    alone = play(make_spec("local", one, initial="common", rounds=4), one)
    federated = play(make_spec(method, one, initial="common", rounds=4), one)
    assert furthest(alone.own, federated.own) < 1e-6
    assert same_counts(alone, federated)


def test_local_is_one_long_training(federation: Federation) -> None:
    """Without dropout, R rounds of E epochs are R x E steps of the same optimiser."""
    calm = {"dropout": 0.0}
    rounds = play(make_spec("local", federation, rounds=4, local_epochs=3, client=calm), federation)
    whole = play(make_spec("local", federation, rounds=1, local_epochs=12, client=calm), federation)
    assert furthest(rounds.own, whole.own) < 1e-5
    first, last = (rounds.correct()[("received", "test")], rounds.correct()[("trained", "test")])
    assert np.array_equal(first[1:], last[:-1])


def test_local_models_start_apart_unless_asked_to_be_common(federation: Federation) -> None:
    own = Run(make_spec("local", federation), federation).own
    assert not torch.equal(own["conv1.weight"][0], own["conv1.weight"][1])
    common = Run(make_spec("local", federation, initial="common"), federation).own
    assert all((value == value[:1]).all() for value in common.values())
