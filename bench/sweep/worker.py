"""What happens in a worker process: one run, and every way it can end as a state."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
import traceback as traces
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from multiprocessing import connection, parent_process
from pathlib import Path
from typing import TYPE_CHECKING

from bench.errors import NoDataError, NotApplicableError, RequestError

if TYPE_CHECKING:
    from bench.engine.checkpoint import Checkpoint
    from bench.engine.result import RunResult
    from bench.federation.types import Federation
    from bench.spec import RunSpec
    from bench.sweep.federations import Key

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
OUT_OF_MEMORY = (  # torch raises plain errors for these
    "DefaultCPUAllocator: can't allocate memory",
    "CUDA error: out of memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
)
FEDERATIONS = 2
"""So many federations stay in a worker: a sweep runs many methods on the same clients in a row."""


@dataclass(frozen=True)
class Checkpoints:
    """Where runs are saved while they last, and how often."""

    folder: Path
    minutes: float

    def path(self, spec_hash: str) -> Path:
        """The file of a run."""
        return self.folder / f"{spec_hash}.pt"

    def tidy(self, spec_hash: str, over: bool) -> None:
        """Remove what a killed worker left half-written of a run, and the file of one that is ``over``."""
        from bench.engine.checkpoint import parts

        path = self.path(spec_hash)
        with suppress(OSError):  # what stays there costs room alone
            for each in (*parts(path), *([path] if over else [])):
                each.unlink(missing_ok=True)


@dataclass(frozen=True)
class Order:
    """What a worker is to run: a spec (canonical JSON), folders of raw files, a device, threads, and
    how many times smaller than usual the blocks of clients are; where it is saved, if it is; and the hash
    over the clients that it is to be made on, where that is known.
    """

    spec: str
    roots: tuple[str, ...]
    device: str
    threads: int
    shrink: int = 1
    checkpoints: Checkpoints | None = None
    clients: str = ""


Execute = Callable[[Order], "RunResult"]


@contextmanager
def thread_variables(threads: int) -> Iterator[None]:
    """Processes started meanwhile load their numerical libraries with so many threads."""
    before = {name: os.environ.get(name) for name in THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, str(threads)))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def prepare() -> None:
    """Set up a worker to end with the sweep and by nothing else.

    An interrupt at the terminal reaches every process of the sweep; the parent alone handles it.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    connection.wait([sentinel])
    os._exit(1)


def attempt(execute: Execute, order: Order, log: Path | None, fresh: bool) -> RunResult:
    """Execute an order and return its outcome; no exception leaves.

    Standard output and error go to the file ``log`` meanwhile, a ``fresh`` one or at its end.
    """
    with _output_to(log, fresh):
        try:
            return execute(order)
        except (Exception, SystemExit) as error:
            return _outcome(error, order.device)
        finally:
            _give_back(order.device)


def of_run(run: Callable[[], RunResult], device: str) -> RunResult:
    """What comes of the run itself, once all that it needs is there: what it raises is its method's doing,
    unless a file could not be read or written.
    """
    try:
        return run()
    except (Exception, SystemExit) as error:
        result = _outcome(error, device)
        result.raised = result.state == "failed" and not isinstance(error, OSError)
        return result


def _outcome(error: BaseException, device: str) -> RunResult:
    """The state that an exception, the one being handled, stands for."""
    from bench.engine.result import RunResult

    if isinstance(error, NoDataError):
        return RunResult("no_data", str(error), device=device)
    if isinstance(error, NotApplicableError):
        return RunResult("not_applicable", str(error), device=device)
    with suppress(OSError):  # the log's disk is full
        traces.print_exc()
    result = RunResult("failed", _first_line(error), traces.format_exc(), device=device)
    if _out_of_memory(error):
        result.state, result.peak_memory = "oom", _peak(device)
    return result


