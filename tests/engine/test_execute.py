"""How a run ends, what its result holds, and what it costs."""

from __future__ import annotations

import mmap
import platform
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from toy_federations import make_spec

from bench.data import Family
from bench.engine.costs import Stopwatch, peak_memory, reset_peak_memory
from bench.engine.execute import run
from bench.engine.method import Message, Method, Stack
from bench.engine.methods import METHODS
from bench.errors import RequestError
from bench.federation.types import Federation


class Poisoned(Method):
    """Sends a model that is not a number from round 2 on."""

    name = "poisoned"
    title = "Poisoned"

    def broadcast(self) -> Message:
        value = float("nan") if self.round >= 2 else 0.0
        return Message({"head.bias": torch.full((self.task.clients, *self.task.shapes["head.bias"]), value)})


class Tiny(Method):
    """Keeps what a product of small numbers is during a run."""

    name = "tiny"
    title = "Tiny"

    def aggregate(self, participants: Tensor, received: Stack, upload: Message) -> None:
        self.record(product=torch.tensor([1e-38]) * 0.1)


@pytest.fixture
def with_test_methods(monkeypatch: pytest.MonkeyPatch) -> None:
    known = METHODS.all() | {"poisoned": Poisoned, "tiny": Tiny}
    monkeypatch.setattr(METHODS, "all", lambda: known)


@pytest.mark.usefixtures("with_test_methods")
def test_a_diverged_run_names_the_round_and_has_no_numbers(federation: Federation) -> None:
    result = run(make_spec("poisoned", federation, rounds=5), federation)
    assert (result.state, result.correct, result.samples) == ("diverged", {}, {})
    assert "round 2" in result.reason
    assert result.partition_hash == federation.hash


def test_a_run_whose_training_explodes_ends_as_diverged(federation: Federation) -> None:
    spec = make_spec("fedavg", federation, rounds=5, client={"learning_rate": 1e30})
    result = run(spec, federation)
    assert result.state == "diverged"
    assert "round 0" in result.reason
    warm = make_spec("fedsheafhn", federation, client={"learning_rate": 1e30})
    assert run(warm, federation).reason.endswith("during warm-up")


@pytest.mark.parametrize(
    ("method", "family", "settings", "words"),
    [
        ("fedsheafhn", "images", {}, {"graph", "images"}),
        ("flow", "graph", {"client.model": "sage"}, {"flow", "gcn", "sage"}),
        ("fggp", "graph", {"client.model": "sage"}, {"fggp", "gcn", "sage"}),
        ("fggp", "graph", {"protocol.participation": 0.5}, {"take", "no", "part"}),
        ("fediih", "graph", {"method.factors": 3}, {"factors", "hidden"}),
        ("fedprox", "graph", {"protocol.evaluate": "epoch"}, {"evaluate", "round"}),
        ("flow", "graph", {"protocol.evaluate": "epoch"}, {"evaluate", "round"}),
    ],
)
def test_a_method_that_cannot_do_what_is_asked_is_not_applicable(
    method: str, family: Family, settings: dict[str, Any], words: set[str], federation: Federation
) -> None:
    spec = make_spec(method, federation).with_settings(settings)
    result = run(spec, replace(federation, family=family))
    assert result.state == "not_applicable"
    assert words <= set(re.findall(r"\w+", result.reason))


@pytest.mark.parametrize(
    ("client", "words"),
    [
        ({"model": "gnc"}, "gcn"),
        ({"model": "cnn"}, "cnn"),
        ({"batch_size": 4, "dropout": 0.0}, "batch"),
        ({"batch_size": 4, "dropout": 0.5}, "batch"),
    ],
)
def test_other_errors_are_raised_in_one_line(
    client: dict[str, Any], words: str, federation: Federation
) -> None:
    with pytest.raises(RequestError, match=words) as caught:
        run(make_spec("fedavg", federation, client=client), federation)
    assert "\n" not in str(caught.value)


def test_what_a_result_holds(federation: Federation) -> None:
    result = run(make_spec("fedavg", federation, rounds=4), federation, block_size=2)
    assert result.state == "done"
    assert set(result.correct) == {(s, t) for s in ("received", "trained") for t in ("train", "val", "test")}
    for (_, split), counts in result.correct.items():
        assert counts.shape == (4, len(federation))
        assert counts.dtype == np.int32
        assert (counts >= 0).all()
        assert (counts <= result.samples[split]).all()
    for role, split in enumerate(("train", "val", "test")):
        assert result.samples[split].tolist() == [client.count(role) for client in federation.clients]
    assert result.loss.shape == (4,)
    assert np.isfinite(result.loss).all()
    parts = [result.seconds[part] for part in ("client", "server", "evaluation")]
    assert all(seconds > 0 for seconds in parts)
    assert sum(parts) <= result.seconds["total"]
    assert result.peak_memory > 2**20


@pytest.mark.usefixtures("with_test_methods")
@pytest.mark.parametrize("before", [False, True])
def test_denormals_are_zero_during_a_run_and_as_before_after_it(before: bool, federation: Federation) -> None:
    torch.set_flush_denormal(before)
    try:
        result = run(make_spec("tiny", federation, rounds=1), federation)
        after = bool(torch.tensor([1e-38]) * 0.1 == 0)
    finally:
        torch.set_flush_denormal(False)
    assert result.artefacts["product"] == 0
    assert after == before


def test_a_stopwatch_adds_up_parts_within_parts_and_parts_that_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter([1.0, 3.0, 10.0, 10.5, 20.0, 24.0])
    monkeypatch.setattr("bench.engine.costs.time.perf_counter", lambda: next(ticks))
    watch = Stopwatch(torch.device("cpu"))
    with watch.part("client"), watch.part("evaluation"):
        pass
    with pytest.raises(KeyError), watch.part("client"):
        raise KeyError
    assert watch.seconds == {"client": 6.5, "evaluation": 7.0}


def test_peak_memory_sees_an_allocation() -> None:
    cpu = torch.device("cpu")
    reset_peak_memory(cpu)
    before = peak_memory(cpu)
    with mmap.mmap(-1, 80 * 2**20) as block:  # new pages: what was freed before cannot serve
        block.write(bytes(80 * 2**20))
    assert peak_memory(cpu) >= before + 60 * 2**20


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="no other library is told to give memory back")
@pytest.mark.parametrize("cycle", [False, True])
def test_the_peak_of_a_run_is_without_what_went_before_it(cycle: bool, federation: Federation) -> None:
    spec = make_spec("fedavg", federation)
    alone = run(spec, federation).peak_memory
    blocks: list[Any] = [bytearray(50_000) for _ in range(6000)]
    last = blocks[-1]  # at the end of the heap, so that what is freed below it stays with the process
    if cycle:
        blocks.append(blocks)
    del blocks
    assert run(spec, federation).peak_memory < alone + 100 * 2**20
    assert len(last) == 50_000
