"""pFedHN on images: a residual, summed steps, and a client model that is too large for a CPU.

Its steps on graphs are in ``test_fedsheafhn``, beside those of the other hypernetwork.
"""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from plain_cnn import federation as image_federation
from plain_cnn import spec as image_spec
from toy_federations import copied, furthest

from bench.contract.rules import late_accuracy, majority_share
from bench.contract.subject import Subject
from bench.engine.execute import run
from bench.engine.message import Message
from bench.engine.method import Stack
from bench.engine.run import Run
from bench.federation.types import Federation
from bench.resolve import resolve
from bench.spec import RunSpec

RESIDUAL = {
    "output": "residual",
    "combine": "sum",
    "learning_rate": 0.005,
    "momentum": 0.0,
    "weight_decay": 0.0,
}
"""The image study's settings."""


@pytest.fixture(scope="module")
def images() -> Federation:
    return image_federation(12, 40, 41)


def spec(**hyper: Any) -> RunSpec:
    return image_spec("pfedhn", 3, rounds=2, epochs=2).model_copy(update={"hyper": hyper})


def generated(it: Run) -> dict[str, torch.Tensor]:
    with torch.no_grad():
        return copied(it.method.broadcast(0).model)


def distance(one: Stack, other: Stack, names: Stack) -> float:
    return math.sqrt(sum(float((one[name] - other[name]).square().sum()) for name in names))


def test_a_residual_starts_near_the_common_model(images: Federation) -> None:
    residual = Run(spec(**RESIDUAL), images)
    common = residual.method.task.common()
    own = generated(residual)
    whole = generated(Run(spec(), images))
    for name in ("bn1.weight", "bn2.weight"):
        assert (own[name] - 1).abs().max() < 0.2
        assert whole[name].abs().max() < 0.5  # where everything is generated the normalisation is far from 1
    assert distance(own, common, own) < 0.3 * distance(whole, common, own)
    assert furthest({"": own["fc1.weight"][:1]}, {"": own["fc1.weight"][1:2]}) > 1e-4


@pytest.mark.parametrize(("output", "rate"), [("whole", 5e-4), ("residual", 5e-3)])
def test_a_step_brings_the_output_nearer_to_what_was_trained(
    images: Federation, output: str, rate: float
) -> None:
    it = Run(spec(**{**RESIDUAL, "output": output, "learning_rate": rate}), images)
    it.warm_up()
    before = generated(it)
    it.step(0)
    after = generated(it)
    start, end = distance(before, it.own, before), distance(after, it.own, before)
    assert start > 0.01
    assert end < start * (1 - 1e-4)


def test_a_sum_is_so_many_means(images: Federation) -> None:
    """Without clipping, decay and momentum a step of the sum at a third of the rate is that of the mean."""
    calm = {"momentum": 0.0, "weight_decay": 0.0, "clip": 1e9}
    ends = []
    for combine, rate in (("mean", 0.03), ("sum", 0.01)):
        state: Any = Run(spec(**calm, combine=combine, learning_rate=rate), images).method
        with torch.no_grad():
            received = state.broadcast(0).model
        moved = {
            name: value + torch.linspace(-1, 1, value.numel()).view_as(value)
            for name, value in received.items()
        }
        start = [parameter.detach().clone() for parameter in state.parameters]
        state.aggregate(torch.arange(3), received, Message(moved))
        ends.append([one.detach() - other for one, other in zip(state.parameters, start, strict=True)])
    assert max(float(step.abs().max()) for step in ends[0]) > 1e-3
    for mean, total in zip(*ends, strict=True):
        torch.testing.assert_close(total, mean, rtol=1e-3, atol=1e-6)


def test_what_stored_runs_did_not_have_is_in_a_spec_only_where_it_is_set() -> None:
    plain = resolve("cora", "non-overlapping", 5, "pfedhn", 0, {})
    assert set(plain.hyper) == {"learning_rate", "momentum", "weight_decay", "clip"}
    spelt_out = resolve("cora", "non-overlapping", 5, "pfedhn", 0, {"method.output": "whole"})
    assert spelt_out.hash == plain.hash
    other = resolve("cora", "non-overlapping", 5, "pfedhn", 0, {"method.output": "residual"})
    assert other.hyper == {**plain.hyper, "output": "residual"}
    assert other.hash != plain.hash


def test_a_model_of_eleven_million_weights_is_refused_on_a_cpu(images: Federation) -> None:
    """170,000 hidden units over 64 values make ResNet-18's size."""
    client = image_spec("pfedhn", 3).client.model_copy(update={"hidden": 170_000})
    result = run(spec(**RESIDUAL).model_copy(update={"client": client}), images)
    assert result.state == "not_applicable"
    assert "\n" not in result.reason
    assert "GiB" in result.reason


def test_a_residual_learns_from_summed_steps() -> None:
    subject = Subject("pfedhn", "images")
    fields = {name: RESIDUAL[name] for name in ("output", "combine")}
    original = subject.spec
    subject.spec = lambda *args, **settings: original(*args, hyper=fields, **settings)  # type: ignore[method-assign]
    assert late_accuracy(subject, "trained") > majority_share(subject.learnable) + 0.2
