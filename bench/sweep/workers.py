"""Worker processes: one for each slot, so that the death of one touches one run.

What happens in them is here, too: one run at a time, and every way that it can end as a state.
"""

from __future__ import annotations

import atexit
import gc
import os
import re
import signal
import sys
import threading
import time
import traceback as traces
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from multiprocessing import connection, get_context, parent_process
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from bench.engine.result import RunResult
from bench.errors import NoDataError, NotApplicableError, RequestError, unknown
from bench.spec import RunSpec
from bench.sweep.federations import FederationCopy, Key
from bench.sweep.policy import PER_GPU, Demand, Slots, check_counts

if TYPE_CHECKING:  # what loads torch is imported where a run needs it
    from bench.engine.checkpoint import Checkpoint
    from bench.engine.kept_models import KeptModels
    from bench.federation.types import Federation

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
    """What a worker is to run: a spec, folders of raw files, a device, threads, and how many times smaller
    than usual the blocks of clients are; where it is saved, if it is; the hash over the clients that it is to
    be made on, where that is known; and where these can be read, if they can.
    """

    spec: RunSpec
    roots: tuple[str, ...]
    device: str
    threads: int
    shrink: int = 1
    checkpoints: Checkpoints | None = None
    clients: str = ""
    federation: FederationCopy | None = None


Execute = Callable[[Order], RunResult]
CheckpointOf = Callable[[RunSpec, "Federation", Order], "Checkpoint | None"]


@dataclass(frozen=True)
class Lost:
    """A run whose worker was killed or could not be reached; ``how`` says what happened."""

    how: str


class Workers(Protocol):
    """What makes the runs, one at a time in each slot: processes here, or machines of a cluster."""

    def start(
        self, slot: int, order: Order, log: Path | None, fresh: bool, demand: Demand | None = None
    ) -> Future[RunResult | Lost]:
        """Begin a run that needs so much of its device; nothing of the slot's last run may reach it."""

    def stop(self) -> None:
        """End everything, also in the middle of a run."""


MakeWorkers = Callable[[int, Execute, float | None], Workers]
"""Workers for so many slots that execute orders with a function, each within so many seconds."""


# Slots of this machine ----------------------------------------------------------------------------


