"""``bench speed``: the table, the rows as a file, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from toy_data import CIRCLE

from bench import registry
from bench.errors import NotApplicableError
from bench.timing.speed import Case, Row

from .conftest import Bench


@pytest.fixture(autouse=True)
def circle(plugins: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "circle.py").write_text(CIRCLE)
    monkeypatch.setenv(registry.PLUGINS, str(tmp_path / "circle.py"))
    registry.forget()


@pytest.mark.slow
def test_whole_runs_are_run_to_their_end(bench: Bench, tmp_path: Path) -> None:
    ended = bench("speed --threads 1 -d circle -k 2 --whole --out", str(tmp_path / "rows.json"))
    assert ended.code == 0
    (row,) = json.loads((tmp_path / "rows.json").read_text())
    assert (row["method"], row["rounds"]) == ("fedavg", 6)
    assert row["seconds"] > 0
    assert f"{row['seconds']:.4g}" in ended.out
    assert "label-dirichlet" in ended.out, "the data set's first scenario"


@pytest.mark.parametrize("able", ["fedavg", ""])
def test_what_is_measured_stays_where_another_method_cannot_run(
    able: str, bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measured(work: object, case: Case) -> Row:
        if case.method != able:
            raise NotApplicableError(f"{case.method} needs what is not there")
        return Row("circle", case.method, "hgnn", 2, 3.0, None, None, 0.0, 1.0)

    monkeypatch.setattr("bench.timing.speed.apart", measured)
    ended = bench("speed --threads 1 -d circle -k 2 -m fedavg,fedhgn_hc --rounds 1 --json")
    assert ended.code == (0 if able else 2)
    assert "needs what is not there" in ended.err
    assert [row["method"] for row in json.loads(ended.out or "[]")] == ([able] if able else [])


@pytest.mark.slow
def test_rounds_are_timed_in_the_scenario_that_is_asked_for(bench: Bench) -> None:
    ended = bench("speed --threads 1 -d cora -s overlapping -k 10 -m fedavg --rounds 1 --json")
    assert ended.code == 0
    (row,) = json.loads(ended.out)
    assert (row["method"], row["clients"]) == ("fedavg", 10)
    assert row["seconds_per_round"] > 0
    assert "overlapping" in ended.err
    assert "non-overlapping" not in ended.err


@pytest.mark.parametrize(
    ("request_", "reason"),
    [
        ("--whole --rounds 3", "leave out --rounds"),
        ("-m nope", "unknown method 'nope'"),
        ("-s nope", "unknown scenario 'nope'"),
        ("--devices tpu", "unknown device 'tpu'"),
        ("-d circle -m fedavg -k 2 --rounds 5", "which has 6; got 5"),
        ("-d circle -m fedsheafhn -k 2 --rounds 1", "not on hypergraph"),
        ("-d circle -s overlapping -k 5", "use label-dirichlet"),
    ],
)
def test_a_wrong_request_is_one_line(
    request_: str, reason: str, monkeypatch: pytest.MonkeyPatch, bench: Bench
) -> None:
    monkeypatch.setattr("bench.timing.speed.apart", lambda work, case: work(case))
    ended = bench("speed --threads 1", request_)
    assert ended.refused
    assert reason in ended.err
