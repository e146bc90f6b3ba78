"""The cells of a study's main tables and experiments, for tests that look at numbers alone."""

from __future__ import annotations

from functools import cache

from bench.report.cell_builder import cells_of
from bench.report.cells import Cells, Selection
from bench.report.collect import selected
from bench.report.experiment import Experiment, Plan
from bench.report.results import Results
from bench.report.study import Study


@cache
def plan_of(study: type[Study], name: str) -> Plan:
    """The plan of an experiment."""
    (experiment,) = [each for each in study.experiments if each.name == name]
    return Plan(experiment, study.lines)


def experiments(study: type[Study]) -> tuple[Experiment, ...]:
    """All but the main tables."""
    return tuple(each for each in study.experiments if not each.main)


def tables(study: type[Study]) -> tuple[Experiment, ...]:
    """The tables that compare methods."""
    return tuple(each for each in study.experiments if each.competes)


def main_tables(study: Study, results: Results, selection: Selection | None = None) -> tuple[Cells, ...]:
    """The cells of every table that compares methods."""
    plans = [Plan(each, study.lines) for each in tables(type(study))]
    return selected(study, plans, results, selection or Selection())


def cells_in(study: type[Study], name: str, results: Results, selection: Selection | None = None) -> Cells:
    """The cells of an experiment."""
    return cells_of(study(), plan_of(study, name), results, selection or Selection())
