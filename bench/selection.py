"""Rules that choose a round after the run, from the stored counts of correct predictions.

A rule takes ``[rounds, clients]`` arrays of correct counts and returns the row to read for each client. Only
``best_val`` and ``client_best_val`` are honest. ``best_test`` reproduces the numbers of some released code,
and tables always label it.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Counts = NDArray[np.int32]
Rule = Callable[[Counts, NDArray[np.int32], Counts, NDArray[np.int32]], NDArray[np.int64]]


def client_mean(correct: Counts, samples: NDArray[np.int32]) -> NDArray[np.float64]:
    """Mean accuracy of each round over the clients that have samples, ``[rounds]``; 0 if none has."""
    has_samples = samples > 0
    if not has_samples.any():
        return np.zeros(len(correct))
    mean: NDArray[np.float64] = (correct[:, has_samples] / samples[has_samples]).mean(axis=1)
    return mean


RULES: dict[str, Rule] = {
    "best_val": lambda val, n_val, test, n_test: _all(client_mean(val, n_val).argmax(), val),
    "last": lambda val, n_val, test, n_test: _all(len(val) - 1, val),
    "best_test": lambda val, n_val, test, n_test: _all(client_mean(test, n_test).argmax(), val),
    "client_best_val": lambda val, n_val, test, n_test: val.argmax(axis=0).astype(np.int64),
}
"""Name of a rule -> function(val, val samples, test, test samples) -> row to read for each client.

``best_val``: first row of the best mean validation accuracy over clients. ``last``: the last row.
``best_test``: first row of the best mean test accuracy (released FedSheafHN code). ``client_best_val``:
each client's own first row of best validation accuracy (released FedHGN code).
"""


def _all(row: int | np.intp, counts: Counts) -> NDArray[np.int64]:
    """The same row for all clients."""
    return np.full(counts.shape[1], row, np.int64)
