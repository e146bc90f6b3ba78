"""Own and shipped results as one source: what is taken from where."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from stored_runs import MemoryStore, database, opened, result_of
from study_cells import cells_of, report_of
from toy_study import PlannedToy

from bench.engine import NUMERICS
from bench.engine.result import Code, RunResult
from bench.errors import RequestError
from bench.frames.graded_cells import WRITTEN
from bench.report.report import compose
from bench.report.request import Request
from bench.report.terminal import beside, brief, remarks, text_of
from bench.resolve import resolve
from bench.spec import Protocol, RunSpec
from bench.store.bundle import write_bundle
from bench.store.tables import Tables
from bench.studies import shipped
from bench.studies.shipped import merged
from bench.studies.study import STUDIES


def filled(*runs: tuple[str, int, int | None], **options: Any) -> MemoryStore:
    """A database with runs (method, seed, correct of 100 if any) of one client each."""
    database = MemoryStore()
    for method, seed, correct in runs:
        database.add(method, seed, None if correct is None else [correct], clients=1, **options)
    return database


def values(source: Tables) -> list[tuple[str, int, str, float | None]]:
    """Method, seed, origin and accuracy, if any, of every run, sorted."""
    runs = source.runs()
    rows = source.client_results(runs["id"], stage="trained", split="test", rule="last")
    by_run = dict(zip(rows["run_id"], rows["value"], strict=True))
    return sorted(
        (run["method"], run["seed"], run["origin"], by_run.get(run["id"])) for run in runs.to_dict("records")
    )


OWN_LOCAL, BUNDLE_LOCAL, BUNDLE_FEDAVG = (
    ("local", 7, "", 0.1),
    ("local", 0, "b", 0.2),
    ("fedavg", 0, "b", 0.4),
)
SHIPPED_RUNS = (("local", 0, 20), ("local", 1, 30), ("fedavg", 0, 40))


@pytest.mark.parametrize(
    ("own", "options", "expected"),
    [
        (  # seeds of one's own take the place of those shipped, and leave the others
            [("local", 7, 10), ("local", 1, 11)],
            {},
            [BUNDLE_FEDAVG, BUNDLE_LOCAL, ("local", 1, "", 0.11), OWN_LOCAL],
        ),
        # Results on other clients or of other numbers are not mixed.
        *(
            ([("local", 7, 10)], {name: value}, [BUNDLE_FEDAVG, OWN_LOCAL])
            for name, value in (
                ("partition_hash", "others"),
                ("code", Code(2, NUMERICS, "s")),
                ("code", Code(1, NUMERICS + 1, "s")),
            )
        ),
        # A run that came to no result takes no place; one that diverged is one, on clients unknown.
        *(
            (
                [("local", 0, None), ("local", 5, None)],
                {"state": state},
                [BUNDLE_FEDAVG, BUNDLE_LOCAL, ("local", 1, "b", 0.3), ("local", 5, "", None)],
            )
            for state in ("failed", "oom", "not_applicable")
        ),
        (
            [("local", 0, None)],
            {"state": "diverged"},
            [BUNDLE_FEDAVG, ("local", 0, "", None)],
        ),
        # Runs that were not made here stand back, unless nothing is shipped of them.
        *(
            (
                [("local", 7, correct), ("fedper", 0, correct)],
                options,
                [BUNDLE_FEDAVG, ("fedper", 0, "", correct and 0.5), BUNDLE_LOCAL, ("local", 1, "b", 0.3)],
            )
            for correct, options in ((50, {"bundle": "theirs"}), (None, {"state": "no_data"}))
        ),
        (  # other settings are another cell
            [("local", 0, 10)],
            {"protocol": Protocol(rounds=5)},
            [BUNDLE_FEDAVG, ("local", 0, "", 0.1), BUNDLE_LOCAL, ("local", 1, "b", 0.3)],
        ),
    ],
)
def test_what_is_taken_from_ones_own_runs_and_what_from_those_shipped(
    own: list[tuple[str, int, int | None]],
    options: dict[str, Any],
    expected: list[tuple[str, int, str, float | None]],
) -> None:
    assert values(merged(filled(*own, **options), [("b", filled(*SHIPPED_RUNS))])) == expected


def test_a_spec_in_two_bundles_is_taken_from_the_first() -> None:
    first, second = filled(("local", 0, 10)), filled(("local", 0, 20), ("local", 1, 30))
    assert values(merged(None, [("a", first), ("b", second)])) == [
        ("local", 0, "a", 0.1),
        ("local", 1, "b", 0.3),
    ]


def test_ids_lead_to_the_run_they_name() -> None:
    own, bundle = MemoryStore(), MemoryStore()
    own.add("local", 0, [[1], [10]], clients=1)
    own.add("local", 1, [[2], [20]], clients=1)
    bundle.add("local", 1, [[9], [90]], clients=1)  # the spec is one's own
    bundle.add("fedavg", 0, [[3], [30]], clients=1)
    source = merged(own, [("b", bundle)])
    runs = source.runs()
    assert list(runs["id"]) == [1, 2, 3]
    assert list(runs["method"]) == ["local", "local", "fedavg"]
    curves = source.curves([3, 1, 2, 4, 0], "test")
    assert {key: curve.tolist() for key, curve in curves.items()} == {
        (run, stage): [[run], [10 * run]] for run in (1, 2, 3) for stage in ("received", "trained")
    }
    rows = source.client_results([3, 1, 99], stage="received", split="test", rule="last")
    assert dict(zip(rows["run_id"], rows["value"], strict=True)) == {1: 0.1, 3: 0.3}
    assert list(source.table("environments")["id"]) == [1]
    assert set(runs["environment_id"]) == {1}
    assert source.artefacts([4, 0], "loss") == {}
    assert list(source.runs(method="fedavg", origin="b")["id"]) == [3]
    with pytest.raises(RequestError, match=r"column of runs 'orgin'.*did you mean 'origin'"):
        source.runs(orgin="b")


def test_environments_are_told_apart() -> None:
    pythons = {"local": "3.11", "fedavg": "3.12", "fedper": "3.11"}
    own, first, second = (
        filled((method, 0, 1), environment={"python": python}) for method, python in pythons.items()
    )
    source = merged(own, [("b", first), ("c", second)])
    texts = source.table("environments").set_index("id")["description"].map(json.loads)
    used = dict(zip(source.runs()["method"], source.runs()["environment_id"].map(texts), strict=True))
    assert {method: text["python"] for method, text in used.items()} == pythons


# bench report ---------------------------------------------------------------------------------------


def runs(method: str, *seeds: int) -> list[tuple[RunSpec, RunResult]]:
    """Done runs of ten clients with 10 samples; 5 + seed of them right."""
    specs = {seed: resolve("cora", "non-overlapping", 10, method, seed) for seed in seeds}
    return [
        (spec, result_of([5 + seed] * 10, samples=10, partition_hash="p")) for seed, spec in specs.items()
    ]


@pytest.fixture
def measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with one bundle, ``first``, of the two runs of Local that ``a.db`` has, too; and an empty
    ``BENCH_HOME``.
    """
    with opened(tmp_path / "a.db", runs("local", 0, 1)) as store:
        write_bundle(store, store.runs(), tmp_path / "measured" / "first")
    (tmp_path / "home").mkdir()
    monkeypatch.setenv("BENCH_HOME", str(tmp_path / "home"))
    return tmp_path / "measured"


