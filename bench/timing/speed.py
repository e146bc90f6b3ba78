"""Measures seconds a round.

Rounds of the stacked engine and of the sequential reference alternate in one process, so that other work on
the machine slows both of them.
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
"""Default numbers of clients on images, from the image study."""


@dataclass(frozen=True)
class Case:
    """A run to time."""

    dataset: str
    scenario: str
    method: str
    clients: int


@dataclass(frozen=True)
class Row:
    """One line of the table of rounds.

    The sequential seconds and the ratio are None if the reference lacks the client model or cannot train as
    the method does.
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
    """Do ``work`` on a case in a new process, so that the peak memory belongs to this case only."""
    with ProcessPoolExecutor(1, get_context("spawn"), end_with_parent) as pool:
        return pool.submit(work, case).result()


@run_conditions()
def measure(case: Case, rounds: int, roots: tuple[Path, ...], device: str, threads: int) -> Row:
    """Measure a line of the table of rounds. If a method first trains a generator, it does so for one epoch.

    Raises:
        NotApplicableError: the method cannot run on this data set.
        RequestError: a run has too few rounds for ``rounds``, or the federation does not exist.
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
    with suppress(NotApplicableError):  # the reference lacks what the method needs
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
    """The cases of ``bench speed`` on a data set; default numbers of clients and FedAvg if none are given."""
    counts = clients or (IMAGE_CLIENTS if DATASETS.named(dataset).family == "images" else CLIENTS)
    return [Case(dataset, scenario, name, count) for count in counts for name in methods or ("fedavg",)]
