"""What a report is asked for."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from bench.errors import RequestError, unknown
from bench.grids import load_grid
from bench.grids.experiment import Line
from bench.grids.grid import combinations
from bench.metric_names import ACCURACY, Metric
from bench.studies.experiment import Experiment, Plans
from bench.studies.settings import Column, Settings, difference_text
from bench.studies.study import Study


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

    @property
    def _filters(self) -> dict[str, tuple[str | int, ...]]:
        """What is asked for by column."""
        filters: dict[str, tuple[str | int, ...]] = {
            "dataset": self.datasets,
            "scenario": self.scenarios,
            "clients": self.clients,
            "method": self.methods,
        }
        return {column: values for column, values in filters.items() if values}

    @property
    def is_whole(self) -> bool:
        """Whether all tables of the studies are reported, and all of each."""
        return not (self._filters or self.grid)

    def mask(self, rows: pd.DataFrame) -> pd.Series[bool]:
        """Which rows are asked for, by their columns dataset, scenario, clients and method."""
        is_asked = pd.Series(True, rows.index)
        for column, values in self._filters.items():
            is_asked &= rows[column].isin(values)
        return is_asked

    def with_guests(self, places: pd.DataFrame) -> pd.DataFrame:
        """The places with the lines of methods that are named: they compete with the studies' own."""
        lines = [
            replace(line, is_own=line.is_own or line.method in self.methods) for line in places["line_object"]
        ]
        return places.assign(line_object=lines)

    def check(self, cells: pd.DataFrame, runs: pd.DataFrame) -> None:
        """Look for every name in the cells of the chosen studies, and in the runs.

        Raises:
            RequestError: a name that stands in neither, or names that no cell has together.
        """
        for column, values in self._filters.items():
            known_names = {*cells[column].astype(str), *runs[column].astype(str)}
            for value in map(str, values):
                if value not in known_names:
                    raise unknown(column, value, known_names)
        if not self.mask(cells).any():
            studies = ", ".join(cells["study"].unique())
            raise RequestError(
                f"no table of the studies {studies} has all of these names together: "
                "leave one of the filters away, or name others with --study"
            )


def asked_plans(grid: str, studies: Iterable[Study], plans: Plans) -> Plans:
    """The experiments of a grid by study: those whose grid it is; of a grid that is none's the main tables,
    with a line for each of its methods and variants and for no others.

    Raises:
        RequestError: an unknown grid, one that is not valid, or one that plans nothing for a main table.
    """
    own = {study.name: [table for table in plans[study.name] if table.grid == grid] for study in studies}
    if any(own.values()):
        return own
    planned: dict[str, list[Experiment]] = {}
    for study in studies:
        narrowed = [_narrowed(grid, study, table) for table in plans[study.name] if table.main]
        planned[study.name] = [table for table in narrowed if table.lines]
    if not any(planned.values()):
        raise RequestError(f"grid {grid} plans no run for a main table of {', '.join(planned)}")
    return planned


def _narrowed(grid: str, study: Study, table: Experiment) -> Experiment:
    """A main table with the columns of a grid, and a line for each of its methods and variants."""
    columns: set[Column] = set()
    variants: dict[str, dict[str, Settings]] = {}
    for dataset, scenario, clients, method, settings in combinations(load_grid(grid)):
        column = Column(dataset, scenario, clients)
        if column in table.columns:
            columns.add(column)
            variants.setdefault(method, {})[difference_text(settings, {})] = settings
    own_methods = {line.method for line in study.lines}
    # What a grid names competes with the study's own methods.
    others = [Line(name, study.title_of(name)) for name in sorted(variants) if name not in own_methods]
    lines = [
        replace(line, settings=settings, setting=setting)
        for line in (*study.lines, *others)
        for setting, settings in sorted(variants.get(line.runs, {}).items())
    ]
    shown_columns = tuple(column for column in table.columns if column in columns)
    return replace(table, grid=grid, columns=shown_columns, lines=tuple(lines))
