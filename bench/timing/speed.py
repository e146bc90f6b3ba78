"""Seconds a round.

Rounds of the stacked engine and of the sequential reference are timed in one process and in turns, so that
other work on the machine slows both of them.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path

import torch

from bench.dataset import DATASETS
from bench.engine.costs import peak_memory, reset_peak_memory, run_conditions
from bench.engine.methods import METHODS
from bench.engine.run import Run
from bench.errors import NotApplicableError, RequestError
from bench.federation.build import build
from bench.resolve import resolve
from bench.runner.workers import end_with_parent
from bench.timing.reference import SequentialClients

WARM_UP_ROUNDS = 2
CLIENTS = (10, 50, 100)
IMAGE_CLIENTS = (20,)
"""Clients of the image study."""


@dataclass(frozen=True)
class Case:
    """What is timed."""

    dataset: str
    scenario: str
    method: str
    clients: int


@dataclass(frozen=True)
class Row:
    """One line of the table of rounds.

    The sequential seconds and their ratio are None where the reference lacks the client model or trains in
    another way than the method.
    """

    dataset: str
    method: str
    model: str
    clients: int
    seconds_per_round: float
    sequential_seconds_per_round: float | None
    ratio: float | None
    peak_mib: float


def _synchronise(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def apart(work: Callable[[Case], Row], case: Case) -> Row:
    """A case's result of ``work`` in a process of its own, whose peak of memory is that of the work alone."""
    with ProcessPoolExecutor(1, get_context("spawn"), end_with_parent) as pool:
        return pool.submit(work, case).result()


@run_conditions()
def measure(case: Case, rounds: int, roots: tuple[Path, ...], device: str, threads: int) -> Row:
    """Measure a line of the table of rounds. A method that trains a generator first does so for one epoch.

    Raises:
        NotApplicableError: the method cannot run on this data set.
        RequestError: a run has fewer rounds, or there is no such federation.
    """
    torch.set_num_threads(threads)
    warms_up = "warm_up_epochs" in METHODS.named(case.method).Hyper.model_fields
    settings = {"method.warm_up_epochs": 1} if warms_up else {}
    spec = resolve(case.dataset, case.scenario, case.clients, case.method, 0, settings)
    federation = build(*spec.federation_key, roots=roots)
    if not 1 <= rounds <= spec.protocol.rounds - WARM_UP_ROUNDS:
        raise RequestError(
            f"rounds: expected 1 or more which fit, with {WARM_UP_ROUNDS} to warm up, into a run of "
            f"{spec.method} on {spec.dataset}, which has {spec.protocol.rounds}; got {rounds}"
        )
    torch_device = torch.device(device)
    reset_peak_memory(torch_device)
    runs = {"stacked": _warmed_run(Run(spec, federation, device))}
    mebibytes = peak_memory(torch_device) / 2**20
    with suppress(NotApplicableError):  # a method that asks for more than the reference does
        sequential_run = Run(spec, federation, device, clients_type=SequentialClients)
        runs["sequential"] = _warmed_run(sequential_run)
    times: dict[str, list[float]] = {name: [] for name in runs}
    for index in range(WARM_UP_ROUNDS, WARM_UP_ROUNDS + rounds):
        for name, loop in runs.items():
            _synchronise(torch_device)
            begin = time.perf_counter()
            loop.step(index)
            _synchronise(torch_device)
            times[name].append(time.perf_counter() - begin)
    medians = {name: statistics.median(durations) for name, durations in times.items()}
    seconds, sequential_seconds = medians["stacked"], medians.get("sequential")
    return Row(
        spec.dataset,
        case.method,
        spec.client.model,
        case.clients,
        seconds,
        sequential_seconds,
        sequential_seconds / seconds if sequential_seconds else None,
        mebibytes,
    )


def _warmed_run(run: Run) -> Run:
    run.warm_up()
    for index in range(WARM_UP_ROUNDS):
        run.step(index)
    return run


def cases(dataset: str, scenario: str, clients: Sequence[int], methods: Sequence[str]) -> list[Case]:
    """What ``bench speed`` times on a data set; without numbers of clients or methods, a choice of them."""
    counts = clients or (IMAGE_CLIENTS if DATASETS.named(dataset).family == "images" else CLIENTS)
    return [Case(dataset, scenario, name, count) for count in counts for name in methods or ("fedavg",)]
