"""What a report is asked for."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from bench.metric_names import ACCURACY, Metric


@dataclass(frozen=True)
class Request:
    """What is to be reported, by which metric; an empty part means everything."""

    studies: tuple[str, ...] = ()
    datasets: tuple[str, ...] = ()
    scenarios: tuple[str, ...] = ()
    clients: tuple[int, ...] = ()
    methods: tuple[str, ...] = ()
    grid: str | None = None
    metric: Metric = ACCURACY

    @property
    def stamp(self) -> str:
        """A hash of the request, and of what the file says that it names as its grid."""
        content = Path(self.grid).read_bytes() if self.grid and Path(self.grid).is_file() else b""
        return hashlib.sha256(repr(self).encode() + content).hexdigest()[:32]
