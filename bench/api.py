"""The commands as functions for Python and notebooks: ``bench.run``, ``bench.sweep``, ``bench.compare``."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from dataclasses import replace
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pandas as pd
import torch
from numpy.typing import NDArray
from rich.console import Console

from bench import comparison, paths
from bench.contract.checks import check
from bench.dataset import DATASETS
from bench.engine import execute
from bench.engine.method import Method
from bench.engine.methods import METHODS
from bench.errors import RequestError
from bench.federation.build import build
from bench.frames.whole_frames import whole_frame
from bench.grids import Filters, expand, requested_grid
from bench.metric_names import ACCURACY, Metric
from bench.resolve import Overrides, resolve
from bench.runner import fingerprint
from bench.runner.display import Display
from bench.runner.plan import Step, data_at_hand, make_plan, to_run
from bench.runner.run import Sweep
from bench.runner.workers import OwnProcess, Pool, choose
from bench.spec import RunSpec
from bench.store import open_store
from bench.store.store import stored_runs
from bench.studies.shipped import opened_results

READING = {"stage": "trained", "split": "test", "rule": "best_val"}


class Run(NamedTuple):
    """A run and its numbers. Only a run with the state ``done`` has numbers.

    Attributes:
        spec: everything that determines the run.
        state: ``done``, ``diverged`` or ``not_applicable``; the last two have a ``reason``.
        accuracy: the test accuracy in percent, mean over clients, of the trained models at the round of best
            validation accuracy; NaN if the run has no numbers.
        clients: this accuracy for each client, in the form of ``bench.clients``.
        curve: the test accuracy at each evaluation, in the form of ``bench.curves``.
        artefacts: arrays that the method stores in addition to its numbers.
    """

    spec: RunSpec
    state: str
    reason: str
    accuracy: float
    clients: pd.DataFrame
    curve: pd.DataFrame
    artefacts: dict[str, NDArray[Any]]


def run(
    method: str | type[Method],
    dataset: str,
    *,
    clients: int = 10,
    seed: int = 0,
    scenario: str | None = None,
    rounds: int | None = None,
    settings: Overrides | None = None,
    device: str = "cpu",
) -> Run:
    """Make one run in this process, and store nothing.

    ``method`` is a name or a class. Without ``scenario`` the data set's first scenario is used. ``settings``
    has the keys of ``--set``, such as ``{"method.mu": 0.1}``; ``rounds`` is short for ``protocol.rounds``.

    Raises:
        RequestError: a name or a setting is wrong, or the data cannot be found or downloaded. An error
            inside the method is raised unchanged.
    """
    overrides = {**({} if rounds is None else {"protocol.rounds": rounds}), **(settings or {})}
    place = scenario or DATASETS.named(dataset).scenarios[0]
    spec = resolve(dataset, place, clients, known(method), seed, overrides)
    federation = build(*spec.federation_key, roots=paths.data_roots())
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # as in a sweep: more threads change last digits
    try:
        result = execute.run(spec, federation, device)
    finally:
        torch.set_num_threads(threads)
    reached, curve, accuracy = pd.DataFrame(), pd.DataFrame(), float("nan")
    if result.state == "done":
        with (
            TemporaryDirectory() as folder,
            open_store(f"sqlite:///{folder}/run.db", create=True) as store,
        ):
            store.save(spec, result)
            reached = whole_frame("clients", store, filters=READING)
            curve = whole_frame("curves", store, filters={"split": "test"})
        accuracy = float(reached["accuracy"].mean())
    return Run(spec, result.state, result.reason, accuracy, reached, curve, result.artefacts)


def known(method: str | type[Method]) -> str:
    """Return the name of a method. A class that is defined in no file is registered for this process."""
    if isinstance(method, str):
        return method
    if method not in METHODS.all().values():
        METHODS.add(method)
        fingerprint.code.cache_clear()
    return method.name


def sweep(
    methods: Iterable[str | type[Method]] = (),
    datasets: Iterable[str] = (),
    clients: Iterable[int] = (),
    seeds: Iterable[int] = (),
    *,
    scenarios: Iterable[str] = (),
    grid: str | None = None,
    settings: Overrides | None = None,
    jobs: int | None = None,
    devices: str | None = None,
    db: str | None = None,
) -> pd.DataFrame:
    """Run what is not done yet, as ``bench sweep`` does, and return these runs as ``bench.runs`` does.

    Without ``grid``, ``methods`` and ``datasets`` name the runs. The defaults are 10 clients, the data
    set's first scenario and seed 0. With ``grid``, the arguments select among the grid's runs. Results go
    into the database ``db`` (default: the one in ``BENCH_HOME``). The frame also contains failed runs, with
    ``state`` and ``reason``.

    A script must call ``sweep`` below ``if __name__ == "__main__":``, since worker processes import it.

    Raises:
        RequestError: ``bench sweep`` would print this error.
    """
    names = tuple(known(method) for method in methods)
    choice = Filters(tuple(datasets), tuple(scenarios), tuple(clients), names, tuple(seeds))
    runs = expand(requested_grid(grid, choice), choice, settings)
    database = db or paths.default_database()
    plan = make_plan(runs, stored_runs(database), data_at_hand(paths.data_roots()))
    _fill(plan, database, jobs, devices)
    with open_store(database, create=False) as store:
        return whole_frame("runs", store, filters={"spec_hash": [run.spec.hash for run in runs]})


def compare(
    method: str | type[Method],
    dataset: str,
    *,
    clients: int | None = None,
    scenario: str | None = None,
    seeds: Iterable[int] = (),
    study: str | None = None,
    settings: Overrides | None = None,
    metric: Metric = ACCURACY,
    jobs: int | None = None,
    devices: str | None = None,
    db: str | None = None,
) -> pd.DataFrame:
    """Run the missing runs of a method and compare it with the other methods, as ``bench compare`` does.

    The frame has a row for each task and method, the best method first: dataset, scenario, clients, point,
    method, title, rank, mean and std in percent, and seeds. The other columns give the lead of the compared
    method over the row's method on common seeds: difference in points, low and high of its 95 % interval,
    p_holm (corrected over the compared method's own tests), and verdict.

    The other methods' results come with the suite or from the database. If no study has the data set, their
    runs are made. Clients, scenario and seeds are the study's unless given.

    Raises:
        RequestError: ``bench compare`` would print this error, or the method breaks a rule of the contract.
    """
    name = known(method)
    choice = Filters(
        (dataset,), (scenario,) if scenario else (), (clients,) if clients else (), (), tuple(seeds)
    )
    beside, runs = comparison.asked(name, choice, settings or {}, study)
    for finding in check(name):
        if finding.problem:
            raise RequestError(f"{name}: {finding.rule}: {finding.problem}")
    database = db or paths.default_database()
    _fill(comparison.plan(name, runs, stored_runs(database), paths.data_roots()), database, jobs, devices)
    with opened_results(database, own=False) as source:
        *_, rows = comparison.compare(source, beside, name, runs, metric)
    return rows[comparison.STANDINGS]


def _fill(plan: Sequence[Step], database: str, jobs: int | None, devices: str | None) -> None:
    """Make the runs of a plan that a database lacks.

    A method from a notebook's cell runs in this process, because other processes do not know its class. Its
    runs are always made again, because a change of its code cannot be detected.
    """
    in_cells = {name for name, kind in METHODS.all().items() if kind.__module__ == "__main__"}
    plan = [replace(step, to_run=step.to_run or step.spec.method in in_cells) for step in plan]
    is_own = any(step.spec.method in in_cells for step in plan)
    pool: Pool = choose(devices, 1 if is_own else jobs, None, len(to_run(plan)))
    if is_own:
        pool = OwnProcess(pool.devices, pool.threads)
    # a notebook's cell can show a terminal's progress bar, and needs no widget for it
    is_terminal = "ipykernel" in sys.modules or None
    display = Display(Console(highlight=False, force_terminal=is_terminal, force_jupyter=False))
    home = None if is_own else paths.home()
    Sweep(plan, database, paths.data_roots(), pool, display, home=home).run()
