"""The most frequent class of a client's training items, by hand."""

from __future__ import annotations

import numpy as np
from toy_federations import make_spec

from bench.engine.execute import run
from bench.federation.types import Federation


def test_majority_counts_by_hand(tiny: Federation) -> None:
    # the first client trains on one item of class 0 and one of class 1: the lowest of the two wins
    result = run(make_spec("majority", tiny, rounds=1), tiny)
    assert result.correct[("trained", "train")].tolist() == [[1, 1]]
    assert result.correct[("trained", "val")].tolist() == [[0, 1]]
    assert result.correct[("trained", "test")].tolist() == [[1, 0]]
    assert np.array_equal(result.correct[("received", "test")], result.correct[("trained", "test")])
