"""A folder of results with one bundle a study and data set."""

from __future__ import annotations

from pathlib import Path

import pytest
from study_cells import part_of

from bench.engine.result import RunResult
from bench.errors import RequestError
from bench.grids import expand, load_grid
from bench.reports.fedpub import FedPubProtocol
from bench.reports.fedsheafhn import FedSheafHN
from bench.resolve import resolve
from bench.spec import RunSpec
from bench.store.bundle import Bundle
from bench.studies.results_folder import add_runs
from tests.stored_runs import bundle_of, done, spec_of

PLANNED = [run.spec for run in expand(load_grid("quickstart"))][:2]
COMMITTED = next(run.spec for run in expand(load_grid("fedpub_committed_clients")))
TUNED = resolve("citeseer", "non-overlapping", 10, "fedavg", 0, {"client.learning_rate": 0.125})
SHOWN = part_of(FedPubProtocol, "committed_clients", grids=())
STUDIES = {"fedpub": SHOWN, "fedsheafhn": part_of(FedSheafHN)}


def run(spec: RunSpec, shift: int = 0) -> tuple[RunSpec, RunResult]:
    """A run that is done, on clients of its own data set."""
    return spec, done(spec.clients, shift, partition_hash=f"{spec.dataset} {spec.scenario} {spec.clients}")


def contents(folder: Path) -> dict[str, dict[str, str]]:
    """Bundle -> the state of its runs by spec hash."""
    found = {}
    for path in folder.glob("*/*"):
        runs = Bundle(path).runs()
        found[path.relative_to(folder).as_posix()] = dict(zip(runs["spec_hash"], runs["state"], strict=True))
    return found


def test_runs_go_to_their_study_and_data_set_and_replace_those_of_the_same_spec(tmp_path: Path) -> None:
    first, second = PLANNED
    folder = tmp_path / "measured"
    one = Bundle(bundle_of(tmp_path / "one", [run(first), (second, RunResult("oom")), run(TUNED)]))
    assert add_runs(one, folder, STUDIES) == {"fedsheafhn/citeseer": 1, "fedsheafhn/cora": 2}
    more = [(first, RunResult("oom")), run(second, shift=1), run(COMMITTED)]
    add_runs(Bundle(bundle_of(tmp_path / "more", more)), folder, STUDIES)
    assert contents(folder) == {
        "fedsheafhn/cora": {first.hash: "done", second.hash: "done"},
        "fedsheafhn/citeseer": {TUNED.hash: "done"},
        "fedpub/cora": {COMMITTED.hash: "done"},
    }
    cora = Bundle(folder / "fedsheafhn/cora")
    shifts = {run: cora.curves([run], "test")[run, "trained"][0, 0] for run in cora.runs()["id"]}
    assert dict(zip(cora.runs()["spec_hash"], shifts.values(), strict=True)) == {
        first.hash: 0,
        second.hash: 1,
    }


def test_the_same_runs_give_the_same_bytes_in_whatever_order_they_came(tmp_path: Path) -> None:
    bundles = [Bundle(bundle_of(tmp_path / spec.hash, [run(spec)])) for spec in PLANNED]
    for name, order in (("forth", bundles), ("back", bundles[::-1])):
        for bundle in order:
            add_runs(bundle, tmp_path / name, STUDIES)
    for path in (tmp_path / "forth").rglob("*.*"):
        assert (tmp_path / "back" / path.relative_to(tmp_path / "forth")).read_bytes() == path.read_bytes()


def test_a_data_set_of_no_study_has_no_bundle(tmp_path: Path) -> None:
    other = spec_of().model_copy(update={"dataset": "mine"})
    with pytest.raises(RequestError, match="mine"):
        add_runs(Bundle(bundle_of(tmp_path / "one", [run(other)])), tmp_path / "to", STUDIES)
    assert not (tmp_path / "to").exists()