def cores() -> int:
    """Processor cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _visible() -> dict[str, int]:
    """Bytes of memory of every visible GPU, by name."""
    import torch

    if not torch.cuda.is_available():
        return {}
    count = torch.cuda.device_count()
    return {f"cuda:{index}": torch.cuda.get_device_properties(index).total_memory for index in range(count)}


def _named(devices: str, gpus: Mapping[str, int]) -> list[str]:
    """The devices that ``--devices`` names."""
    if devices == "cpu":
        return ["cpu"]
    names = list(gpus) if devices == "cuda" and gpus else [name.strip() for name in devices.split(",")]
    for name in names:
        if not re.fullmatch(r"cuda(:\d+)?", name):
            raise RequestError(
                f"--devices expects cpu, cuda or GPUs such as cuda:0,cuda:1, got '{devices}': "
                f"there is {', '.join(['cpu', *gpus])}"
            )
        if name not in gpus:
            raise RequestError(f"--devices: {unknown('device', name, ['cpu', *gpus])}")
    if len(set(names)) < len(names):
        raise RequestError(f"--devices expects every device once, got '{devices}'")
    return names


def choose(devices: str | None, jobs: int | None, threads: int | None, runs: int) -> Slots:
    """Slots for ``runs`` runs.

    Without ``devices``: every visible GPU, else the CPU. ``jobs`` is the number of slots over all
    devices; without it, one a core on the CPU, and on GPUs as many as there are cores, at most
    ``PER_GPU`` and at least one on each. A run has one thread unless ``threads`` says otherwise: the
    number of threads changes the last bits of sums, so it must not follow from how many runs there
    are.

    Raises:
        RequestError: no such device, or fewer than one job or thread.
    """
    check_counts(jobs, threads)
    gpus = {} if devices == "cpu" else _visible()
    names = _named(devices, gpus) if devices is not None else list(gpus) or ["cpu"]
    usual = cores() if names == ["cpu"] else min(PER_GPU * len(names), max(cores(), len(names)))
    count = max(1, min(jobs or usual, runs))
    slots = tuple(names[index % len(names)] for index in range(count))
    return Slots(slots, threads or 1, {name: gpus[name] for name in slots if name in gpus})


# Processes, as the sweep sees them ----------------------------------------------------------------

RUNS_PER_WORKER = 200
"""A worker is replaced after so many runs, should it lose memory: it did not over 120 runs of four
methods, and a new one takes two or three seconds to start.
"""

SILENCE = 300.0
"""Seconds that a process has to start and to take up a run. It needs two or three; one that is still silent
then will never answer, and holds up its slot alone.
"""

KILLED = -getattr(signal, "SIGKILL", 9)
"""Exit code of a process that the system has killed; no process ends so where there is no such signal."""

LOOK = 1.0
"""Seconds between two looks at whether a process still lives. Its end of the pipe may outlive it, in another
process that a method has started.
"""


class WorkerProcess:
    """A process that makes one run at a time, and the pipe to it."""

    def __init__(self) -> None:
        context = get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=serve, args=(theirs,))
        self._process.start()
        theirs.close()  # else the end of the process would not be the end of the pipe
        self.runs = 0
        atexit.register(self.end)

    def send(self, message: Any) -> None:
        """Hand a message over.

        Raises:
            OSError: the process is gone.
        """
        self._pipe.send(message)

    def receive(self, seconds: float) -> Any:
        """The next message, waited for that long.

        Raises:
            TimeoutError: there was none.
            EOFError, OSError: the process is gone.
        """
        end = time.monotonic() + seconds
        while not self._pipe.poll(max(0.0, min(LOOK, end - time.monotonic()))):
            if not self._process.is_alive() and not self._pipe.poll():
                raise EOFError
            if time.monotonic() >= end:
                raise TimeoutError
        return self._pipe.recv()

    def end(self, grace: float = 0.0) -> int:
        """Kill the process, unless it ends by itself within some seconds; returns its exit code."""
        self._process.join(grace)
        self._process.kill()
        self._process.join()
        atexit.unregister(self.end)
        return self._process.exitcode or 0


class LocalWorkers:
    """A process for each slot, started when it is first used, and a thread that waits for it."""

    def __init__(self, slots: int, execute: Execute, timeout: float | None, silence: float = SILENCE) -> None:
        self._processes: list[WorkerProcess | None] = [None] * slots
        self._threads = ThreadPoolExecutor(slots, "worker")
        self._execute = execute
        self._timeout = timeout
        self.silence = silence
        self._stopped = False

    def start(
        self, slot: int, order: Order, log: Path | None, fresh: bool, demand: Demand | None = None
    ) -> Future[RunResult | Lost]:
        """Begin a run in a slot. Whoever fills the slots has seen to the ``demand``."""
        return self._threads.submit(self._make, slot, order, log, fresh)

    def _make(self, slot: int, order: Order, log: Path | None, fresh: bool) -> RunResult | Lost:
        kills = kills_for_memory()
        try:
            process = self._processes[slot] = self._processes[slot] or WorkerProcess()
        except OSError as error:  # the system has no process, no memory or no file to give
            return Lost(f"no worker process could be started ({error})")
        if self._stopped:  # before it was among the processes, so that ``stop`` has not seen it
            process.end()
            return Lost("the sweep stopped")
        taken = False
        try:
            process.send((self._execute, order, log, fresh))
            process.receive(self.silence)
            taken = True
            result: RunResult = process.receive(self._timeout or float("inf"))
        except TimeoutError:
            self._end(slot)
            if not taken:
                return Lost(f"the worker process did not take it up within {self.silence:g} s")
            seconds = self._timeout or 0.0
            reason = f"timed out after {seconds:g} s"
            return RunResult("failed", reason, seconds={"total": seconds}, device=order.device)
        except (EOFError, OSError):
            code = self._end(slot, grace=LOOK)
            if code == KILLED and kills_for_memory() > kills:
                reason = "the system killed the worker for want of memory"
                return RunResult("oom", reason, device=order.device)
            if code < 0:
                return Lost(f"the worker process died (killed by signal {-code})")
            reason = f"the worker process died (exit code {code})"
            return RunResult("failed", reason, device=order.device) if taken else Lost(reason)
        except Exception as error:  # the order cannot be handed over, or what came of it not be read
            self._end(slot)
            return RunResult("failed", _first_line(error), traces.format_exc(), device=order.device)
        process.runs += 1
        broken = result.state == "failed" and order.device != "cpu"  # some errors of a device stay
        if broken or result.state == "oom" or process.runs == RUNS_PER_WORKER:
            self._end(slot)
        return result

    def _end(self, slot: int, grace: float = 0.0) -> int:
        """End a slot's process, whose next run starts a new one; returns its exit code."""
        process, self._processes[slot] = self._processes[slot], None
        return 0 if process is None else process.end(grace)

    def stop(self) -> None:
        """End every process, also in the middle of a run."""
        self._stopped = True
        for process in self._processes:
            if process is not None:
                process.end()
        self._threads.shutdown(cancel_futures=True)


