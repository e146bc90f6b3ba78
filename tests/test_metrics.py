"""Metrics from counts by class, against scikit-learn and against numbers by hand."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.metrics import balanced_accuracy_score, f1_score, roc_auc_score

from bench.metrics import OF_COUNTS, balanced_accuracy, macro_f1, roc_auc

CLASSES = 5

ORACLES: dict[str, Callable[..., float]] = {
    "macro_f1": lambda true, said: f1_score(true, said, average="macro", zero_division=0),
    "balanced_accuracy": balanced_accuracy_score,
}


Clients = list[tuple[NDArray[np.int64], NDArray[np.int64]]]
"""True and predicted classes of each."""


def counted(clients: Clients, classes: int) -> NDArray[np.int32]:
    """Counts of clients' true and predicted classes, one item at a time."""
    counts = np.zeros((len(clients), classes, classes), np.int32)
    for client, (true, said) in enumerate(clients):
        for pair in zip(true, said, strict=True):
            counts[(client, *pair)] += 1
    return counts


@pytest.fixture(scope="module")
def clients() -> Clients:
    """Forty clients of 1 to 30 items, of whom most lack some class on one side or on both."""
    rng = np.random.default_rng(3)
    values = []
    for size in rng.integers(1, 31, 40):
        known, guessed = (rng.choice(CLASSES, rng.integers(1, CLASSES + 1)) for _ in range(2))
        true = rng.choice(known, size)
        values.append((true, np.where(rng.random(size) < 0.5, true, rng.choice(guessed, size))))
    return values


@pytest.mark.parametrize("metric", OF_COUNTS)
def test_agrees_with_scikit_learn_client_by_client(metric: str, clients: Clients) -> None:
    result = OF_COUNTS[metric](counted(clients, CLASSES))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of classes that are predicted and do not occur
        expected = [ORACLES[metric](true, said) for true, said in clients]
    np.testing.assert_allclose(result, expected, rtol=1e-12)


def test_classes_that_a_client_lacks() -> None:
    """Client 0 has the first class alone and is right, client 1 calls one of its two the second, which it
    lacks: its F1 is (2/3 + 0) / 2; client 2 has no item.
    """
    counts = np.array([[[4, 0], [0, 0]], [[1, 1], [0, 0]], [[0, 0], [0, 0]]], np.int32)
    np.testing.assert_allclose(macro_f1(counts), [1.0, 1 / 3, np.nan])
    np.testing.assert_allclose(balanced_accuracy(counts), [1.0, 0.5, np.nan])


def test_area_under_the_roc_curve() -> None:
    rng = np.random.default_rng(5)
    clients = rng.integers(0, 9, 300)
    scores = rng.integers(0, 12, 300) / 4  # with ties
    positive = rng.random(300) < scores / 4
    positive[clients == 2], positive[clients == 4] = True, False
    scores[clients == 6] = 0.5  # an area of a half
    keep = clients != 7  # a client without items
    result = roc_auc(scores[keep], positive[keep], clients[keep], 10)
    for client in range(10):
        own = keep & (clients == client)
        if len(set(positive[own])) < 2:
            assert np.isnan(result[client])
            assert client in (2, 4, 7, 9)
        else:
            assert result[client] == pytest.approx(roc_auc_score(positive[own], scores[own]), rel=1e-12)
    assert result[6] == 0.5
    assert len(roc_auc(np.zeros(0), np.zeros(0, bool), np.zeros(0, np.int64), 2)) == 2
