"""A report as a whole: which studies it has, and in which order."""

from __future__ import annotations

import pytest
from stored_runs import MemoryStore
from toy_study import ToyStudy

from bench.errors import RequestError
from bench.report.report import compose
from bench.report.request import Request
from bench.reports.fedhgn import FedHGN
from bench.resolve import resolve


def test_the_study_of_which_most_was_measured_comes_first() -> None:
    database = MemoryStore()
    for method in ("local", "fedavg"):
        database.add(method, 0, [70, 80])
    studies = {"fedhgn": FedHGN, "toy": ToyStudy}
    for names in (("fedhgn", "toy"), ("toy", "fedhgn")):
        report = compose(database, Request(studies=names), {name: studies[name] for name in names})
        assert [part.study for part in report.parts] == ["toy", "fedhgn"]
        assert [score.title for score in report.parts[1].scores] == ["FedHGN"]  # one of its methods is fedhgn
        assert [part.measured_share > 0 for part in report.parts] == [True, False]


def test_runs_of_another_study_are_said_to_be_there() -> None:
    database = MemoryStore()
    database.add_run(resolve("photo", "non-overlapping", 10, "local", 0), [70] * 10)
    studies = {FedHGN.name: FedHGN, ToyStudy.name: ToyStudy}
    with pytest.raises(RequestError, match=f"--study {ToyStudy.name}"):
        compose(database, Request(studies=(FedHGN.name,), datasets=("photo",)), studies)
