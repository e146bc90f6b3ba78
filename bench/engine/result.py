"""What the engine hands over when a run ends: plain arrays and numbers, no torch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.engine.states import State


@dataclass(frozen=True)
class Code:
    """Which code makes a run: declared versions of its numbers, and a hash over its sources."""

    method_numerics: int
    engine_numerics: int
    source: str


@dataclass(eq=False)
class RunResult:
    """The outcome of one run.

    ``correct[stage, split]`` is an int32 array ``[rows, clients]`` of correct predictions, one row a
    round (for ``trained`` under ``protocol.evaluate = "epoch"``: one row a local epoch);
    ``samples[split]`` is int32 ``[clients]``. ``confusion[stage, rule]`` are the test items by true and
    predicted class at the rounds that the rule selects, int32 ``[clients, classes, classes]``, and
    ``roc_auc[stage, rule]`` the clients' areas under the ROC curve there, float64 ``[clients]`` with NaN
    where there is none (see ``bench.engine.selected_rounds``). ``loss`` is the mean training loss over
    clients by round. Only a run that was taken to its end carries numbers. ``seconds`` has ``client``,
    ``server``, ``evaluation`` and ``total``; bytes are summed over clients and rounds. ``code`` is what
    the process that made it had loaded; None where the process was lost. ``raised`` says that the run
    itself ended in an exception, not what it needs (data, a node, a disk). ``client_epochs`` are the
    passes over a client's training items, on average over clients, also of a run that diverged.
    """

    state: State
    reason: str = ""
    traceback: str = ""
    raised: bool = False
    correct: dict[tuple[str, str], NDArray[np.int32]] = field(default_factory=dict)
    samples: dict[str, NDArray[np.int32]] = field(default_factory=dict)
    confusion: dict[tuple[str, str], NDArray[np.int32]] = field(default_factory=dict)
    roc_auc: dict[tuple[str, str], NDArray[np.float64]] = field(default_factory=dict)
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

    def __post_init__(self) -> None:
        self.reason, self.traceback = _printable(self.reason), _printable(self.traceback)


def _printable(text: str) -> str:
    """Text that every terminal and database takes: NUL characters and halves of characters as escapes."""
    return text.replace("\0", r"\x00").encode(errors="backslashreplace").decode()
