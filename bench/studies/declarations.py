"""What a study names, held against what there is: a misspelt name would change verdicts without a word."""

from __future__ import annotations

from collections.abc import Iterable

from bench.engine.methods import METHODS
from bench.errors import unknown
from bench.studies.experiment import ExperimentPlan
from bench.studies.published import published
from bench.studies.study import Study


def check_methods(study: Study | type[Study]) -> None:
    """Look for every method that a study names.

    Raises:
        RequestError: what a line runs is no method; or ``control``, ``baseline``, ``proposed`` or one of
            ``references`` is neither a method nor that of a line.
    """
    methods = set(METHODS.all())
    names_by_place = {
        "lines": [line.runs for line in study.lines],
        "control": [study.control],
        "baseline": [study.baseline],
        "proposed": [study.proposed] if study.proposed else [],
        "references": study.references,
    }
    for place, names in names_by_place.items():
        for name in names:
            if name not in methods:
                raise unknown(f"method in '{place}' of study {study.name}:", name, methods)
        methods |= {line.method for line in study.lines}  # the lines, which come first, are looked at


def check_targets(study: Study | type[Study], plans: Iterable[ExperimentPlan]) -> None:
    """Look for every published table that an experiment names.

    Raises:
        RequestError: there is no such paper, or no row of its file is of that table.
    """
    for plan in plans:
        for comparison in plan.experiment.comparisons:
            for target in comparison.targets:
                tables = {value.table for value in published(target.paper, study.published)}
                if target.table not in tables:
                    place = f"experiment {plan.experiment.name} of study {study.name}"
                    raise unknown(f"table of {target.paper}.csv in {place}:", target.table, tables)
