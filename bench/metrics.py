"""Metrics other than accuracy, computed from the true and predicted classes of a client's test items.

Functions take counts ``[clients, true classes, predicted classes]`` and return a value of 0 to 1 for each
client; NaN for a client without test items. On one client's items they agree with the scikit-learn functions
of the same names. Each docstring says how cases are decided that this leaves open.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from bench.metric_names import Metric

Counts = NDArray[np.int32]
Values = NDArray[np.float64]


def balanced_accuracy(counts: Counts) -> Values:
    """Mean share of correct items over the classes of the client's test items, ``[clients]``.

    A prediction of always the same class scores 1 / (number of classes of the test items).
    """
    return _mean(_shares(_correct_counts(counts), counts.sum(axis=2)))


def macro_f1(counts: Counts) -> Values:
    """Mean over classes of the harmonic mean of precision and recall, ``[clients]``.

    The mean includes the classes that occur among the client's true or predicted classes. A class without
    correct items scores 0. A class that does not occur is left out (scikit-learn's default).
    """
    return _mean(_shares(2 * _correct_counts(counts), counts.sum(axis=1) + counts.sum(axis=2)))


OF_COUNTS: dict[Metric, Callable[[Counts], Values]] = {
    "macro_f1": macro_f1,
    "balanced_accuracy": balanced_accuracy,
}
"""Metrics with one value a client that follow from its counts."""


def roc_auc(scores: Values, positive: NDArray[np.bool_], clients: NDArray[np.int64], count: int) -> Values:
    """Area under the ROC curve of each of ``count`` clients: how often an item of class 1 scores higher than
    one of class 0; ties count half (Mann and Whitney 1947). NaN for a client with items of only one class.

    All arrays are ``[items]``: the score of class 1, whether class 1 is true, and the client's number.
    """
    order = np.lexsort((scores, clients))
    scores, positive, clients = scores[order], positive[order], clients[order]
    items = np.bincount(clients, minlength=count)
    first_ranks = np.cumsum(items) - items
    change = (np.diff(scores) != 0) | (np.diff(clients) != 0)
    starts = np.flatnonzero(np.concatenate([[True], change])[: len(scores)])
    lengths = np.diff(np.append(starts, len(scores)))
    ranks = np.repeat(starts + (lengths + 1) / 2, lengths) - first_ranks[clients]
    positives = np.bincount(clients, positive, count)
    ordered_pairs = np.bincount(clients, ranks * positive, count) - positives * (positives + 1) / 2
    return _shares(ordered_pairs, positives * (items - positives))


def _correct_counts(counts: Counts) -> NDArray[np.int64]:
    return np.diagonal(counts, axis1=1, axis2=2).astype(np.int64)


def _shares(parts: NDArray[np.number], totals: NDArray[np.number]) -> Values:
    """Divide parts by totals; NaN where the total is 0."""
    shares: Values = np.full(np.shape(parts), np.nan)
    np.divide(parts, totals, out=shares, where=np.asarray(totals) > 0)
    return shares


def _mean(values: Values) -> Values:
    """Mean over the last axis without NaN; NaN if all values are NaN."""
    is_number = ~np.isnan(values)
    return _shares(np.where(is_number, values, 0.0).sum(axis=-1), is_number.sum(axis=-1))
