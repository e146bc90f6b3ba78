"""The stacked engine against one client after the other, and against a loop written out here."""

from __future__ import annotations

import numpy as np
import pytest
from toy_federations import furthest, make_spec, play, random_federation

from bench.errors import NotApplicableError
from bench.federation.types import Federation
from bench.timing.reference import SequentialClients


@pytest.fixture(scope="module", params=["sparse", "dense"])
def some_federation(request: pytest.FixtureRequest) -> Federation:
    return random_federation(dense=request.param == "dense", seed=3)


@pytest.mark.parametrize("method", ["fedavg", "local", "fedper"])
def test_blocks_equal_one_client_after_the_other(some_federation: Federation, method: str) -> None:
    spec = make_spec(method, some_federation, rounds=4, local_epochs=3, client={"dropout": 0.5})
    sequential = play(spec, some_federation, clients_type=SequentialClients)
    for block_size in (1, 2, 3, 5):
        stacked = play(spec, some_federation, block_size=block_size)
        assert furthest(stacked.own, sequential.own) < 1e-5
        for key, counts in stacked.correct().items():
            assert np.array_equal(counts, sequential.correct()[key]), key


def test_extra_losses_are_not_for_the_reference(some_federation: Federation) -> None:
    spec = make_spec("fedprox", some_federation)
    with pytest.raises(NotApplicableError, match="cross-entropy only"):
        play(spec, some_federation, clients_type=SequentialClients)
