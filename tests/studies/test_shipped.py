"""Own and shipped results as one source: what is taken from where."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from stored_runs import MemoryStore, save
from study_cells import report_of
from toy_study import PlannedToy

from bench.cli.main import main
from bench.cli.report import _declared_names, check_name
from bench.engine.result import RunResult
from bench.errors import RequestError
from bench.report.request import Request
from bench.resolve import resolve
from bench.spec import Protocol
from bench.store import open_store
from bench.store.bundle import write_bundle
from bench.studies import shipped
from bench.studies.source import MergedSource


def filled(*runs: tuple[str, int, int | None], **options: Any) -> MemoryStore:
    """A database with runs (method, seed, correct of 100 if any) of one client each."""
    database = MemoryStore()
    for method, seed, correct in runs:
        database.add(method, seed, None if correct is None else [correct], clients=1, **options)
    return database


def values(source: MergedSource) -> list[tuple[str, int, str, float | None]]:
    """Method, seed, origin and accuracy, if any, of every run, sorted."""
    runs = source.runs()
    rows = source.client_results(runs["id"], stage="trained", split="test", rule="last")
    by_run = dict(zip(rows["run_id"], rows["value"], strict=True))
    return sorted(
        (run["method"], run["seed"], run["origin"], by_run.get(run["id"])) for run in runs.to_dict("records")
    )


def test_seeds_of_ones_own_take_the_place_of_those_shipped_and_leave_the_others() -> None:
    own = filled(("local", 7, 10), ("local", 1, 11))
    bundle = filled(("local", 0, 20), ("local", 1, 30), ("fedavg", 0, 40))
    assert values(MergedSource(own, [("b", bundle)])) == [
        ("fedavg", 0, "b", 0.4),
        ("local", 0, "b", 0.2),
        ("local", 1, "", 0.11),
        ("local", 7, "", 0.1),
    ]


@pytest.mark.parametrize(
    "kind", [{"partition_hash": "others"}, {"method_numerics": 2}, {"engine_numerics": 2}], ids=list
)
def test_results_on_other_clients_or_of_other_numbers_are_not_mixed(kind: dict[str, Any]) -> None:
    own = filled(("local", 7, 10), **kind)
    bundle = filled(("local", 0, 20), ("local", 7, 30), ("fedavg", 0, 40))
    assert values(MergedSource(own, [("b", bundle)])) == [("fedavg", 0, "b", 0.4), ("local", 7, "", 0.1)]


@pytest.mark.parametrize("state", ["failed", "oom", "not_applicable"])
def test_a_run_that_came_to_no_result_takes_no_place(state: str) -> None:
    own = filled(("local", 0, None), ("local", 5, None), state=state)
    bundle = filled(("local", 0, 20))
    assert values(MergedSource(own, [("b", bundle)])) == [
        ("local", 0, "b", 0.2),
        ("local", 5, "", None),  # nothing is shipped of this seed
    ]


def test_a_run_that_diverged_is_a_result() -> None:
    own, bundle = filled(("local", 0, None), state="diverged"), filled(("local", 0, 20))
    assert values(MergedSource(own, [("b", bundle)])) == [("local", 0, "", None)]


def test_other_settings_are_another_cell() -> None:
    own = filled(("local", 0, 10), protocol=Protocol(rounds=5))
    own.add("fedavg", 0, None, clients=1, state="failed")
    bundle = filled(("local", 0, 20), ("fedavg", 1, 30))
    merged = MergedSource(own, [("b", bundle)])
    assert sorted(zip(merged.runs()["method"], merged.runs()["origin"], strict=True)) == [
        ("fedavg", ""),
        ("fedavg", "b"),
        ("local", ""),
        ("local", "b"),
    ]


@pytest.mark.parametrize(
    ("correct", "options"),
    [(50, {"bundle": "theirs"}), (None, {"state": "no_data"})],
    ids=["imported", "no data"],
)
def test_runs_that_were_not_made_here_stand_back(correct: int | None, options: dict[str, str]) -> None:
    own = filled(("local", 7, correct), ("fedper", 0, correct), **options)
    own.add("fedavg", 0, [15], clients=1)
    bundle = filled(("local", 0, 20), ("fedavg", 1, 40))
    assert values(MergedSource(own, [("b", bundle)])) == [
        ("fedavg", 0, "", 0.15),
        ("fedavg", 1, "b", 0.4),
        ("fedper", 0, "", correct and 0.5),  # nothing is shipped of it
        ("local", 0, "b", 0.2),
    ]


def test_a_partition_for_every_seed_is_one_cell() -> None:
    own, bundle = MemoryStore(), MemoryStore()
    own.add("local", 0, [1], clients=1, protocol=Protocol(partition_seed=0))
    for seed in (0, 1, 2):
        bundle.add("local", seed, [2], clients=1, protocol=Protocol(partition_seed=seed))
        bundle.add("local", seed, [3], clients=1)
    assert [value[1:] for value in values(MergedSource(own, [("b", bundle)]))] == [
        (0, "", 0.01),
        (0, "b", 0.03),
        (1, "b", 0.02),
        (1, "b", 0.03),
        (2, "b", 0.02),
        (2, "b", 0.03),
    ]


def test_a_spec_in_two_bundles_is_taken_from_the_first() -> None:
    first, second = filled(("local", 0, 10)), filled(("local", 0, 20), ("local", 1, 30))
    assert values(MergedSource(None, [("a", first), ("b", second)])) == [
        ("local", 0, "a", 0.1),
        ("local", 1, "b", 0.3),
    ]


def test_ids_lead_to_the_run_they_name() -> None:
    own, bundle = MemoryStore(), MemoryStore()
    own.add("local", 0, [[1], [10]], clients=1)
    own.add("local", 1, [[2], [20]], clients=1)
    bundle.add("local", 1, [[9], [90]], clients=1)  # the spec is one's own
    bundle.add("fedavg", 0, [[3], [30]], clients=1)
    merged = MergedSource(own, [("b", bundle)])
    runs = merged.runs()
    assert list(runs["id"]) == [1, 2, 3]
    assert list(runs["method"]) == ["local", "local", "fedavg"]
    curves = merged.curves([3, 1, 2, 4, 0], "test")
    assert {key: curve.tolist() for key, curve in curves.items()} == {
        (run, stage): [[run], [10 * run]] for run in (1, 2, 3) for stage in ("received", "trained")
    }
    rows = merged.client_results([3, 1, 99], stage="received", split="test", rule="last")
    assert dict(zip(rows["run_id"], rows["value"], strict=True)) == {1: 0.1, 3: 0.3}
    assert list(merged.environments()["id"]) == [1]
    assert set(runs["environment_id"]) == {1}
    for wrong in (4, 0):
        with pytest.raises(KeyError):
            merged.artefact(wrong, "loss")
    assert list(merged.runs(method="fedavg", origin="b")["id"]) == [3]
    with pytest.raises(RequestError, match=r"column of runs 'orgin'.*did you mean 'origin'"):
        merged.runs(orgin="b")


def test_environments_are_told_apart() -> None:
    own, first, second = (
        filled((method, 0, 1), environment={"python": python})
        for method, python in (("local", "3.11"), ("fedavg", "3.12"), ("fedper", "3.11"))
    )
    merged = MergedSource(own, [("b", first), ("c", second)])
    texts = merged.environments().set_index("id")["description"].map(json.loads)
    used = dict(zip(merged.runs()["method"], merged.runs()["environment_id"].map(texts), strict=True))
    assert {method: text["python"] for method, text in used.items()} == {
        "local": "3.11",
        "fedavg": "3.12",
        "fedper": "3.11",
    }


# bench report ---------------------------------------------------------------------------------------


def store_runs(url: str, method: str, seeds: range) -> None:
    """Done runs of two clients with 10 samples; 5 + seed of them right."""
    with open_store(url, create=True) as store:
        for seed in seeds:
            spec = resolve("cora", "non-overlapping", 10, method, seed)
            rows = np.full((spec.protocol.rounds, 10), 5 + seed, np.int32)
            splits = ("train", "val", "test")
            save(
                store,
                spec,
                RunResult(
                    "done",
                    correct={(stage, split): rows for stage in ("received", "trained") for split in splits},
                    samples={split: np.full(10, 10, np.int32) for split in splits},
                    partition_hash="abcdef0123",
                ),
                engine_numerics=1,
            )


def report(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(["report", *arguments])
    printed = capsys.readouterr()
    return int(ended.value.code or 0), printed.out, printed.err


@pytest.fixture
def measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one bundle, ``first``, of the two runs of Local that ``a.db`` has, too; and an empty
    ``BENCH_HOME``.
    """
    store_runs(f"sqlite:///{tmp_path / 'a.db'}", "local", range(2))
    with open_store(f"sqlite:///{tmp_path / 'a.db'}", create=False) as store:
        write_bundle(store, store.runs(), tmp_path / "measured" / "first")
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("BENCH_HOME", str(tmp_path / "home"))
    return tmp_path / "measured"


