"""The parts of ``bench check-gpu`` on a CPU; that they fail when something is wrong, too."""

from __future__ import annotations

import pytest
import torch

from bench.cli.main import main
from bench.engine.run import Run
from bench.nn.base import CLIENT_MODELS
from bench.timing import gpu


@pytest.mark.parametrize("model", ["gcn", "hgnn", "cnn", pytest.param("resnet18", marks=pytest.mark.slow)])
def test_stacked_equals_sequential(model: str) -> None:
    finding = gpu.stacked_equals_sequential(model, "cpu")
    assert (finding.subject, finding.well) == (model, True)


def test_another_result_on_the_device_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    step = Run.step

    def wrong(run: Run, round: int) -> None:
        step(run, round)
        if run.block_size > 1:
            run.own = {name: value + 1e-3 for name, value in run.own.items()}

    monkeypatch.setattr(Run, "step", wrong)
    assert gpu.stacked_equals_sequential("gcn", "cpu").well is False
    assert gpu.checkpoint_taken_up("cpu").well is True


def test_every_client_model_has_a_toy() -> None:
    for model, kind in CLIENT_MODELS.all().items():
        spec, federation = gpu.toy(model)
        assert spec.client.model == model
        assert federation.family in kind.families


def test_a_checkpoint_is_taken_up() -> None:
    assert gpu.checkpoint_taken_up("cpu").text == "bit-equal"


def test_another_result_than_the_cpus_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """A device whose runs agree among themselves, and are further from the CPU than roundings make."""
    step, devices = Run.step, iter(["device", "device", "cpu", "cpu"])
    on_device: dict[int, bool] = {}

    def wrong(run: Run, round: int) -> None:
        step(run, round)
        if on_device.setdefault(id(run), next(devices) == "device"):
            run.own = {name: value + 2e-2 for name, value in run.own.items()}

    monkeypatch.setattr(Run, "step", wrong)
    assert gpu.stacked_equals_sequential("cnn", "cpu").well is False


def test_without_a_gpu_the_command_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(SystemExit) as caught:
        main(["check-gpu"])
    assert caught.value.code == 0
    said = capsys.readouterr().out
    assert said.count("\n") == 1
    assert "no GPU" in said
