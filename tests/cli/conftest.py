"""What tests of the command line share: a home of their own, and a call with what came of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from bench.cli.main import main


class Ended(NamedTuple):
    """Exit code, standard output and standard error of a call."""

    code: int
    out: str
    err: str

    @property
    def refused(self) -> bool:
        """Whether it ended as a wrong request does: with code 2 and one line of error."""
        return self.code == 2 and self.err.startswith("bench: ") and self.err.count("\n") == 1


Bench = Callable[..., Ended]


@pytest.fixture(autouse=True)
def nothing_at_hand(home: Path) -> None:
    """No test sees results or data of whoever starts it."""


@pytest.fixture
def bench(capsys: pytest.CaptureFixture[str]) -> Bench:
    """Calls ``bench`` with words, each split at blanks."""

    def call(*words: str) -> Ended:
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main([word for several in words for word in several.split()])
        code = ended.value.code
        return Ended(code if isinstance(code, int) else 0, *capsys.readouterr())

    return call