def report_on(
    measured: Path, out: Path, url: str | None = None, own: bool = False, only_shipped: bool = False
) -> int:
    """Write a report on Cora, 10 clients; how many of its runs come with the suite."""
    request = Request(datasets=("cora",), clients=(10,), scenarios=("non-overlapping",))
    with shipped.opened_results(url, own, folder=measured, shipped=only_shipped) as source:
        return report_of(source, out, request, PlannedToy).shipped


def test_a_fresh_clone_shows_what_is_shipped(measured: Path, tmp_path: Path) -> None:
    assert report_on(measured, tmp_path / "shipped") == 2
    # 50 and 60 %: sample deviation sqrt(50)
    assert "55.00 ± 7.07" in (tmp_path / "shipped/toy/table1/table.md").read_text(encoding="utf-8")
    assert list((tmp_path / "home").iterdir()) == []
    assert report_on(measured, tmp_path / "own", f"sqlite:///{tmp_path / 'a.db'}", own=True) == 0
    kinds = ("csv", "png")
    names = {
        path.relative_to(tmp_path / "own") for kind in kinds for path in (tmp_path / "own").rglob(f"*.{kind}")
    }
    assert names
    for name in names:
        own, ours = ((tmp_path / folder / name).read_bytes() for folder in ("own", "shipped"))
        assert own == ours.replace(b",shipped: first\n", b",own\n")  # who made the runs


