"""What a study names, held against what there is: a misspelt name would change verdicts without a word."""

from __future__ import annotations

from bench.engine.methods import METHODS
from bench.errors import unknown
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
