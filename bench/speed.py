"""Seconds a round: the stacked engine against the sequential reference, in one process, in turns.

Beside each figure stands the bound that the machine sets, max(bytes / copy bandwidth, operations /
matrix rate), with both rates measured on the spot. Bytes count the traffic that no order of work
avoids once a block fits the cache: every trained parameter is written once and read once a round
(evaluation and averaging), its two moments are read and written once. A server's output layers
count ten passes (generation, backward pass, gradient, Adam's four reads and three writes), or the
first alone where the server does not learn.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import ParamSpec, TypeVar

import numpy as np
import torch

from bench import registry
from bench.engine.costs import peak_memory, reset_peak_memory
from bench.engine.method import Method
from bench.engine.reference import SequentialClients
from bench.engine.run import Run
from bench.errors import RequestError
from bench.federation.build import build
from bench.federation.types import Federation
from bench.resolve import resolve
from bench.spec import RunSpec

WARM_UP_ROUNDS = 2

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class Row:
    """One line of the table; ``ratio`` is sequential over stacked seconds.

    The sequential reference trains whole models with cross-entropy only: a method that asks for
    more has no such figures.
    """

    method: str
    clients: int
    seconds_per_round: float
    sequential_seconds_per_round: float | None
    ratio: float | None
    peak_mib: float
    bound_seconds: float
    bound_share: float


@dataclass(frozen=True)
class Machine:
    """Measured rates: bytes per second of a large copy (read and written), operations per second."""

    bandwidth: float
    matrix_rate: float


def measure_machine(device: torch.device) -> Machine:
    """Copy bandwidth and float32 matrix rate, the best of several tries each."""

    def best(work: Callable[[], object]) -> float:
        times = []
        for _ in range(6):
            _synchronise(device)
            begin = time.perf_counter()
            work()
            _synchronise(device)
            times.append(time.perf_counter() - begin)
        return min(times)

    source = torch.randn(32_000_000, device=device)
    target = torch.empty_like(source)
    square = torch.randn(2000, 2000, device=device)
    copied = 2 * source.numel() * source.element_size()
    return Machine(
        bandwidth=copied / best(lambda: target.copy_(source)),
        matrix_rate=2 * 2000**3 / best(lambda: square @ square),
    )


def bound(run: Run, federation: Federation, machine: Machine) -> float:
    """Seconds that a round of the study's GCN cannot beat on this machine; call after some rounds."""
    settings = run.spec.client
    parameters = sum(_numel(shape) for shape in run.model.shapes.values())
    moved = 6 * 4 * parameters * len(federation)
    operations = 0.0
    for client in federation.clients:
        nodes, words = len(client.ids), int(np.count_nonzero(client.features.data))
        assert client.edges is not None
        links = client.edges.shape[1] + nodes
        hidden, classes = settings.hidden, federation.classes
        forward = 2 * hidden * (words + 2 * links + nodes * hidden + nodes * classes)
        backward = forward + 2 * hidden * (nodes * hidden + nodes * classes)
        operations += run.spec.protocol.local_epochs * (forward + backward) + 2 * forward
    if hasattr(run.method, "network"):
        layers = list(run.method.network.out.values())
        output = sum(layer.weight.numel() for layer in layers)
        learns = any(layer.weight.grad is not None for layer in layers)
        moved += (10 if learns else 1) * 4 * output
        operations += (6 if learns else 2) * len(federation) * output
    return max(moved / machine.bandwidth, operations / machine.matrix_rate)


def _numel(shape: tuple[int, ...]) -> int:
    return int(torch.Size(shape).numel())


def _synchronise(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def prepare(dataset: str, method: str, clients: int, roots: tuple[Path, ...]) -> tuple[RunSpec, Federation]:
    """A data set over ``clients``, with the first partition seed that leaves each a training node."""
    overrides = {"method.warm_up_epochs": 1} if method.startswith("fedsheafhn") else {}
    spec = resolve(dataset, "non-overlapping", clients, method, 0, overrides)
    for seed in range(123, 173):
        try:
            federation = build(dataset, "non-overlapping", clients, seed, spec.protocol.split, roots)
        except RequestError:
            continue
        return spec, federation
    raise RequestError(
        f"no partition of {dataset} gives each of {clients} clients a training node: use fewer"
    )


def apart(work: Callable[P, T], *arguments: P.args, **options: P.kwargs) -> T:
    """The result of ``work`` in a process of its own, whose peak memory is that of the work alone."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(work, *arguments, **options).result()


def measure(
    dataset: str,
    method: str,
    clients: int,
    rounds: int,
    machine: Machine,
    roots: tuple[Path, ...],
    device: str,
    threads: int,
    sequential_too: bool,
) -> Row:
    """A line of the table: peak memory of the stacked engine alone in a fresh process (``apart``);
    then median seconds of either engine, in turns.

    Raises:
        NotApplicableError: the method cannot run on this data set.
    """
    torch.set_num_threads(threads)
    torch.set_flush_denormal(True)  # as in a run
    spec, federation = prepare(dataset, method, clients, roots)
    where = torch.device(device)
    reset_peak_memory(where)
    runs = [_warm(Run(spec, federation, device))]
    mebibytes = peak_memory(where) / 2**20
    if sequential_too:
        runs.append(_warm(Run(spec, federation, device, clients_type=SequentialClients)))
    times: list[list[float]] = [[] for _ in runs]
    for index in range(WARM_UP_ROUNDS, WARM_UP_ROUNDS + rounds):
        for run, taken in zip(runs, times, strict=True):
            _synchronise(where)
            begin = time.perf_counter()
            run.step(index)
            _synchronise(where)
            taken.append(time.perf_counter() - begin)
    stacked, *others = (statistics.median(taken) for taken in times)
    sequential = others[0] if others else None
    least = bound(runs[0], federation, machine)
    ratio = sequential / stacked if sequential else None
    return Row(method, clients, stacked, sequential, ratio, mebibytes, least, least / stacked)


def _warm(run: Run) -> Run:
    run.warm_up()
    for index in range(WARM_UP_ROUNDS):
        run.step(index)
    return run


def is_plain(method: str) -> bool:
    """Whether a method's clients do nothing but train whole models with cross-entropy."""
    return registry.method(method).train is Method.train


def every_method() -> list[str]:
    """Methods that train on graphs, FedAvg first: it is what the others are compared with."""
    names = [
        name
        for name, kind in registry.methods().items()
        if "graph" in kind.families and kind.trains and kind.reads is None
    ]
    return sorted(names, key=lambda name: (name != "fedavg", name))


def as_rows(rows: list[Row]) -> list[dict[str, object]]:
    """Rows as plain dictionaries, for JSON."""
    return [asdict(row) for row in rows]
