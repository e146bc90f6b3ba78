"""Some of many stored runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray


class Runs:
    """Rows of a table of runs, column by column. A report takes thousands of small parts of one table, of
    which pandas would make a frame each in a hundred times as long.
    """

    def __init__(self, columns: Mapping[str, NDArray[Any]], rows: NDArray[np.intp]) -> None:
        self._columns, self._rows = columns, rows

    @classmethod
    def of(cls, table: pd.DataFrame) -> Runs:
        """All rows of a table."""
        numbers = set(table.select_dtypes("number").columns)
        columns = {
            name: column.to_numpy() if name in numbers else column.to_numpy(object)
            for name, column in table.items()
        }
        return cls(columns, np.arange(len(table)))  # type: ignore[arg-type]

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._columns[name][self._rows]

    def take(self, which: NDArray[np.bool_] | Sequence[int]) -> Runs:
        """Those of the rows that a mask or their places among these name."""
        return Runs(self._columns, self._rows[np.asarray(which, None if len(which) else np.intp)])
