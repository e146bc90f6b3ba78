"""Runs for experiment trackers: what they hold is what is stored, in every tracker that is installed."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stored_runs import done, opened, spec_of

from bench.engine.result import RunResult
from bench.errors import RequestError
from bench.store import Store
from bench.store.trackers import ADAPTERS, TrackedRun, export_to_tracker, tracked_runs

RIGHT = (0, 1, 2)
"""Correct predictions of either client in each round, of 10 and 11 samples; see ``done``."""

MEANS = [(right / 10 + right / 11) / 2 for right in RIGHT]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A finished run, one that ran out of memory, and one that failed."""
    runs = [(spec_of(), done()), (spec_of(seed=1), RunResult("oom", reason="8 GB"))]
    with opened(tmp_path / "a.db", [*runs, (spec_of(seed=2), RunResult("failed"))]) as opened_store:
        yield opened_store


def test_a_tracked_run_is_the_stored_one(store: Store) -> None:
    finished, ended, _ = tracked_runs(store, store.runs())
    assert finished.name == "cora/non-overlapping/2/local/0"
    assert finished.group == ended.group == spec_of().cell
    assert finished.settings["protocol.rounds"] == 3
    assert (finished.settings["method"], finished.settings["seed"]) == ("local", 0)
    assert (finished.tags["spec_hash"], finished.tags["state"]) == (spec_of().hash, "done")
    for stage in ("received", "trained"):
        assert finished.curves[f"accuracy/test/{stage}"] == pytest.approx(MEANS)
        assert finished.summary[f"selected/last/test/{stage}"] == pytest.approx(MEANS[2])
    assert finished.curves["loss/train"] == [1.0, 0.5, 0.25]
    assert (finished.summary["seconds_total"], finished.summary["bytes_up"]) == (0.1, 123)
    assert (ended.tags["state"], ended.tags["reason"], ended.curves) == ("oom", "8 GB", {})


def test_clients_without_samples_do_not_count(tmp_path: Path) -> None:
    result = done()
    result.samples["test"] = np.array([0, 4], np.int32)
    for stage in ("received", "trained"):
        result.correct[stage, "test"] = np.array([[0, 1], [0, 3]], np.int32)
        for split in ("train", "val"):
            result.correct[stage, split] = result.correct[stage, split][:2]
    with opened(tmp_path / "b.db", [(spec_of(), result)]) as store:
        (run,) = tracked_runs(store, store.runs())
    assert run.curves["accuracy/test/trained"] == [0.25, 0.75]


def test_curves_of_different_lengths_keep_their_rows() -> None:
    run = TrackedRun("", "", 0.0, {}, {}, {}, {"long": [1.0, 2.0, 3.0], "short": [7.0]})
    assert list(run.steps()) == [(0, {"long": 1.0, "short": 7.0}), (1, {"long": 2.0}), (2, {"long": 3.0})]


# What each tracker reads of its own files: the curve of the test accuracy and settings of the finished run --


def mlflow_reads(folder: Path) -> tuple[list[float], str]:
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=folder.as_uri())
    (experiment,) = client.search_experiments()
    runs = {run.info.run_name: run for run in client.search_runs([experiment.experiment_id])}
    assert len(runs) == 2
    assert runs["cora/non-overlapping/2/local/1"].info.status == "FAILED"
    run = runs["cora/non-overlapping/2/local/0"]
    history = client.get_metric_history(run.info.run_id, "accuracy/test/trained")
    return [point.value for point in sorted(history, key=lambda point: point.step)], run.data.params["method"]


def tensorboard_reads(folder: Path) -> tuple[list[float], str]:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.plugins.hparams.plugin_data_pb2 import HParamsPluginData

    assert len(list(folder.iterdir())) == 2
    (run,) = (path for path in folder.iterdir() if "_local_0_" in path.name)
    events = EventAccumulator(str(run))
    events.Reload()
    points = events.Scalars("accuracy/test/trained")
    assert [point.step for point in points] == [0, 1, 2]
    content = events.SummaryMetadata("_hparams_/session_start_info").plugin_data.content
    settings = HParamsPluginData.FromString(content).session_start_info.hparams
    return [point.value for point in points], settings["method"].string_value


def wandb_records(file: Path) -> Iterator[bytes]:
    """The records of an offline run: a log of chunks (checksum, length, kind, data) in blocks of 32 KiB."""
    data, record = file.read_bytes(), b""
    at = 7
    while at + 7 <= len(data):
        if 32_768 - at % 32_768 < 7:
            at += 32_768 - at % 32_768
            continue
        size, kind = int.from_bytes(data[at + 4 : at + 6], "little"), data[at + 6]
        record += data[at + 7 : at + 7 + size]
        at += 7 + size
        if kind in (1, 4):  # whole, or the last chunk
            yield record
            record = b""


