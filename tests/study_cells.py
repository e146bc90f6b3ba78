"""Parts of a study: one experiment as cells, or a report; runs of its grids."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pandas as pd
from stored_runs import MemoryStore
from toy_study import ToyStudy

from bench.figures import charts
from bench.figures.panels import Figure
from bench.frames.graded_cells import DocumentCells, collect
from bench.frames.stored_runs import UsualRuns
from bench.grids import expand, load_grid
from bench.report.document import Part, document_cells
from bench.report.request import Request
from bench.site.documents import build
from bench.spec import RunSpec
from bench.store.tables import Tables
from bench.studies.experiment import Experiment
from bench.studies.published import Published, published
from bench.studies.settings import Column
from bench.studies.study import Study
from bench.tune.record import Configurations

NON = "non-overlapping"
CORA_20 = Column("cora", NON, 20)


def plan_of(study: type[Study], name: str) -> Experiment:
    """The experiment of a name."""
    (experiment,) = [each for each in study.experiments if each.name == name]
    return experiment


def part_of(study: type[Study], *names: str, **attributes: Any) -> type[Study]:
    """A study with some of its experiments, and without claims; ``attributes`` take the place of its own."""
    parts = tuple(each for each in study.experiments if each.name in names)
    return type(study.__name__, (study,), {"claims": (), "experiments": parts, **attributes})


def experiments(study: type[Study]) -> tuple[Experiment, ...]:
    """All but the main tables."""
    return tuple(each for each in study.experiments if not each.main)


def report_of(
    source: Tables,
    out: Path,
    request: Request | None = None,
    study: type[Study] = ToyStudy,
) -> Part:
    """The report of one study, written to a folder."""
    (part,) = build(source, request or Request(), {study.name: study}, out)
    return part


def shown(
    study: type[Study],
    name: str,
    source: Tables,
    request: Request | None = None,
    usual: UsualRuns | None = None,
    winners: Configurations | None = None,
) -> DocumentCells:
    """The cells of an experiment over a source, as its document shows them; ``request`` selects some."""
    plan, asked = plan_of(study, name), request or Request()
    others = experiments(study) if plan.main else ()
    plans = {study.name: [plan], "others": others}
    results = collect(source, [study()], winners=winners, plans=plans, usual_runs=usual)
    results = results._replace(places=asked.asked_places(results.places))
    return document_cells(study(), plan, results.cells[asked.mask(results.cells)], results)


def cells_of(study: type[Study], name: str, source: Tables | None = None) -> pd.DataFrame:
    """The cells of an experiment over a source, with ``settings`` (of the runs, or planned); without a source
    what is planned and published.
    """
    found = shown(study, name, source or unrelated())
    return found.cells.assign(settings=found.cells["place"].map(found.results.settings))


def unrelated() -> MemoryStore:
    """A database with a run that no study shows."""
    database = MemoryStore()
    spec = RunSpec(dataset="d", scenario="s", clients=1, method="m", seed=0)
    database.add_run(spec, None, state="failed", reason="x")
    return database


def one(cells: pd.DataFrame, **wanted: object) -> Any:
    """The one cell that has these values in columns, as a named tuple."""
    for column, value in wanted.items():
        cells = cells[cells[column] == value]
    (cell,) = cells.itertuples()
    return cell


def printed_beside(cells: pd.DataFrame, study: type[Study]) -> set[Published]:
    """The published values that stand beside cells."""
    keys = cells[["paper", "printed"]].dropna().drop_duplicates()
    return {published(paper, study.published)[number] for paper, number in keys.itertuples(index=False)}


def figures_of(
    study: type[Study],
    name: str,
    source: Tables,
    datasets: tuple[str, ...] = (),
    usual: UsualRuns | None = None,
) -> list[Figure]:
    """The figures of one experiment; ``datasets`` are those that are selected."""
    return list(charts.figures(shown(study, name, source, Request(datasets=datasets), usual)))


def spec(grid: str, method: str, seed: int, column: Column = CORA_20, **wanted: Any) -> RunSpec:
    """The one run of a grid with these parts (``attack``, ``newcomers``, a hyper-parameter, ...)."""
    specs = []
    for run in expand(load_grid(grid)):
        if run.names == (column.dataset, column.scenario, column.clients, method, seed):
            flat = {**run.spec.hyper, **run.spec.model_dump()["protocol"]}
            flat |= {"attack": run.spec.attack, "newcomers": run.spec.newcomers}
            if all(flat.get(key) == value for key, value in wanted.items()):
                specs.append(run.spec)
    (only,) = specs
    return only


def csv_rows(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV file by its heads."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