def cells(measured: Path, url: str | None = None, own: bool = False, shown: bool = False) -> pd.DataFrame:
    """The measured cells of the first table; with ``shown`` of what comes with the suite alone."""
    with shipped.opened_results(url, own, folder=measured, shipped=shown) as source:
        found = cells_of(PlannedToy, "table1", source)
    return found[(found["n"] > 0) & found["primary"] & (found["comparison_number"] == 0)]


def test_a_fresh_clone_shows_what_is_shipped(measured: Path, tmp_path: Path) -> None:
    fresh = cells(measured)
    local = fresh.loc[fresh["method"] == "local", ["n", "mean", "std", "origin"]].to_numpy().tolist()
    assert local == [[2, pytest.approx(55), pytest.approx(50**0.5), "shipped: first"]]  # 50 and 60 %
    assert list((tmp_path / "home").iterdir()) == []
    own = cells(measured, f"sqlite:///{tmp_path / 'a.db'}", own=True)
    assert set(own["origin"]) == {"own"}
    columns = [name for name in WRITTEN if name != "origin"]
    pd.testing.assert_frame_equal(own[columns], fresh[columns])


@pytest.mark.slow
@pytest.mark.parametrize("request_", [Request(), Request(datasets=("cora",))], ids=["all", "cora"])
def test_all_that_ships_takes_at_most_sixty_lines(request_: Request) -> None:
    with shipped.opened_results(None, own=False, shipped=True) as source:
        found = compose(source, request_, STUDIES.all())
    text = text_of(brief(found)) + remarks(found) + beside(found)
    assert text.count("\n") <= 60
    assert re.search(r"Fed\w+.*: \d+ of \d+$", text, re.MULTILINE), "how many published values are measured"


def test_own_runs_stand_beside_shipped_ones(measured: Path, tmp_path: Path) -> None:
    database(tmp_path / "home" / "bench.db", [*runs("fedavg", 3, 4), *runs("local", 2)])
    numbers = cells(measured).set_index("method")[["n", "mean"]].T.to_dict("list")
    # Seeds 0 and 1 of Local are shipped: 50, 60 and 70 %; of FedAvg 80 and 90 %.
    assert numbers == {
        "local": [3, pytest.approx(60)],
        "fedavg": [2, pytest.approx(85)],
        "fedavg_ft": [2, pytest.approx(85)],
    }
    assert set(cells(measured, shown=True)["method"]) == {"local"}
    with shipped.opened_results(None, own=False, folder=measured) as source:
        part = report_of(source, tmp_path / "out", study=PlannedToy)
        assert (part.runs["origin"] != "").sum() == 2


def test_nothing_to_show_is_one_line(
    measured: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def refusal(url: str | None = None, own: bool = False) -> str:
        with pytest.raises(RequestError) as error:
            cells(measured, url, own)
        assert "\n" not in str(error.value)
        return str(error.value)

    assert "run 'bench sweep' first" in refusal(own=True)
    with pytest.raises(RequestError, match="--shipped"):
        cells(measured, own=True, shown=True)
    assert "run 'bench sweep' first" in refusal(f"sqlite:///{tmp_path / 'none.db'}")
    (measured / "first" / "curves.parquet").unlink()
    assert "file missing" in refusal()
    shutil.rmtree(measured)
    assert "no database at" in refusal()