def wandb_reads(folder: Path) -> tuple[list[float], str]:
    from wandb.proto.wandb_internal_pb2 import Record

    files = sorted(folder.glob("wandb/offline-run-*/run-*.wandb"))
    assert len(files) == 2
    for file in files:
        config: dict[str, Any] = {}
        values = []
        for record in map(Record.FromString, wandb_records(file)):
            config |= {item.key: json.loads(item.value_json) for item in record.run.config.update}
            row = {item.key or "/".join(item.nested_key): item.value_json for item in record.history.item}
            values += [json.loads(row[name]) for name in row if name == "accuracy/test/trained"]
        if config["seed"] == 0:
            return values, config["method"]
    raise AssertionError("no run of seed 0")


def trackio_reads(folder: Path) -> tuple[list[float], str]:
    with sqlite3.connect(folder / "pfl-bench.db") as raw:
        rows = raw.execute("SELECT run_name, step, metrics FROM metrics ORDER BY step").fetchall()
        configs = dict(raw.execute("SELECT run_name, config FROM configs").fetchall())
    raw.close()
    assert len(configs) == 2
    (name,) = (name for name in configs if "/local/0 " in name)
    points = [json.loads(metrics) for run, _, metrics in rows if run == name]
    values = [point["accuracy/test/trained"] for point in points if "accuracy/test/trained" in point]
    return values, json.loads(configs[name])["method"]


READERS: dict[str, Callable[[Path], tuple[list[float], str]]] = {
    "mlflow": mlflow_reads,
    "tensorboard": tensorboard_reads,
    "trackio": trackio_reads,
    "wandb": wandb_reads,
}


@pytest.mark.parametrize("tracker", ADAPTERS)
def test_a_tracker_reads_what_was_written_for_it(
    tracker: str, store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if find_spec(tracker) is None:
        pytest.skip(f"the extra '{tracker}' is not installed")
    folder = tmp_path / "out" / tracker
    assert export_to_tracker(tracker, store, store.runs(), folder) == 2  # a failed run is no outcome
    assert capsys.readouterr().out == ""
    values, method = READERS[tracker](folder)
    assert values == pytest.approx(MEANS)
    assert method == "local"


# What is refused ----------------------------------------------------------------------------------


def half(runs: Iterable[TrackedRun], folder: Path) -> None:
    """A tracker that breaks off."""
    (folder / "a").write_text("half a run")
    raise OSError("disk\nfull")


def test_nothing_is_left_of_what_cannot_be_written(store: Store, tmp_path: Path) -> None:
    runs = store.runs()
    full, fresh, empty = tmp_path / "full", tmp_path / "fresh", tmp_path / "empty"
    full.mkdir()
    (full / "mine").write_text("")
    empty.mkdir()
    own: dict[str, Any] = {"adapters": {"half": half}, "is_installed": lambda package: True}
    for tracker, folder, options, about in (
        ("half", full, own, "new folder"),
        ("half", tmp_path / "a.db", own, "new folder"),
        ("half", fresh, own, "disk"),
        ("half", empty, own, "disk"),
        ("halv", fresh, own, "'half'"),
        ("mlflow", fresh, {"is_installed": lambda package: False}, "pfl-bench[mlflow]"),
    ):
        with pytest.raises(RequestError) as error:
            export_to_tracker(tracker, store, runs, folder, **options)
        assert about in str(error.value)
        assert "\n" not in str(error.value)
    with pytest.raises(RequestError, match="no run to export"):
        export_to_tracker("half", store, runs[runs["state"] == "failed"], fresh, **own)
    assert [path.name for path in full.iterdir()] == ["mine"]
    assert not fresh.exists()
    assert list(empty.iterdir()) == []


def test_every_tracker_is_an_extra() -> None:
    import tomllib

    text = (Path(__file__).parents[2] / "pyproject.toml").read_text()
    assert ADAPTERS.keys() <= tomllib.loads(text)["project"]["optional-dependencies"].keys()
    assert ADAPTERS.keys() == READERS.keys()


@pytest.mark.skipif(find_spec("wandb") is not None, reason="the extra is installed")
def test_the_command_without_the_extra(
    store: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from bench.cli.main import main

    with pytest.raises(SystemExit) as ended:
        main(["export", "--to", "wandb", str(tmp_path / "out"), "--db", store.url])
    printed = capsys.readouterr()
    assert (ended.value.code, printed.out, printed.err.count("\n")) == (2, "", 1)
    assert "pfl-bench[wandb]" in printed.err
    assert not (tmp_path / "out").exists()
