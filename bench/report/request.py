"""What a report is asked for."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from bench.errors import RequestError, unknown
from bench.grids import load_grid
from bench.grids.expand import combinations
from bench.grids.experiment import Line
from bench.metric_names import ACCURACY, Metric
from bench.studies.experiment import ExperimentPlan, Plans
from bench.studies.settings import Column, difference_text
from bench.studies.study import Study

KINDS = {"clients": "number of clients"}
"""What messages call a column that goes by another name."""


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
    def is_whole(self) -> bool:
        """Whether all tables of the studies are reported, and all of each."""
        return not (self.datasets or self.scenarios or self.clients or self.methods or self.grid)

    @property
    def _filters(self) -> dict[str, tuple[str | int, ...]]:
        return {
            "dataset": self.datasets,
            "scenario": self.scenarios,
            "clients": self.clients,
            "method": self.methods,
        }

    def mask(self, rows: pd.DataFrame) -> pd.Series[bool]:
        """Which rows are asked for, by their columns dataset, scenario, clients and method."""
        is_asked = pd.Series(True, rows.index)
        for name, values in self._filters.items():
            if values:
                is_asked &= rows[name].isin(values)
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
                    raise unknown(KINDS.get(column, column), value, known_names)
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
    by_study = {
        study.name: [plan for plan in plans[study.name] if plan.experiment.grid == grid] for study in studies
    }
    if any(by_study.values()):
        return by_study
    by_study = {study.name: _planned_by(grid, study, plans[study.name]) for study in studies}
    if not any(by_study.values()):
        raise RequestError(
            f"grid {grid} plans no run for a main table of the studies {', '.join(by_study)}: "
            "'bench runs list' shows its runs"
        )
    return by_study


def _planned_by(name: str, study: Study, plans: Sequence[ExperimentPlan]) -> list[ExperimentPlan]:
    """The main tables of a study with the runs of a grid in place of whatever there is."""
    rows = {line.method: line for line in study.lines}
    planned = []
    for table in [plan.experiment for plan in plans if plan.experiment.main]:
        columns: set[Column] = set()
        variants: dict[str, dict[str, Line]] = {}
        for dataset, scenario, clients, method, settings in combinations(load_grid(name)):
            column = Column(dataset, scenario, clients)
            if column in table.columns:
                columns.add(column)
                text = difference_text(settings, {})
                variants.setdefault(method, {})[text] = Line(method, settings=settings, setting=text)
        # What a grid names competes with the study's own methods.
        others = [Line(method, study.title_of(method)) for method in sorted({*variants} - {*rows})]
        lines = tuple(
            replace(row, settings=variant.settings, setting=variant.setting)
            for row in (*study.lines, *others)
            for _, variant in sorted(variants.get(row.runs, {}).items())
        )
        if lines:
            shown_columns = tuple(column for column in table.columns if column in columns)
            planned.append(ExperimentPlan(replace(table, grid=name, columns=shown_columns, lines=lines)))
    return planned
