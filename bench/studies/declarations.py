"""What a study names, held against what there is: a misspelt name would change verdicts without a word."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from bench.engine.methods import METHODS
from bench.errors import unknown
from bench.studies.claims import Claim
from bench.studies.experiment import ExperimentPlan
from bench.studies.published import published
from bench.studies.study import Study

Check = tuple[str, Iterable[str], Collection[str]]
"""Where names stand, the names, and the names that there are."""


def plans_of(studies: Mapping[str, Study | type[Study]]) -> dict[str, list[ExperimentPlan]]:
    """Every experiment of studies by their names.

    Raises:
        RequestError: a study names a method, published table or measured table that there is not, or a claim
            is about lines, points or columns that its tables do not have.
    """
    plans = {}
    for name, study in studies.items():
        _check(_methods(study))
        plans[name] = [ExperimentPlan(experiment, study.lines) for experiment in study.experiments]
        _check(_targets(study, plans[name]))
        plans_by_name = {plan.experiment.name: plan for plan in plans[name]}
        for claims in study.claims:
            for claim in claims.claims:
                _check(_claim(claim, study() if isinstance(study, type) else study, plans_by_name))
    return plans


def _check(checks: Iterable[Check]) -> None:
    for where, names, known_names in checks:
        for name in names:
            if name not in known_names:
                raise unknown(where, name, known_names)


def _methods(study: Study | type[Study]) -> Iterator[Check]:
    methods = set(METHODS.all())
    of_lines = methods | {line.method for line in study.lines}
    yield f"method in 'lines' of study {study.name}:", [line.runs for line in study.lines], methods
    for place in ("control", "baseline", "proposed"):
        names = filter(None, [getattr(study, place)])
        yield f"method in '{place}' of study {study.name}:", names, of_lines
    yield f"method in 'references' of study {study.name}:", study.references, of_lines


def _targets(study: Study | type[Study], plans: Iterable[ExperimentPlan]) -> Iterator[Check]:
    for plan in plans:
        for comparison in plan.experiment.comparisons:
            for target in comparison.targets:
                tables = {value.table for value in published(target.paper, study.published)}
                place = f"experiment {plan.experiment.name} of study {study.name}"
                yield f"table of {target.paper}.csv in {place}:", [target.table], tables


def _claim(claim: Claim, study: Study, plans: Mapping[str, ExperimentPlan]) -> Iterator[Check]:
    where = f"in the claim '{claim.text}':"
    tables = (*claim.tables, *claim.reduced)
    yield f"table {where}", tables, plans
    for name in tables:
        plan, is_main = plans[name], plans[name].experiment.main
        # A main table may have a line of every method, and of settings, in brackets, that are not known yet.
        titles = {*map(study.line_title, plan.lines)}
        titles |= set(map(study.title_of, METHODS.all())) if is_main else set()
        named = sorted({*claim.first, *claim.second} - titles)
        lines = [title.partition(" [")[0] if is_main else title for title in named]
        yield f"line of {name} {where}", lines, titles
        yield (
            f"point of {name} {where}",
            claim.points or (),
            [point.label for point in plan.experiment.points],
        )
    columns = [column for name in tables for column in plans[name].columns]
    clients = {str(column.clients) for column in columns}
    yield f"data set {where}", claim.only.dataset or (), {column.dataset for column in columns}
    yield f"scenario {where}", claim.only.scenario or (), {column.scenario for column in columns}
    yield f"number of clients {where}", map(str, claim.only.clients or ()), clients
    yield f"number of clients {where}", map(str, filter(None, [claim.second_clients])), clients
