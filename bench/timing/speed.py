"""Seconds a round or of a whole run.

Rounds of the stacked engine, of the sequential reference and of FedAvg are timed in one process and in turns,
so that other work on the machine slows all of them.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

import torch

from bench.dataset import DATASETS
from bench.engine.costs import peak_memory, reset_peak_memory, run_conditions
from bench.engine.execute import run
from bench.engine.methods import METHODS
from bench.engine.run import Run
from bench.errors import NoDataError, NotApplicableError, RequestError
from bench.federation.build import build
from bench.federation.types import Federation
from bench.nn.base import CLIENT_MODELS
from bench.process import end_with_parent
from bench.resolve import Overrides, resolve
from bench.spec import RunSpec
from bench.timing.reference import SequentialClients

WARM_UP_ROUNDS = 2
WHOLE_RUNS = 3
CLIENTS = (10, 20, 50, 100, 200)
EVERY_METHODS_CLIENTS = (10, 50, 100)
IMAGE_CLIENTS = (20,)
"""Clients of the image study."""

BASE = "fedavg"
"""The method that the others are timed beside."""

T = TypeVar("T")


@dataclass(frozen=True)
class Case:
    """What is timed: with another ``model`` than the data set's own, and with the sequential ``reference``
    and a ``base`` method beside it.
    """

    dataset: str
    scenario: str
    method: str
    clients: int
    model: str | None = None
    reference: bool = True
    base: str | None = None


@dataclass(frozen=True)
class Row:
    """One line of the table of rounds.

    The sequential seconds and their ratio are None where the reference lacks the client model or trains in
    another way than the method. ``factor`` is the method's seconds over those of the case's base.
    """

    dataset: str
    method: str
    model: str
    clients: int
    seconds_per_round: float
    sequential_seconds_per_round: float | None
    ratio: float | None
    peak_mib: float
    factor: float | None = None

    def __str__(self) -> str:
        return f"{self.method} ({self.model}) {self.clients}: {self.seconds_per_round * 1e3:.1f} ms a round"


@dataclass(frozen=True)
class WholeRow:
    """One line of the table of whole runs: warm-up, rounds and evaluation, as the protocol says."""

    method: str
    clients: int
    rounds: int
    local_epochs: int
    seconds: float
    peak_mib: float

    def __str__(self) -> str:
        return f"{self.method} {self.clients}: {self.seconds:.2f} s a run"


def _synchronise(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def prepare(
    case: Case, roots: tuple[Path, ...], overrides: Overrides | None = None
) -> tuple[RunSpec, Federation]:
    """The spec, and the federation of the first of fifty partition seeds that is not refused.

    If all are refused, the data set is replaced by the larger one that it names.

    Raises:
        RequestError: there is no larger data set; or there are no such data or names.
    """
    spec = resolve(case.dataset, case.scenario, case.clients, case.method, 0, overrides)
    refusals = []
    for seed in range(123, 173):
        try:
            return spec, build(case.dataset, case.scenario, case.clients, seed, spec.protocol.split, roots)
        except NoDataError:
            raise
        except RequestError as error:
            refusals.append(error)
    enlarged = DATASETS.named(case.dataset).enlarged
    if enlarged:
        return prepare(replace(case, dataset=enlarged), roots, overrides)
    raise refusals[-1]


def _settings(case: Case, overrides: Overrides) -> dict[str, Any]:
    """The settings of a case. A method that trains a generator first does so for one epoch."""
    warms_up = "warm_up_epochs" in METHODS.named(case.method).Hyper.model_fields
    settings = {**({"method.warm_up_epochs": 1} if warms_up else {}), **overrides}
    return settings if case.model is None else settings | {"client.model": case.model}


def apart(work: Callable[[Case], T], case: Case) -> T:
    """A case's result of ``work`` in a process of its own, whose peak of memory is that of the work alone."""
    with ProcessPoolExecutor(1, get_context("spawn"), end_with_parent) as pool:
        return pool.submit(work, case).result()


