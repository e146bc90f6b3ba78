"""What asks a sweep to stop."""

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

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._announced = False
        self._before: dict[signal.Signals, Any] = {}
        self.finish = False
        """Start nothing new."""
        self.now = False
        """Do not wait for what runs either."""

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                if signal.getsignal(number) is not signal.SIG_IGN:
                    self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        self.now = self.finish or number == signal.SIGTERM
        self.finish = True

    def heed(self, running: int) -> None:
        """Say once what an interrupt does; raise ``KeyboardInterrupt`` where the sweep is to stop now."""
        if self.now:
            raise KeyboardInterrupt
        if self.finish and self._before and not self._announced:
            self._announced = True
            self._say(f"interrupted: {running} running to be finished and stored; Ctrl-C again stops now")
