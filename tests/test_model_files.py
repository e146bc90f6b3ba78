"""Models as files: what is written, what it is compared with, and what happens where it cannot be."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from stored_runs import done, opened, spec_of

from bench import model_files
from bench.contract.subject import Subject
from bench.engine.execute import run
from bench.engine.kept_models import KeptModels
from bench.engine.result import RunResult
from bench.errors import RequestError
from bench.model_files import MANIFEST, Saving, check_installed, read_models, stored_runs, write_models
from bench.spec import RunSpec
from bench.studies.source import MergedSource

needs_safetensors = pytest.mark.skipif(
    model_files.find_spec("safetensors") is None, reason="the extra 'models' is not installed"
)


def trained(method: str, rule: str = "best_val") -> tuple[RunSpec, RunResult, KeptModels]:
    subject, kept = Subject(method), KeptModels(rule)
    spec = subject.spec()
    return spec, run(spec, subject.federation, kept=kept), kept


@needs_safetensors
@pytest.mark.parametrize("method", ["fedper", "fggp", "fedcp"])
def test_every_client_has_a_file_and_the_manifest_says_what_it_scores(method: str, tmp_path: Path) -> None:
    spec, result, kept = trained(method, "client_best_val")
    folder = tmp_path / "deep" / "models"
    write_models(folder, spec, result, kept)
    manifest = json.loads((folder / MANIFEST).read_text())
    assert RunSpec.model_validate(manifest["spec"]).hash == manifest["spec_hash"] == spec.hash
    assert manifest["partition_hash"] == result.partition_hash
    assert manifest["rule"] == "client_best_val"
    assert [client["round"] for client in manifest["clients"]] == kept.rounds.tolist()
    test = result.correct["trained", "test"][kept.rounds, np.arange(4)]
    for client, correct, samples in zip(manifest["clients"], test, result.samples["test"], strict=True):
        assert client["as_stored"]
        assert client["test_accuracy"] == client["stored_test_accuracy"] == correct / samples
    stack, state = read_models(folder)
    assert all(torch.equal(value, kept.stack[name]) for name, value in stack.items())
    assert stack.keys() == kept.stack.keys()
    assert set(state) == set(kept.rounds.tolist())
    named = {client["file"] for client in manifest["clients"]} | {part["file"] for part in manifest["method"]}
    assert {path.name for path in folder.iterdir()} == (named - {None}) | {MANIFEST}


@needs_safetensors
def test_a_model_that_is_not_the_one_that_was_counted_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, result, kept = trained("fedavg")
    kept.stack = {name: torch.zeros_like(value) for name, value in kept.stack.items()}
    write_models(tmp_path / "models", spec, result, kept)
    manifest = json.loads((tmp_path / "models" / MANIFEST).read_text())
    counted = result.correct["trained", "test"][kept.rounds[0]]
    clients = zip(manifest["clients"], counted, strict=True)
    differing = [client["test_correct"] != right for client, right in clients]
    assert any(differing)
    assert [not client["as_stored"] for client in manifest["clients"]] == differing


@needs_safetensors
def test_an_earlier_folder_stays_where_the_new_one_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, result, kept = trained("local")
    write_models(tmp_path / "models", spec, result, kept)
    before = {path.name: path.read_bytes() for path in (tmp_path / "models").iterdir()}

    def full(self: Path, content: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(RequestError, match="No space left"):
        write_models(tmp_path / "models", spec, result, kept)
    monkeypatch.undo()
    assert {path.name: path.read_bytes() for path in (tmp_path / "models").iterdir()} == before
    assert [path.name for path in tmp_path.iterdir()] == ["models"]


def source(tmp_path: Path, *runs: tuple[RunSpec, RunResult]) -> Any:
    return opened(tmp_path / "a.db", runs)


def test_finished_runs_are_found_by_cell_seed_and_id(tmp_path: Path) -> None:
    runs = [(spec_of(seed=seed), done(shift=seed)) for seed in (0, 1)]
    runs.append((spec_of(seed=2), RunResult("failed", reason="bug")))
    with source(tmp_path, *runs) as store:
        merged = MergedSource(store, [])
        cell = "cora/non-overlapping/2/local"
        assert [stored_run.spec.seed for stored_run in stored_runs(merged, [cell], (), "best_val")] == [0, 1]
        assert [
            stored_run.spec.seed for stored_run in stored_runs(merged, [cell, "2"], (1,), "best_val")
        ] == [1]
        (first, _) = stored_runs(merged, [cell], (), "last")
        last = done().correct["trained", "test"][-1]
        assert [correct for correct, _ in first.tested.values()] == last.tolist()
        for words, message in (
            (["cora/non-overlapping/2/lokal"], "did you mean"),
            (["9"], "no run 9"),
            (["3"], "got 1 failed"),
        ):
            with pytest.raises(RequestError, match=message):
                stored_runs(merged, words, (), "best_val")
        with pytest.raises(RequestError, match="none of these seeds"):
            stored_runs(merged, [cell], (7,), "best_val")


def test_stored_accuracies_of_two_classes_are_not_their_areas_under_the_roc_curve(tmp_path: Path) -> None:
    result = done(roc_auc={("trained", "last"): np.array([0.5, 0.25])})
    with source(tmp_path, (spec_of(), result)) as store:
        (run,) = stored_runs(MergedSource(store, []), ["1"], (), "last")
    assert [correct for correct, _ in run.tested.values()] == result.correct["trained", "test"][-1].tolist()


def test_runs_whose_models_are_not_kept_are_left_out_of_a_cell_and_refused_alone(tmp_path: Path) -> None:
    spec = spec_of()
    every_epoch = spec.with_settings({"protocol.evaluate": "epoch"})
    cell = "cora/non-overlapping/2/local"
    with source(tmp_path, (every_epoch, done()), (spec, done())) as store:
        merged = MergedSource(store, [])
        assert [stored_run.spec for stored_run in stored_runs(merged, [cell], (), "best_val")] == [spec]
        with pytest.raises(RequestError, match="models are not kept"):
            stored_runs(merged, ["1"], (), "best_val")


def test_without_the_extra_the_line_says_how_to_get_it() -> None:
    with pytest.raises(RequestError, match=r"pip install 'pfl-bench\[models\]'"):
        check_installed(lambda package: None)


def test_the_summary_counts_what_is_there(tmp_path: Path) -> None:
    specs = [spec_of(seed=seed) for seed in (0, 1)]
    (tmp_path / specs[0].hash).mkdir()
    (tmp_path / specs[0].hash / MANIFEST).write_text("{}")
    assert "1 of 2" in Saving(tmp_path).summary(specs)
    assert replace(Saving(tmp_path), rule="last").rule == "last"
