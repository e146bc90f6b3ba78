"""The parts of ``bench check-gpu`` on a CPU; that they fail when something is wrong, too."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from bench.cli.main import main
from bench.engine.result import RunResult
from bench.engine.run import Run
from bench.nn.base import CLIENT_MODELS
from bench.paths import data_roots
from bench.timing import gpu
from bench.timing.speed import Machine

MACHINE = Machine(1e9, 1e9)
TINY = gpu.Sizes(graphs=(5,), albums=2, images=12, side=16, rounds=1)


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


def test_operations_of_the_network_of_the_study() -> None:
    """7.83 million multiplications and additions forwards (facts 2.1), twice that backwards, but for the
    first layer's 1.88 million, which pass no gradient to the pixels."""
    federation = gpu.random_images([12], side=32, classes=10)
    client = {"model": "cnn", "hidden": 512, "batch_size": 4, "optimizer": "sgd", "dropout": 0.0}
    spec = gpu.make_spec("fedavg", federation, client=client)
    expected = 2e6 * (3 * 7.83 - 1.88)
    assert abs(gpu.operations_an_image(spec, federation) / expected - 1) < 0.01


def test_rounds_are_timed_on_graphs_and_images(tmp_path: Path) -> None:
    on_cora = gpu.round_on_graphs(10, "cpu", MACHINE, data_roots(), 1)
    assert on_cora.well is True
    assert "ms" in on_cora.text
    on_images = gpu.round_on_images("cnn", "cpu", MACHINE, TINY)
    assert on_images.well is True
    assert "images a second" in on_images.text
    torch.set_flush_denormal(False)  # as in other tests


def blocks_that_fit(most: int, tried: list[int]) -> gpu.Execute:
    def execute(block_size: int) -> RunResult:
        tried.append(block_size)
        return RunResult("done" if block_size <= most else "oom")

    return execute


def test_blocks_shrink_until_they_fit() -> None:
    tried: list[int] = []
    result, blocks = gpu.until_it_fits(blocks_that_fit(2, tried), 8)
    assert result.state == "done"
    assert tried == blocks == [8, 4, 2]
    tried.clear()
    result, blocks = gpu.until_it_fits(blocks_that_fit(0, tried), 3)
    assert result.state == "oom"
    assert tried == blocks == [3, 1, 1]


def test_a_checkpoint_and_a_loss_without_bound() -> None:
    assert gpu.checkpoint_taken_up("cpu", tolerance=1e-30).well is True, "on a CPU no bit differs"
    finding = gpu.infinity_caught("cpu")
    assert finding.well is True
    assert "diverged" in finding.text


@pytest.mark.slow
def test_two_runs_share_a_device() -> None:
    assert gpu.packed("cpu").well is True


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


def test_memory_is_limited_on_the_current_gpu_and_freed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = []
    total = SimpleNamespace(total_memory=8000)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 3)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: total)
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda device: 1000)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    monkeypatch.setattr(
        torch.cuda, "set_per_process_memory_fraction", lambda share, device: limits.append((share, device))
    )
    with gpu.limited("cuda", 0.5):
        pass
    assert limits == [(1000 / 2 / 8000, torch.device("cuda:3")), (1.0, torch.device("cuda:3"))]


def test_parts_come_in_order_and_cover_every_model() -> None:
    parts = gpu.parts("cpu", (), TINY, lambda device: MACHINE)
    names = [getattr(part, "func").__name__ for part in parts]  # noqa: B009
    assert names.count("stacked_equals_sequential") == len(CLIENT_MODELS.all())
    assert names.count("round_on_images") == sum("images" in k.families for k in CLIENT_MODELS.all().values())
    assert names.count("round_on_graphs") == len(TINY.graphs)
    assert {"packed", "memory_runs_out", "checkpoint_taken_up", "infinity_caught"} <= set(names)


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
