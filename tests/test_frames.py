"""``bench.cells`` and the other frames, as a notebook calls them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
from stored_runs import MemoryStore, result_of
from stored_runs import database as stored

import bench
from bench.engine.result import RunResult
from bench.errors import RequestError
from bench.frames import whole_frames
from bench.frames.whole_frames import frames_of_studies, whole_frame
from bench.resolve import resolve
from bench.spec import RunSpec
from bench.studies.shipped import opened_results
from bench.studies.study import STUDIES

pytestmark = pytest.mark.usefixtures("home")

COUNTS = {0: [[10, 30], [70, 80]], 1: [[10, 30], [72, 82]]}
"""Two clients of a hundred test samples each, by seed."""

FAILED = resolve("cora", "non-overlapping", 10, "fedavg", 0)


def local(seed: int) -> RunSpec:
    return resolve("cora", "non-overlapping", 10, "local", seed)


def database() -> MemoryStore:
    """The runs of ``COUNTS``, and one that failed."""
    found = MemoryStore()
    for seed, correct in COUNTS.items():
        found.add_run(local(seed), correct)
    found.add_run(FAILED, None, state="failed", reason="x")
    return found


@pytest.fixture(scope="module")
def every() -> dict[str, pd.DataFrame]:
    """Every frame of ``database``."""
    stored = {name: whole_frame(name, database()) for name in ("runs", "clients", "curves")}
    return {**stored, **frames_of_two(database())}


def frames_of_two(source: MemoryStore) -> dict[str, pd.DataFrame]:
    """The frames of cells and ranks of two studies."""
    two = {name: STUDIES.named(name) for name in ("fedpub", "fedsheafhn")}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(STUDIES, "all", lambda: two)
        return frames_of_studies(source)


def test_runs_clients_and_curves_are_one_row_each(every: dict[str, pd.DataFrame]) -> None:
    runs = every["runs"]
    assert sorted(runs["state"]) == ["done", "done", "failed"]
    assert {json.loads(text)["protocol.rounds"] for text in runs["settings"]} == {100}
    assert runs.sort_values("test")["test"].tolist()[:2] == [75.0, 77.0]  # means of 70 and 80, 72 and 82
    assert runs.loc[runs["state"] == "failed", "test"].isna().all()
    clients = every["clients"]
    here = clients[
        (clients["stage"] == "trained") & (clients["rule"] == "last") & (clients["split"] == "test")
    ]
    assert sorted(here["accuracy"]) == [70, 72, 80, 82]
    curves = every["curves"]
    curves = curves[(curves["stage"] == "trained") & (curves["split"] == "test") & (curves["seed"] == 1)]
    assert dict(zip(curves["evaluation"], curves["accuracy"], strict=True)) == {1: 20.0, 2: 77.0}


def test_ranks_are_those_of_the_studies(every: dict[str, pd.DataFrame]) -> None:
    found = database()
    for seed, correct in ((0, [60, 61]), (1, [63, 60])):
        found.add_run(resolve("cora", "non-overlapping", 10, "fedper", seed), correct)
    table = frames_of_two(found)["ranks"].set_index("method")
    assert set(table["study"]) == {"fedsheafhn"}
    assert table["rank"].to_dict() == {"local": 1, "fedper": 2}
    assert table["minus_baseline"].to_dict() == {"local": 0, "fedper": 61 - 76}
    assert every["ranks"].empty  # one method has no rank


@pytest.fixture
def kept(home: Path, every: dict[str, pd.DataFrame]) -> None:
    """A home with the same runs, whose cells were collected already."""
    runs = [(local(seed), result_of(correct)) for seed, correct in COUNTS.items()]
    stored(home / "bench.db", [*runs, (FAILED, RunResult(state="failed", reason="x"))])
    file = home / "frames" / f"cells-{whole_frames.stamp(None, True)}.parquet"
    file.parent.mkdir()
    every["cells"].to_parquet(file)


def test_a_notebook_reads_them_without_torch(kept: None) -> None:
    script = (
        "import sys, bench; assert set(bench.FRAMES) <= set(dir(bench));"
        "found = bench.cells(own=True, dataset='cora', method=['local'], clients=10);"
        "tables = set(found['document'][found['n'] > 0]);"
        "print('table1' in tables, 'torch' in sys.modules, 'primary' in found)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False", "False"]
    assert list(bench.clients(own=True, method="local", rule="last", seed=0)["accuracy"]) == [70, 80]
    assert len(bench.curves(own=True, method="local")) == 4


def test_they_are_collected_anew_once_the_database_or_a_page_s_look_changes(home: Path) -> None:
    before = whole_frames.stamp(None, True)
    home.mkdir()
    (home / "bench.db").touch()
    with_database = whole_frames.stamp(None, True)
    look = next(path for path in whole_frames._sources() if path.suffix == ".j2")
    status = look.stat()
    try:
        os.utime(look, (status.st_atime, status.st_mtime + 1))
        assert len({before, with_database, whole_frames.stamp(None, True)}) == 3
    finally:
        os.utime(look, ns=(status.st_atime_ns, status.st_mtime_ns))


def test_frames_that_ship_are_read_where_nothing_is_the_user_s_own(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped = pd.DataFrame({"method": ["shipped"]})
    monkeypatch.setattr(whole_frames, "SHIPPED_FOLDER", tmp_path)
    monkeypatch.setattr(
        whole_frames, "frames_of_studies", lambda source: {"ranks": shipped.assign(method="own")}
    )
    shipped.to_parquet(tmp_path / "ranks.parquet")
    assert bench.ranks()["method"].tolist() == ["shipped"]
    (home / "tuned").mkdir(parents=True, exist_ok=True)
    (home / "tuned" / "mine.json").touch()
    assert bench.ranks()["method"].tolist() == ["own"]
    (kept_file,) = home.glob("frames/ranks-*")
    (home / "tuned" / "mine.json").write_text("{}")
    bench.ranks()
    assert list(home.glob("frames/ranks-*")) != [kept_file]  # one of each name


@pytest.mark.slow
def test_frames_that_ship_are_what_is_collected() -> None:
    with opened_results(None, own=False) as source:
        collected = frames_of_studies(source)
    for name, rows in collected.items():
        shipped = pd.read_parquet(whole_frames.SHIPPED_FOLDER / f"{name}.parquet")
        pd.testing.assert_frame_equal(shipped, rows)  # else: make frames
    key = ["study", "document", "table", "dataset", "scenario", "clients", "line", "point", "measure"]
    assert not collected["cells"].duplicated(key).any()


def test_filters_take_collections_and_may_leave_an_empty_frame(kept: None) -> None:
    every = bench.runs(own=True)
    assert set(every["origin"]) == {"own"}
    seeds = [set(bench.runs(own=True, seed=range(start, 2))["seed"]) for start in range(3)]
    assert seeds == [{0, 1}, {1}, set()]
    together = bench.runs(own=True, method="local", state="failed")
    assert together.empty
    assert list(together) == list(every)
    with pytest.raises(KeyError, match="datset"):
        bench.cells(own=True, datset="cora")
    with pytest.raises(RequestError, match="no-such"):
        bench.runs(db="sqlite:////no-such/place.db", own=True)
