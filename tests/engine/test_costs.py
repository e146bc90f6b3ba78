"""What a run costs: seconds by part, and the peak of memory."""

from __future__ import annotations

import mmap
import platform
from typing import Any

import pytest
import torch
from toy_federations import make_spec

from bench.engine.costs import Stopwatch, peak_memory, reset_peak_memory
from bench.engine.execute import run
from bench.federation.types import Federation


def test_seconds_by_part_do_not_overlap_when_every_epoch_is_evaluated(federation: Federation) -> None:
    spec = make_spec("fedavg", federation, rounds=5, local_epochs=10, evaluate="epoch")
    seconds = run(spec, federation).seconds
    assert seconds["client"] + seconds["server"] + seconds["evaluation"] <= seconds["total"]


def test_a_stopwatch_adds_up_parts_even_when_they_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = iter([1.0, 3.0, 10.0, 10.5, 20.0, 24.0])
    monkeypatch.setattr("bench.engine.costs.time.perf_counter", lambda: next(ticks))
    watch = Stopwatch(torch.device("cpu"))
    with watch.part("client"):
        pass
    with watch.part("server"):
        pass
    with pytest.raises(KeyError), watch.part("client"):
        raise KeyError
    assert watch.seconds == {"client": 6.0, "server": 0.5}


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
