"""What a report reads: the part of the result database that it needs."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray


class Source(Protocol):
    """A result database; ``bench.store.Store`` is one."""

    def runs(self, **filters: Any) -> pd.DataFrame:
        """One row a run, every column of ``runs``."""

    def client_results(
        self,
        run_ids: Iterable[int],
        stage: str | None = None,
        split: str | None = None,
        rule: str | None = None,
    ) -> pd.DataFrame:
        """Columns run_id, client, stage, split, rule, metric, value, samples."""

    def curve(self, run_id: int, stage: str, split: str) -> NDArray[np.int32]:
        """Correct predictions ``[rows, clients]``; raises ``KeyError`` where there is none."""

    def environments(self) -> pd.DataFrame:
        """One row an environment: id, hash, description (JSON)."""
