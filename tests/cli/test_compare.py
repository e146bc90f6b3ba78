"""``bench compare``: one's own method beside those of a study."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
from stored_runs import MemoryStore, took

from bench import engine
from bench.comparison import asked, compare, methods_in, sentences
from bench.errors import RequestError
from bench.grids import Filters, Planned, expand, load_grid
from bench.report.request import Request
from bench.resolve import resolve
from bench.runner import fingerprint
from bench.runner.plan import Step, to_run
from bench.runner.run import Outcome, Sweep
from bench.store.tables import Stored
from bench.studies.study import Study

from .conftest import Bench

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "clustered.py"
CORA_10 = Filters(("cora",), ("non-overlapping",), (10,), (), (0, 1))


pytestmark = pytest.mark.usefixtures("plugins")


def example(filters: Filters = CORA_10, **overrides: float) -> tuple[Study, list[Planned]]:
    """The example of the documentation on some data sets."""
    (method,) = methods_in(EXAMPLE)
    return asked(method, filters, {f"method.{name}": value for name, value in overrides.items()})


def test_the_standing_is_what_the_numbers_say() -> None:
    """Ten points above Local at every client, five below FedAvg at nine of ten and far above at one."""
    study, runs = example()
    assert [(run.names, run.spec.hyper) for run in runs] == [
        (("cora", "non-overlapping", 10, "clustered", seed), {"temperature": 0.2}) for seed in (0, 1)
    ]
    database = MemoryStore()
    for run in runs:
        cost = {"bytes_up": 30_000_000, "bytes_down": 10_000_000, "seconds": {"total": 2.0 + run.spec.seed}}
        database.add_run(run.spec, [70 + run.spec.seed] * 10, **cost)
    with pytest.raises(RequestError, match="nothing to compare"):
        compare(database, study, "clustered", runs)  # a method alone
    for run in runs:
        database.add("local", run.spec.seed, [60 + run.spec.seed] * 9 + [59])
        correct = [75 + run.spec.seed] * 9 + [20]
        database.add("fedavg", run.spec.seed, correct, hyper={"weights": "uniform"}, bytes_up=1_000_000)
    # Runs of the method in other settings and cells change nothing.
    other = runs[0].spec
    database.add_run(other.model_copy(update={"hyper": {"temperature": 1.0}}), [1] * 10)
    _, ranking, rows = compare(database, study, "clustered", runs)
    (own,) = rows[rows["method"] == "clustered"].to_dict("records")
    assert (own["mean"], own["n"], own["rank"], own["below"]) == (70.5, 2, 1, 0)
    # One client outweighs nine: the mean difference to FedAvg is (9 x -5 + 50.5) / 10.
    verdicts = rows.dropna(subset="verdict").set_index("method")["verdict"]
    assert verdicts.to_dict() == {"local": "better", "fedavg": "undecided"}
    assert (own["seconds"], own["megabytes"]) == (2.5, 40)
    place, difference = sentences("clustered", ranking, rows)
    assert "place 1 of 3, 0.0 clients below Local" in place
    assert "+0.55 points against FedAvg" in difference
    assert difference.endswith("undecided.")


def stored_like(runs: list[Planned], source: str) -> dict[str, Stored]:
    """The runs as done by the installed numerics versions and code of this hash."""
    code = {"engine_numerics": engine.NUMERICS, "source_hash": source}
    return {run.spec.hash: took(run.spec, 1.0, **code) for run in runs}


def test_the_lines_say_what_was_done_and_the_report_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bench: Bench
) -> None:
    """The command with made-up results: of three runs two are stored, one of them made by other code."""
    _, runs = example(replace(CORA_10, seeds=(0, 1, 2)))
    database = MemoryStore()
    for run in runs:
        database.add_run(run.spec, [90] * 10)
        for other, correct in (("local", 60), ("fedavg", 70)):
            hyper = {"weights": "uniform"} if other == "fedavg" else {}
            database.add(other, run.spec.seed, [correct] * 9 + [correct - 5], hyper=hyper)
    now = fingerprint.code("clustered").source
    rows = {**stored_like(runs[:1], "before"), **stored_like(runs[1:2], now)}
    swept: list[Sequence[Step]] = []
    reported: list[Request] = []

    def run(sweep: Sweep) -> Outcome:
        swept.append(sweep.plan)
        return Outcome({"done": 2}, 2, 0, {})

    monkeypatch.setattr("bench.contract.checks.check", lambda method: iter(()))
    monkeypatch.setattr("bench.store.store.stored_runs", lambda url: rows)
    monkeypatch.setattr(Sweep, "run", run)
    monkeypatch.setattr("bench.studies.shipped.opened_results", lambda url, **_: nullcontext(database))
    monkeypatch.setattr("bench.site.documents.build", lambda _, request, *__, **___: reported.append(request))
    ended = bench(f"compare {EXAMPLE} -d cora -k 10 --seed 0-2 --out {tmp_path / 'out'}")
    assert ended.code == 0
    assert [step.spec.seed for step in to_run(swept[0])] == [0, 2]
    lines = ended.out.splitlines()
    assert any(line.startswith("3 runs: 2 done, 1 missing; 2 to run, time ") for line in lines)
    assert "Report: " in " ".join(lines[-3:])
    assert max(map(len, lines)) <= 80
    assert (reported[0].studies, reported[0].datasets) == (("fedsheafhn",), ("cora",))
    assert {"clustered", "local", "fedavg"} <= set(reported[0].methods)


def test_images_are_compared_at_every_point_of_the_table_that_competes() -> None:
    """The method runs where the study's baseline does, as that does: also under another network."""
    study, runs = example(Filters(("cifar100-sample",), seeds=(0, 1)), temperature=0.5)
    specs = [run.spec for run in runs]
    assert {(spec.client.model, spec.protocol.rounds) for spec in specs} == {("cnn", 40), ("resnet18", 16)}
    assert {spec.hyper["temperature"] for spec in specs} == {0.5}
    (table,) = [one for one in study.experiments if one.grid == "fedaghn_reduced" and one.ranked]
    lines = {line.method: line for line in table.lines}
    # The table shows exactly the planned runs, at the points at which it shows the baseline's.
    assert {spec.hash for spec in specs} <= table.hashes
    places = {(column, point) for column, line, point in table.runs if line is lines["clustered"]}
    assert places == {(column, point) for column, line, point in table.runs if line is lines["local"]}

    database = MemoryStore()
    filters = Filters(("cifar100-sample",), methods=("local",), seeds=(0, 1))
    local = [run.spec for run in expand(load_grid("fedaghn_reduced"), filters)]
    for right, those in ((80, specs), (60, local)):
        for number, spec in enumerate(those):
            database.add_run(spec, [right + client % 3 - number for client in range(20)])
    *_, rows = compare(database, study, "clustered", runs)
    rows = rows.fillna({"verdict": ""})
    assert rows[["point", "method", "rank", "verdict"]].to_numpy().tolist() == [
        ["CNN", "clustered", 1, ""],
        ["CNN", "local", 2, "better"],
        ["ResNet-18", "clustered", 1, ""],
        ["ResNet-18", "local", 2, "better"],
    ]


