"""What a study names, held against what there is: a misspelt name would change verdicts without a word."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from bench.engine.methods import METHODS
from bench.errors import unknown
from bench.studies.claims import Claim
from bench.studies.experiment import ExperimentPlan
from bench.studies.published import published
from bench.studies.study import Study


def plans_of(studies: Mapping[str, Study | type[Study]]) -> dict[str, list[ExperimentPlan]]:
    """Every experiment of studies by their names.

    Raises:
        RequestError: a study names something that there is not.
    """
    plans = {}
    for name, study in studies.items():
        _check_methods(study)
        plans[name] = [ExperimentPlan(experiment, study.lines) for experiment in study.experiments]
        _check_targets(study, plans[name])
        _check_claims(study() if isinstance(study, type) else study, plans[name])
    return plans


def _check_methods(study: Study | type[Study]) -> None:
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


def _check_targets(study: Study | type[Study], plans: Iterable[ExperimentPlan]) -> None:
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


def _check_claims(study: Study, plans: Iterable[ExperimentPlan]) -> None:
    """Look for every name in a study's claims.

    Raises:
        RequestError: a claim is about an experiment that the study does not have, a line or point that one of
            these does not have, or columns that none of them has.
    """
    plans_by_name = {plan.experiment.name: plan for plan in plans}
    titles = {name: _titles(study, plan) for name, plan in plans_by_name.items() if study.claims}
    for claim in (claim for claims in study.claims for claim in claims.claims):
        tables = (*claim.tables, *claim.reduced)
        _check_claim(claim, "table", tables, plans_by_name)
        for name in tables:
            experiment = plans_by_name[name].experiment
            for title in sorted({*claim.first, *claim.second} - titles[name]):
                # Of a line that a main table finds, its settings, in brackets, are not known before runs are.
                line = title.partition(" [")[0] if experiment.main else title
                _check_claim(claim, f"line of {name}", [line], titles[name])
            points = [point.label for point in experiment.points]
            _check_claim(claim, f"point of {name}", claim.points or (), points)
        columns = [column for name in tables for column in plans_by_name[name].columns]
        second_clients = (claim.second_clients,) if claim.second_clients else ()
        for kind, names, known in (
            ("data set", claim.only.dataset, {column.dataset for column in columns}),
            ("scenario", claim.only.scenario, {column.scenario for column in columns}),
            ("number of clients", claim.only.clients, {column.clients for column in columns}),
            ("number of clients", second_clients, {column.clients for column in columns}),
        ):
            _check_claim(claim, kind, map(str, names or ()), set(map(str, known)))


def _check_claim(claim: Claim, kind: str, names: Iterable[str], known_names: Collection[str]) -> None:
    for name in names:
        if name not in known_names:
            raise unknown(f"{kind} in the claim '{claim.text}':", name, known_names)


def _titles(study: Study, plan: ExperimentPlan) -> set[str]:
    """Titles of the lines of a table; a main table may have one of every method."""
    methods = METHODS.all() if plan.experiment.main else ()
    return {*map(study.line_title, plan.lines), *map(study.title_of, methods)}