def kills_for_memory() -> int:
    """How many processes the system has killed since it started because memory ran out; 0 where it
    does not say.
    """
    count = 0
    for source in ("/proc/vmstat", "/sys/fs/cgroup/memory.events"):
        try:
            lines = Path(source).read_text().splitlines()
        except OSError:
            continue
        count += sum(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))
    return count


# In a process -------------------------------------------------------------------------------------


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


def serve(pipe: Connection) -> None:
    """Make the runs that come through a pipe as the arguments of ``attempt``, until it is closed.

    The answers to each are None, once it is taken up, and its outcome.
    """
    prepare()
    with suppress(EOFError):
        while True:
            arguments = pipe.recv()
            pipe.send(None)
            result = attempt(*arguments)
            try:
                pipe.send(result)
            except Exception as error:  # it cannot be pickled
                pipe.send(_outcome(error, result.device))


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


def execute(
    order: Order,
    view: Callable[[Federation], Federation] | None = None,
    checkpoint_of: CheckpointOf | None = None,
    kept: KeptModels | None = None,
) -> RunResult:
    """Execute an order's spec on its federation, which is kept for the next ones.

    The run gets a ``view`` of the federation, of the same hash, where there is one. ``checkpoint_of`` says
    where it is saved; by default as ``run_checkpoint`` does. ``kept`` is given the run's trained models.

    The outcome says which code this process has: a sweep's files may be edited while it lasts, and a
    worker that takes the place of another has what was there then.

    Raises:
        NoDataError: the data set is not to be had.
        NotApplicableError: the method cannot do what the spec asks.
        RequestError: the data here make other clients than the order says.
    """
    import torch

    from bench.engine.execute import run
    from bench.sweep import fingerprint

    if parent_process() is not None:  # elsewhere the process is not the worker's own
        _set_aside()
    torch.set_num_threads(order.threads)
    spec = order.spec
    code = fingerprint.code(spec.method, spec.client.model)
    federation = _federation(spec.federation_key, order.roots, order.federation)
    if order.clients and federation.hash != order.clients:
        raise RequestError(
            f"expected the sweep's clients ({order.clients[:8]}) on every machine, "
            f"the data of this one make others ({federation.hash[:8]})"
        )
    if view is not None:
        federation = view(federation)
    block_size = _block_size(spec, federation, order) if order.shrink > 1 else None
    checkpoint = (checkpoint_of or run_checkpoint)(spec, federation, order)
    if checkpoint is not None:
        checkpoint.kept = kept
    result = of_run(lambda: run(spec, federation, order.device, block_size, checkpoint, kept), order.device)
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


def run_checkpoint(spec: RunSpec, federation: Federation, order: Order) -> Checkpoint | None:
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
def _federation(key: Key, roots: tuple[str, ...], copy: FederationCopy | None) -> Federation:
    """The federation that the sweep has built; built here where it cannot be read."""
    from bench.federation.build import build

    if copy is not None:
        with suppress(OSError):
            return copy.read()
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