def test_the_study_is_the_first_with_the_data_set() -> None:
    datasets = ("cora", "cora-whole", "coraca", "facebook", "photo", "cifar10-sample")
    studies = [example(Filters((name,)))[0].name for name in datasets]
    assert studies == ["fedsheafhn", "fedhgn", "fedhgn", "fedhgn", "fedsheafhn", "fedaghn"]


def test_several_tasks_have_a_mean_rank() -> None:
    """Ahead of Local by 10, 12, 14 and 16 points in four tasks: t = 13 / (2.58 / 2), p = 0.002."""
    study, runs = example(Filters(("cora",), seeds=(0,)))
    database = MemoryStore()
    for number, run in enumerate(runs):
        dataset, scenario, clients, _, seed = run.names
        database.add_run(run.spec, [70 + number + client % 2 for client in range(clients)])
        database.add_run(resolve(dataset, scenario, clients, "local", seed), [60 - number] * clients)
    _, ranking, rows = compare(database, study, "clustered", runs)
    assert rows["difference"].dropna().tolist() == pytest.approx([10.5, 12.5, 14.5, 16.5])
    *_, mean_rank, better = sentences("clustered", ranking, rows)
    assert "Over 4 tasks: mean rank 1.00 of 2" in mean_rank
    assert "significantly better than Local" in better


@pytest.mark.slow
def test_the_example_is_run_and_stands_beside_the_shipped_results(tmp_path: Path, bench: Bench) -> None:
    for _ in range(2):  # the second time nothing is left to run
        ended = bench(f"compare {EXAMPLE} -d cora -k 10 --seed 0 --seed 1 --out {tmp_path / 'out'}")
        printed = " ".join(ended.out.split())
        assert ended.code == 0
        assert re.search(r"place \d+ of 12,", printed)  # among eleven methods of the study and itself
        # Local's five shipped seeds stand beside the two of the method.
        assert re.search(r"│ Local │ \d+ │ 8\d\.\d\d ± \d\.\d\d │ 0-4 │ [+-]\d+\.\d\d │ \w+ │", printed)
        assert re.search(r"│ Clustered averaging │ \d+ │ \d\d\.\d\d ± \d\.\d\d │ 0-1 │ - │ - │", printed)
        assert (tmp_path / "out" / "fedsheafhn/ranking/table.md").exists()
    assert "[1/2]" not in printed