@pytest.mark.timeout(900)  # three reports
@pytest.mark.slow
def test_all_that_ships_takes_at_most_sixty_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("BENCH_HOME", str(tmp_path / "home"))
    for words in ((), ("-d", "cora"), ("--study", "fedhgn")):
        code, text, _ = report(capsys, *words, "--out", str(tmp_path / "out"))
        assert code == 0
        for page in (tmp_path / "out").glob("*/*/index.html"):
            check_name(
                f"{page.parts[-3]}/{page.parts[-2]}", _declared_names()
            )  # --print takes every document
        assert text.count("\n") <= 60
        assert re.search(r"Fed\w+.*: \d+ of \d+$", text, re.MULTILINE), (
            "how many published values are measured"
        )


def test_own_runs_stand_beside_shipped_ones(measured: Path, tmp_path: Path) -> None:
    store_runs(f"sqlite:///{tmp_path / 'home' / 'bench.db'}", "fedavg", range(3, 5))
    store_runs(f"sqlite:///{tmp_path / 'home' / 'bench.db'}", "local", range(2, 3))
    assert report_on(measured, tmp_path / "out") == 2
    cells = pd.read_csv(tmp_path / "out" / "cells.csv", dtype=str)
    ran = cells[cells["n"] != "0"]
    assert set(zip(ran["method"], ran["n"], ran["mean"], strict=True)) >= {
        ("local", "3", "60.0000"),  # seeds 0 and 1 are shipped: 50, 60 and 70 %
        ("fedavg", "2", "85.0000"),
    }
    assert report_on(measured, tmp_path / "shipped", only_shipped=True) == 2
    cells = pd.read_csv(tmp_path / "shipped" / "cells.csv", dtype=str)
    assert set(cells.loc[cells["n"] != "0", "method"]) == {"local"}


def test_nothing_to_show_is_one_line(measured: Path, tmp_path: Path) -> None:
    def refusal(url: str | None = None, own: bool = False) -> str:
        with pytest.raises(RequestError) as error:
            report_on(measured, tmp_path / "out", url, own)
        assert "\n" not in str(error.value)
        return str(error.value)

    assert "run 'bench sweep' first" in refusal(own=True)
    with pytest.raises(RequestError, match="--shipped"):
        report_on(measured, tmp_path / "out", own=True, only_shipped=True)
    assert "run 'bench sweep' first" in refusal(f"sqlite:///{tmp_path / 'none.db'}")
    (measured / "first" / "curves.parquet").unlink()
    assert "first: curves.parquet: " in refusal()
    shutil.rmtree(measured)
    assert "no database at" in refusal()
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fedcog", "fedgcn_2hop"])
def test_a_row_that_several_clients_get_is_sent_up_once(
    method: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Earlier runs counted it once for each of them, and no version tells these apart."""
    monkeypatch.setenv("BENCH_HOME", str(tmp_path))
    with shipped.opened_results(None, own=False) as source:
        runs = source.runs(method=method)
    assert len(runs)
    assert (runs["bytes_up"] < runs["bytes_down"]).all()
