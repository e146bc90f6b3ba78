"""A report as a whole: which studies it has, and in which order."""

from __future__ import annotations

from fake_database import FakeDatabase
from study_cells import Tables

from bench.report.report import compose
from bench.report.request import Request
from bench.reports.fedhgn import FedHGN


def test_the_study_of_which_most_was_measured_comes_first() -> None:
    database = FakeDatabase()
    for method in ("local", "fedavg"):
        database.add(method, 0, [70, 80])
    studies = {"fedhgn": FedHGN, "fedsheafhn": Tables}
    for names in (("fedhgn", "fedsheafhn"), ("fedsheafhn", "fedhgn")):
        report = compose(database, Request(studies=names), {name: studies[name] for name in names})
        assert [part.study for part in report.parts] == ["fedsheafhn", "fedhgn"]
        assert [score.title for score in report.parts[1].scores] == ["FedHGN"]  # one of its methods is fedhgn
        assert [part.measured_share > 0 for part in report.parts] == [True, False]
