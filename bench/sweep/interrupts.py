"""Ctrl-C once: finish what runs. Twice, or a request to terminate: stop now."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, Self


class Interrupts:
    """Counts what asks the sweep to stop; used as a context manager around it.

    Outside of the main thread, and for a signal that the process was started to ignore, nothing is
    installed.
    """

    def __init__(self, said: Callable[[str], None]) -> None:
        self._said = said
        self._before: dict[signal.Signals, Any] = {}
        self.finish = False
        """Start nothing new."""
        self.now = False
        """Do not wait for what runs either."""

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self._asked)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _asked(self, number: int, _frame: FrameType | None) -> None:
        self.now = self.finish or number == signal.SIGTERM
        self.finish = True

    def announce(self, running: int) -> None:
        """Say once what an interrupt does."""
        if self._before and not self.now:
            self._said(f"interrupted: {running} running to be finished and stored; Ctrl-C again stops now")
            self._said = _nothing


def _nothing(_text: str) -> None:
    """Says nothing a second time."""
