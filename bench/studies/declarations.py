"""What a study names, held against what there is: a misspelt name would change verdicts without a word."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain

from bench.engine.methods import METHODS
from bench.errors import unknown
from bench.studies.claims import Claim
from bench.studies.experiment import Experiment
from bench.studies.published import published
from bench.studies.study import Study

Check = tuple[str, Iterable[str], Collection[str]]
"""Where names stand, the names, and the names that there are."""


def plans_of(studies: Mapping[str, Study | type[Study]]) -> dict[str, tuple[Experiment, ...]]:
    """Every experiment of studies by their names.

    Raises:
        RequestError: a study names a method, published table or measured table that there is not, or a claim
            is about lines that its tables do not have.
    """
    for study in studies.values():
        one = study() if isinstance(study, type) else study
        for where, names, known_names in chain(_methods(one), _targets(one), _claims(one)):
            for name in names:
                if name not in known_names:
                    raise unknown(where, name, known_names)
    return {name: study.experiments for name, study in studies.items()}


def _methods(study: Study) -> Iterator[Check]:
    methods = set(METHODS.all())
    of_lines = methods | {line.method for line in study.lines}
    yield f"method in 'lines' of study {study.name}:", [line.runs for line in study.lines], methods
    for place in ("control", "baseline", "proposed"):
        names = filter(None, [getattr(study, place)])
        yield f"method in '{place}' of study {study.name}:", names, of_lines
    yield f"method in 'references' of study {study.name}:", study.references, of_lines


def _targets(study: Study) -> Iterator[Check]:
    for experiment in study.experiments:
        for comparison in experiment.comparisons:
            for target in comparison.targets:
                tables = {value.table for value in published(target.paper, study.published)}
                place = f"experiment {experiment.name} of study {study.name}"
                yield f"table of {target.paper}.csv in {place}:", [target.table], tables


def _claims(study: Study) -> Iterator[Check]:
    tables = {experiment.name: experiment for experiment in study.experiments}
    for claim in [claim for claims in study.claims for claim in claims.claims]:
        names = (*claim.tables, *claim.reduced)
        yield f"table in the claim '{claim.text}':", names, tables
        for name in names:
            yield f"line of {name} in the claim '{claim.text}':", *_lines(study, claim, tables[name])


def _lines(study: Study, claim: Claim, table: Experiment) -> tuple[list[str], set[str]]:
    """The lines that a claim names, and those of a table: a main table may have one of every method, and of
    settings, in brackets, that are not known yet.
    """
    titles = {study.line_title(line) for line in (study.lines if table.finds else table.all_lines)}
    names = sorted({*claim.first, *claim.second} - titles)
    if table.main:
        titles |= set(map(study.title_of, METHODS.all()))
        names = [name.partition(" [")[0] for name in names]
    return names, titles
