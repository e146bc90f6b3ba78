"""An order to make a run, and every way that the run can end as a state."""

from __future__ import annotations

import os
import sys
import traceback as traces
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from bench.engine.result import RunResult
from bench.errors import NoDataError, NotApplicableError
from bench.spec import RunSpec

OUT_OF_MEMORY = (  # torch raises plain errors for these
    "DefaultCPUAllocator: can't allocate memory",
    "CUDA error: out of memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
)


@dataclass(frozen=True)
class Order:
    """What a worker is to run: a spec, with folders of raw files, on a device, with so many threads.

    shrink           how many times smaller than usual the blocks of clients are
    checkpoint       the file in which the run is saved every so many ``minutes``, if it is
    federation_hash  of the federation that the run is to be made on, where that is known
    federation       the file that holds the federation, if there is one
    source           the hash over the sources that are to make the run, on another machine
    log              the file that takes what the run prints
    """

    spec: RunSpec
    roots: tuple[str, ...]
    device: str
    threads: int
    shrink: int = 1
    checkpoint: Path | None = None
    minutes: float = 0.0
    federation_hash: str = ""
    federation: Path | None = None
    source: str = ""
    log: Path | None = None


Execute = Callable[[Order], RunResult]


def attempt(execute: Execute, order: Order) -> RunResult:
    """Execute an order and return its outcome; no exception leaves. From now on the order's log takes what
    this process prints.
    """
    if order.log is not None:
        _flush()
        with suppress(OSError):  # a full disk must not fail the run
            order.log.parent.mkdir(parents=True, exist_ok=True)
            with order.log.open("wb") as file:
                os.dup2(file.fileno(), 1)
                os.dup2(file.fileno(), 2)
    try:
        return execute(order)
    except (Exception, SystemExit) as error:
        return outcome(error, order.device)
    finally:
        _flush()
        if order.device.startswith("cuda"):  # other runs share the GPU's memory
            import torch

            torch.cuda.empty_cache()


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):  # the log's disk is full
            stream.flush()


def outcome(error: BaseException, device: str) -> RunResult:
    """The state that an exception, the one being handled, stands for."""
    if isinstance(error, NoDataError):
        return RunResult("no_data", str(error))
    if isinstance(error, NotApplicableError):
        return RunResult("not_applicable", str(error))
    with suppress(OSError):  # the log's disk is full
        traces.print_exc()
    lines = str(error).strip().splitlines()
    reason = ": ".join((type(error).__name__, *lines[:1]))
    result = RunResult("failed", reason, traces.format_exc())
    is_memory = isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"
    if is_memory or any(text in str(error) for text in OUT_OF_MEMORY):
        import torch

        from bench.engine.costs import peak_memory

        result.state, result.peak_memory = "oom", peak_memory(torch.device(device))
    return result
