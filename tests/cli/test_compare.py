"""``bench compare``: one's own method beside those of a study."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from fake_database import FakeDatabase

from bench import registry
from bench.cli.main import main
from bench.compare import compare, find_study, own_method, planned_runs
from bench.errors import RequestError
from bench.grids import Filters
from bench.report.standing import sentences

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "clustered.py"
CORA_10 = Filters(("cora",), ("non-overlapping",), (10,), (), (0, 1))


@pytest.fixture(autouse=True)
def plugins(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv(registry.PLUGINS, "")
    yield
    os.environ[registry.PLUGINS] = ""
    for found in (registry.methods, registry.datasets, registry.studies):
        found.cache_clear()


def test_the_standing_is_what_the_numbers_say() -> None:
    """Ten points above Local at every client, five below FedAvg at nine of ten and far above at one."""
    method, study = own_method(EXAMPLE), find_study("fedsheafhn")
    runs = planned_runs(study, method, CORA_10, {})
    assert [(each.names, each.spec and each.spec.hyper) for each in runs] == [
        (("cora", "non-overlapping", 10, "clustered", seed), {"temperature": 0.2}) for seed in (0, 1)
    ]
    database = FakeDatabase()
    for each in runs:
        assert each.spec
        cost = {"bytes_up": 30_000_000, "bytes_down": 10_000_000, "seconds_total": 2.0 + each.seed}
        database.add("", 0, [70 + each.seed] * 10, spec=each.spec, **cost)
        database.add("local", each.seed, [60 + each.seed] * 9 + [59])
        correct = [75 + each.seed] * 9 + [20]
        database.add("fedavg", each.seed, correct, hyper={"weights": "uniform"}, bytes_up=1_000_000)
    # Runs of the method in other settings and cells change nothing.
    other = runs[0].spec
    assert other
    database.add("", 0, [1] * 10, spec=other.model_copy(update={"hyper": {"temperature": 1.0}}))
    found = compare(database, study, method, runs)
    (standing,) = found.standings
    assert (standing.accuracy.mean, standing.accuracy.n) == (70.5, 2)
    assert (standing.rank, standing.methods, standing.tests) == (1, 3, 2)
    assert standing.better == ("Local",)
    assert standing.worse == ()  # one client outweighs nine: the mean difference to FedAvg is +0.6
    assert (standing.below, standing.seconds, standing.megabytes, standing.reference) == (0, 2.5, 40, 1)
    assert sentences(study, found.ranking, method, found.standings) == [
        "Cora, non-overlapping, 10 clients: significantly better than Local."
    ]


def test_runs_on_other_partitions_are_not_paired() -> None:
    method, study = own_method(EXAMPLE), find_study("fedsheafhn")
    runs = planned_runs(study, method, CORA_10, {})
    database = FakeDatabase()
    for each in runs:
        assert each.spec
        run = database.add("", 0, [70] * 10, spec=each.spec)
        database._runs[run - 1]["partition_hash"] = "another"
        database.add("local", each.seed, [60] * 10)
    (standing,) = compare(database, study, method, runs).standings
    assert (standing.tests, standing.better, standing.below) == (0, (), None)


def test_a_method_alone_is_compared_with_nothing() -> None:
    method, study = own_method(EXAMPLE), find_study("fedsheafhn")
    runs = planned_runs(study, method, CORA_10, {})
    database = FakeDatabase()
    assert runs[0].spec
    database.add("", 0, [70] * 10, spec=runs[0].spec)
    with pytest.raises(RequestError, match="nothing to compare"):
        compare(database, study, method, runs)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-d", "cora", "--set", "protocol.rounds=8"], "only method.* can be set"),
        (["-d", "cora", "--set", "method.temprature=8"], "method.temprature"),
        (["-d", "coar"], "did you mean 'cora'"),
        (["-d", "cora", "--study", "fedhng"], "did you mean 'fedhgn'"),
        (["-d", "cora", "-k", "11"], "did you mean '10'"),
    ],
)
def test_a_wrong_request_is_one_line_and_nothing_is_written(
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("BENCH_HOME", str(tmp_path / "home"))
    with pytest.raises(SystemExit) as ended:
        main(["compare", str(EXAMPLE), "--out", str(tmp_path / "out"), *arguments])
    error = capsys.readouterr().err
    assert ended.value.code == 2
    assert message in error
    assert error.count("\n") == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_the_example_is_run_and_stands_beside_the_shipped_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BENCH_HOME", str(tmp_path / "home"))
    asked = ["compare", str(EXAMPLE), "-d", "cora", "-k", "10", "--seed", "0", "--seed", "1"]
    for _ in range(2):  # the second time nothing is left to run
        with pytest.raises(SystemExit) as ended:
            main([*asked, "--out", str(tmp_path / "out")])
        printed = " ".join(capsys.readouterr().out.split())
        assert ended.value.code == 0
        assert "of 12" in printed  # eleven methods of the study, and this one
        assert (tmp_path / "out" / "fedsheafhn_ranking.md").exists()
    assert "[1/2]" not in printed
