"""The result of a run: plain arrays and numbers, without torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.engine.states import State


@dataclass(frozen=True)
class Code:
    """The code that makes a run: declared versions of its numbers, and a hash of its sources."""

    method_numerics: int
    engine_numerics: int
    source: str


@dataclass(eq=False)
class RunResult:
    """The outcome of one run. Only a run that came to its end has numbers.

    Attributes:
        correct: by stage and split the numbers of correct predictions, int32 ``[rows, clients]``. There
            is one row a round; one row a local epoch for ``trained`` with ``protocol.evaluate =
            "epoch"``.
        samples: by split the numbers of items, int32 ``[clients]``.
        confusion: by stage and rule the test items by true and predicted class at the rounds that the
            rule selects, int32 ``[clients, classes, classes]``.
        roc_auc: by stage and rule the areas under the ROC curve at these rounds, float64 ``[clients]``;
            NaN where there is none (see ``bench.engine.evaluation``).
        selected: by stage and rule the row that is read of each client, from 0, int64 ``[clients]``; empty if
            accuracies choose it.
        loss: the mean training loss over clients, by round.
        seconds: of ``client``, ``server``, ``evaluation`` and ``total``.
        bytes_up, bytes_down: summed over clients and rounds.
        code: the code that the process had loaded.
        environment: the machine that made the run (``runner.workers.describe``); empty where it was lost.
        started: when the run was begun, UTC without a zone.
        client_epochs: the passes over a client's training items, as a mean over clients, also of a run
            that diverged.
    """

    state: State
    reason: str = ""
    traceback: str = ""
    correct: dict[tuple[str, str], NDArray[np.int32]] = field(default_factory=dict)
    samples: dict[str, NDArray[np.int32]] = field(default_factory=dict)
    confusion: dict[tuple[str, str], NDArray[np.int32]] = field(default_factory=dict)
    roc_auc: dict[tuple[str, str], NDArray[np.float64]] = field(default_factory=dict)
    selected: dict[tuple[str, str], NDArray[np.int64]] = field(default_factory=dict)
    loss: NDArray[np.float32] = field(default_factory=lambda: np.zeros(0, np.float32))
    seconds: dict[str, float] = field(default_factory=dict)
    peak_memory: int = 0
    client_epochs: float = 0.0
    bytes_up: int = 0
    bytes_down: int = 0
    device: str = "cpu"
    partition_hash: str = ""
    artefacts: dict[str, NDArray[Any]] = field(default_factory=dict)
    code: Code | None = None
    environment: Mapping[str, Any] = field(default_factory=dict)
    started: datetime | None = None

    def __post_init__(self) -> None:
        self.reason, self.traceback = _printable(self.reason), _printable(self.traceback)


def _printable(text: str) -> str:
    """Escape NUL and lone surrogates, which some terminals and databases do not accept."""
    return text.replace("\0", r"\x00").encode(errors="backslashreplace").decode()