@run_conditions()
def measure(
    case: Case,
    rounds: int,
    roots: tuple[Path, ...],
    device: str,
    threads: int,
    overrides: Overrides,
) -> Row:
    """Measure a line of the table of rounds.

    Raises:
        NotApplicableError: the method cannot run on this data set.
        RequestError: a run has fewer rounds, or there is no such federation.
    """
    torch.set_num_threads(threads)
    settings = _settings(case, overrides)
    spec, federation = prepare(case, roots, settings)
    if not 1 <= rounds <= spec.protocol.rounds - WARM_UP_ROUNDS:
        raise RequestError(
            f"rounds: expected 1 or more which fit, with {WARM_UP_ROUNDS} to warm up, into a run of "
            f"{spec.method} on {spec.dataset}, which has {spec.protocol.rounds}; got {rounds}"
        )
    torch_device = torch.device(device)
    reset_peak_memory(torch_device)
    runs = {"stacked": _warmed_run(Run(spec, federation, device))}
    mebibytes = peak_memory(torch_device) / 2**20
    if case.reference:
        with suppress(NotApplicableError):  # a method that asks for more than the reference does
            sequential_run = Run(spec, federation, device, clients_type=SequentialClients)
            runs["sequential"] = _warmed_run(sequential_run)
    if case.base is not None:
        general_settings = {key: value for key, value in settings.items() if not key.startswith("method.")}
        base = resolve(spec.dataset, spec.scenario, spec.clients, case.base, 0, general_settings)
        runs["base"] = _warmed_run(Run(base, federation, device))
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
        seconds / medians["base"] if "base" in medians else None,
    )


def measure_whole(case: Case, roots: tuple[Path, ...], device: str, threads: int) -> WholeRow:
    """Median seconds of ``WHOLE_RUNS`` whole runs after one to warm up, and the highest peak memory.

    Raises:
        NotApplicableError: the method cannot run on this data set.
        RequestError: its runs do not end, or there is no such federation.
    """
    torch.set_num_threads(threads)
    spec, federation = prepare(case, roots)
    results = [run(spec, federation, device) for _ in range(1 + WHOLE_RUNS)]
    for result in results:
        if result.state == "not_applicable":
            raise NotApplicableError(result.reason)
        if result.state != "done":
            raise RequestError(f"{case.method} on {case.dataset}: {result.state} ({result.reason})")
    return WholeRow(
        case.method,
        case.clients,
        spec.protocol.rounds,
        spec.protocol.local_epochs,
        statistics.median(result.seconds["total"] for result in results[1:]),
        max(result.peak_memory for result in results) / 2**20,
    )


def _warmed_run(run: Run) -> Run:
    run.warm_up()
    for index in range(WARM_UP_ROUNDS):
        run.step(index)
    return run


def cases(
    dataset: str, scenario: str, clients: Sequence[int], methods: Sequence[str], whole: bool
) -> list[Case]:
    """What ``bench speed`` times on a data set; without numbers of clients or methods, a choice of them.

    ``methods`` is ``("all",)`` for every one that can run, beside FedAvg and without the reference. ``whole``
    runs are timed with the data set's own client model alone.
    """
    data = DATASETS.named(dataset)
    with_all, is_images = list(methods) == ["all"], data.family == "images"
    usual_counts = IMAGE_CLIENTS if is_images else EVERY_METHODS_CLIENTS if with_all else CLIENTS
    counts, names = tuple(clients) or usual_counts, list(methods) or [BASE]
    if with_all:
        names = [
            name
            for name, kind in sorted(METHODS.all().items(), key=lambda entry: (entry[0] != BASE, entry[0]))
            if data.family in kind.families and kind.trains and kind.reads is None
        ]
    bases = {name: BASE if with_all and name != BASE else None for name in names}
    chosen_cases = [
        Case(dataset, scenario, name, count, reference=not with_all, base=bases[name])
        for count in counts
        for name in names
    ]
    if is_images and not whole and (with_all or not methods):
        models = [name for name, kind in CLIENT_MODELS.all().items() if data.family in kind.families]
        models.remove(data.client.model)
        chosen_cases += [Case(dataset, scenario, BASE, count, name) for count in counts for name in models]
    if data.family == "graph" and not methods:
        chosen_cases.append(Case(dataset, scenario, "fedsheafhn", counts[0]))
    return chosen_cases
