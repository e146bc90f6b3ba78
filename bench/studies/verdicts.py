"""What a study says of the runs behind a published value, on which its verdict rests."""

from __future__ import annotations

from dataclasses import dataclass

from bench.errors import RequestError


@dataclass(frozen=True)
class PublishedRuns:
    """So many runs ``n`` stand behind a published mean; ``redrawn``: each on clients of its own.

    ``population``: the printed deviation is the root of a mean over n, as NumPy's ``std`` is, and not over
    n - 1.

    Raises:
        RequestError: ``n`` is no whole number of at least 1.
    """

    n: int
    redrawn: bool = False
    population: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.n, bool) or not isinstance(self.n, int) or self.n < 1:
            raise RequestError(f"published runs: expected a whole number of at least 1, got {self.n!r}")