def execute(order: Order) -> RunResult:
    """Execute an order's spec on its federation, which is kept for the next ones.

    The outcome says which code this process has: a sweep's files may be edited while it lasts, and a
    worker that takes the place of another has what was there then.

    Raises:
        NoDataError: the data set is not to be had.
        NotApplicableError: the method cannot do what the spec asks.
        RequestError: the data here make other clients than the order says.
    """
    import torch

    from bench.engine.execute import run
    from bench.spec import RunSpec
    from bench.sweep import fingerprint

    if parent_process() is not None:  # elsewhere the process is not the worker's own
        _set_aside()
    torch.set_num_threads(order.threads)
    spec = RunSpec.model_validate_json(order.spec)
    code = fingerprint.code(spec.method, spec.client.model)
    federation = _federation(spec.federation_key, order.roots)
    if order.clients and federation.hash != order.clients:
        raise RequestError(
            f"expected the sweep's clients ({order.clients[:8]}) on every machine, "
            f"the data of this one make others ({federation.hash[:8]})"
        )
    block_size = _block_size(spec, federation, order) if order.shrink > 1 else None
    checkpoint = _checkpoint(spec, federation, order)
    result = of_run(lambda: run(spec, federation, order.device, block_size, checkpoint), order.device)
    if result.state == "oom":
        result.block = _block_size(spec, federation, order)
    result.code = code
    return result


@lru_cache(maxsize=1)
def _set_aside() -> None:
    """Exempt what is imported from garbage collection: it lives as long as the process, and every run
    begins with a collection, which took half the time of a run of one round to walk through it.
    """
    gc.collect()
    gc.freeze()


def _checkpoint(spec: RunSpec, federation: Federation, order: Order) -> Checkpoint | None:
    """Where the run is saved; what is saved with another code, federation or version of torch, on another
    kind of device or with other threads is not taken up: its numbers differ in the last digits.
    """
    import torch

    from bench.engine.checkpoint import Checkpoint
    from bench.sweep import fingerprint

    if order.checkpoints is None:
        return None
    made_by = (fingerprint.code(spec.method, spec.client.model).source, torch.__version__)
    made_on = (order.device.partition(":")[0], str(order.threads))
    identity = " ".join((federation.hash, *made_by, *made_on))
    return Checkpoint(order.checkpoints.path(spec.hash), identity, order.checkpoints.minutes)


@lru_cache(maxsize=FEDERATIONS)
def _federation(key: Key, roots: tuple[str, ...]) -> Federation:
    from bench.federation.build import build

    return build(*key, roots=tuple(Path(root) for root in roots))


def _block_size(spec: RunSpec, federation: Federation, order: Order) -> int:
    """Clients in a block that is ``shrink`` times smaller than the engine's choice."""
    import torch

    from bench.engine.run import default_block_size
    from bench.nn.models import build_model

    model = build_model(spec.client, federation)
    usual = default_block_size(model, federation.clients, torch.device(order.device))
    return max(1, usual // order.shrink)


@contextmanager
def _output_to(log: Path | None, fresh: bool) -> Iterator[None]:
    """File descriptors 1 and 2 write to ``log``; unchanged where there is none or it cannot be opened."""
    try:
        file = None if log is None else log.open("wb" if fresh else "ab")
    except OSError:  # a full disk must not fail the run
        file = None
    if file is None:
        yield
        return
    kept = [os.dup(number) for number in (1, 2)]
    with file:
        try:
            _redirect([file.fileno()] * 2)
            yield
        finally:
            _redirect(kept)
            for number in kept:
                os.close(number)


def _redirect(targets: list[int]) -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError):  # the log's disk is full
            stream.flush()
    for number, target in zip((1, 2), targets, strict=True):
        os.dup2(target, number)


def _out_of_memory(error: BaseException) -> bool:
    named = isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError"
    return named or any(text in str(error) for text in OUT_OF_MEMORY)


def _peak(device: str) -> int:
    import torch

    from bench.engine.costs import peak_memory

    return peak_memory(torch.device(device))


def _give_back(device: str) -> None:
    """Return memory that the allocator holds on a GPU: other runs share it."""
    if device.startswith("cuda"):
        import torch

        torch.cuda.empty_cache()


def _first_line(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0]}" if text else type(error).__name__
