"""The request for a report."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pandas as pd

from bench.errors import RequestError, unknown
from bench.metric_names import ACCURACY, Metric


@dataclass(frozen=True)
class Request:
    """The selection and the metric of a report. An empty field selects everything. ``only_main`` selects a
    study's main tables only.
    """

    studies: tuple[str, ...] = ()
    datasets: tuple[str, ...] = ()
    scenarios: tuple[str, ...] = ()
    clients: tuple[int, ...] = ()
    methods: tuple[str, ...] = ()
    metric: Metric = ACCURACY
    only_main: bool = False

    @property
    def filters(self) -> dict[str, tuple[str | int, ...]]:
        """Column of the cells -> selected values. Empty selections are left out."""
        filters: dict[str, tuple[str | int, ...]] = {
            "dataset": self.datasets,
            "scenario": self.scenarios,
            "clients": self.clients,
            "method": self.methods,
        }
        return {column: values for column, values in filters.items() if values}

    def mask(self, rows: pd.DataFrame) -> pd.Series[bool]:
        """The mask of the selected rows, by their columns dataset, scenario, clients and method."""
        is_asked = pd.Series(True, rows.index)
        for column, values in self.filters.items():
            is_asked &= rows[column].isin(values)
        return is_asked

    def asked_places(self, places: pd.DataFrame) -> pd.DataFrame:
        """The selected places. Lines of methods named in the request count as the studies' own lines."""
        places = places[self.mask(places)]
        lines = [
            replace(line, is_own=line.is_own or line.method in self.methods) for line in places["line_object"]
        ]
        return places.assign(line_object=lines)

    def check(self, cells: pd.DataFrame, runs: pd.DataFrame) -> None:
        """Check that every name occurs in the cells of the chosen studies or in the runs.

        Raises:
            RequestError: a name occurs in neither, or no cell matches all filters.
        """
        for column, values in self.filters.items():
            known_names = {*cells[column].astype(str), *runs[column].astype(str)}
            for value in map(str, values):
                if value not in known_names:
                    raise unknown(column, value, known_names)
        if not self.mask(cells).any():
            raise RequestError("no table has all of these names together: leave one of the filters away")
