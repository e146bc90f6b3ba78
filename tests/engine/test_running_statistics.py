"""``client.bn_stats = "averaged"``: means by hand, bytes, who is left out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from plain_cnn import (
    IMAGE_COUNTS,
    federation,
    normalised,
    plain_copy,
    spec,
)
from plain_cnn import federation as image_federation
from plain_cnn import spec as image_spec
from torch import Tensor

from bench.contract.toys import make_spec, random_federation
from bench.engine.checkpoint import Checkpoint
from bench.engine.execute import run
from bench.engine.run import Run
from bench.errors import RequestError
from bench.federation.types import SPLITS, TRAIN
from bench.spec import RunSpec

SIZES = (12, 40, 70)
STATISTICS = ("bn1.running_mean", "bn1.running_var", "bn2.running_mean", "bn2.running_var")


def averaged(request: RunSpec) -> RunSpec:
    return request.with_settings({"client.bn_stats": "averaged"})


def started(request: RunSpec) -> Run:
    it = Run(request, federation(*SIZES))
    it.warm_up()
    return it


def received_in(it: Run, round: int, monkeypatch: pytest.MonkeyPatch) -> dict[str, Tensor]:
    """The stack that a round evaluates as received."""
    stacks = []
    of_all = it.evaluator.all

    def watched(method, clients, stack):  # type: ignore[no-untyped-def]
        stacks.append({name: value.clone() for name, value in stack.items()})
        return of_all(method, clients, stack)

    monkeypatch.setattr(it.evaluator, "all", watched)
    it.step(round)
    return stacks[0]


@pytest.mark.parametrize("participation", [1.0, 0.67])
def test_statistics_are_averaged_by_training_items_of_the_participants(
    participation: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = averaged(spec("fedavg", 3)).with_settings({"protocol.participation": participation})
    it = started(request)
    it.step(0)
    rows = it.participants(0)
    assert len(rows) == round(3 * participation)
    sizes = np.array([client.count(TRAIN) for client in federation(*SIZES).clients], np.float32)[rows.numpy()]
    expected = {name: np.average(it.own[name][rows].numpy(), axis=0, weights=sizes) for name in STATISTICS}
    received = received_in(it, 1, monkeypatch)
    for name, mean in expected.items():
        assert received[name].shape == it.own[name].shape
        np.testing.assert_allclose(received[name].numpy(), np.broadcast_to(mean, received[name].shape), 1e-5)


def test_what_is_exchanged_for_it_counts() -> None:
    """192 float32 a client: up in every round, down from the second one on."""
    plain, it = started(spec("fedavg", 3)), started(averaged(spec("fedavg", 3)))
    for round in range(2):
        plain.step(round)
        it.step(round)
    assert it.traffic.bytes_up - plain.traffic.bytes_up == 2 * 3 * 4 * 192
    assert it.traffic.bytes_down - plain.traffic.bytes_down == 3 * 4 * 192


def test_a_method_that_sends_nothing_keeps_its_statistics() -> None:
    plain, it = started(spec("local", 3)), started(averaged(spec("local", 3)))
    for round in range(2):
        plain.step(round)
        it.step(round)
    assert it.traffic.bytes_up == it.traffic.bytes_down == 0
    for name, value in plain.own.items():
        assert torch.equal(value, it.own[name])


def test_a_run_that_is_taken_up_again_has_the_means(tmp_path: Path) -> None:
    request = averaged(spec("fedavg", 3))
    whole, again = started(request), Run(request, federation(*SIZES))
    whole.step(0)
    checkpoint = Checkpoint(tmp_path / "run.ckpt", identity="toy")
    checkpoint.save(whole, 0, 0.0)
    assert checkpoint.resume(again) is not None
    for it in (whole, again):
        it.step(1)
    for name, value in whole.own.items():
        assert torch.equal(value, again.own[name])


def test_a_model_without_statistics_is_refused() -> None:
    graph = random_federation((24, 40))
    with pytest.raises(RequestError, match="has no running statistics"):
        run(make_spec("fedavg", graph, client={"bn_stats": "averaged"}), graph)


def test_fedavg_keeps_running_statistics_at_their_clients() -> None:
    """The averaged weights with everyone's own statistics are what the second round receives."""
    toy = image_federation(*IMAGE_COUNTS)
    it = Run(image_spec("fedavg", len(toy), rounds=2, epochs=1), toy)
    it.warm_up()
    it.step(0)
    after = {name: value.clone() for name, value in it.own.items()}
    sent = it.method.broadcast(1).model
    assert set(after) - set(sent) == it.model.buffers
    for name in it.model.buffers:
        rows = after[name].unique(dim=0)
        assert len(rows) == len(toy)
    values = sum(int(np.prod(after[name].shape)) for name in sent)
    assert it.traffic.bytes_down == 4 * values
    assert it.traffic.bytes_up == 4 * values
    it.step(1)
    received = {
        name: value if name in it.model.buffers else value.mean(dim=0).expand(value.shape)
        for name, value in after.items()
    }
    for number, client in enumerate(toy.clients):
        with torch.no_grad():
            predicted = plain_copy(received, number).eval()(normalised(client.features)).argmax(dim=1).numpy()
        for role in range(len(SPLITS)):
            right = ((predicted == client.labels) & (client.roles == role)).sum()
            assert it.counts["received"][1][role, number] == right
