"""What papers say that they searched or set, beside the suite's own spaces."""

from __future__ import annotations

import csv
from collections.abc import Iterable

from bench.studies.study import STUDIES, Study
from bench.tune.tuning import Tuning, Value

FILE = "hyperparameters.csv"


def printed_settings(study: Study) -> list[dict[str, str]]:
    """What the papers of a study's tables print of settings that the suite has, from the file in the study's
    folder of published numbers, if there is one: the values of one hyper-parameter of a paper's component a
    row, as printed, separated by semicolons. ``method`` and ``setting`` (a dotted key as ``--set`` takes it)
    are the suite's for it, both empty where it has none.
    """
    file = study.published / FILE
    rows = csv.DictReader(file.read_text(encoding="utf-8").splitlines()) if file.is_file() else ()
    return [row for row in rows if row["paper"] in study.papers and row["setting"]]


def published_lines(tunings: Iterable[Tuning]) -> list[str]:
    """One line a setting of a tuned method that a study's papers print, with the values searched here, or
    the one that all trials have.
    """
    lines: list[str] = []
    searches = list(tunings)
    rows = [row for study in STUDIES.all().values() for row in printed_settings(study())]
    for row in rows:
        setting, searched = row["setting"], dict[Value, None]()
        for search in searches:
            if search.spec.method == row["method"]:
                own = search.spec.settings().get(setting, "-")
                searched |= dict.fromkeys(search.space.get(setting, (own,)))
        if searched:
            numbers = sorted(value for value in searched if not isinstance(value, str))
            printed = (
                f"{row['values'].replace(';', ', ')} in {row['paper']} ({row['component']}, {row['name']})"
            )
            here = ", ".join(map(str, numbers or searched))
            lines.append(f"{row['method']} {setting}: {printed}, here {here}")
    return list(dict.fromkeys(lines))
