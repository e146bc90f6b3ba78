"""What the commands do, from Python and in a notebook: ``bench.run``, ``bench.sweep``, ``bench.compare``."""

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
    """A run and its numbers; only one that is ``done`` has any.

    Attributes:
        spec: everything that determines the run.
        state: ``done``, ``diverged`` or ``not_applicable``; the last two have a ``reason``.
        accuracy: the test accuracy in percent, mean over clients, of the trained models at the round of best
            validation accuracy; NaN without one.
        clients: the same for each client, as ``bench.clients`` gives it.
        curve: the test accuracy by evaluation, as ``bench.curves`` gives it.
        artefacts: arrays that the method keeps beside its numbers.
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

    ``method`` is a name or a class. ``scenario`` is the data set's first one unless named. ``settings`` are
    those of ``--set``, such as ``{"method.mu": 0.1}``; ``rounds`` is short for ``protocol.rounds``.

    Raises:
        RequestError: a wrong name or setting, or data that are not to be had. Errors of the method leave as
            they are.
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
    """The name of a method; a class that no file holds is known to this process from now on."""
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

    Without ``grid``, ``methods`` and ``datasets`` say what to run: with 10 clients, in the data set's first
    scenario and with seed 0 unless told otherwise; with it they choose among its runs. Results go into the
    database ``db`` (default: the one in ``BENCH_HOME``), and a run that failed into the frame with its
    ``state`` and ``reason``.

    In a script, call it below ``if __name__ == "__main__":``, since worker processes import the script.

    Raises:
        RequestError: as ``bench sweep`` prints it.
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
    """Run what is missing of a method and return where it stands among the others, as ``bench compare`` does.

    A row names a task and a method (dataset, scenario, clients, point, method, title), the best first, and
    says what it reaches (rank; mean and std in percent; seeds) and what the method that is compared has over
    it on the seeds of both: difference in points, its 95 % interval low to high, p_holm, corrected over the
    method's own tests, and verdict.

    The other methods' results come with the suite or from the database; of data that no study has, they are
    made. Clients, scenario and seeds are those of the study unless told otherwise.

    Raises:
        RequestError: as ``bench compare`` prints it, or the method breaks a rule of the contract.
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
        _, rows = comparison.compare(source, beside, name, runs, metric)
    return rows[comparison.STANDINGS]


def _fill(plan: Sequence[Step], database: str, jobs: int | None, devices: str | None) -> None:
    """Make those runs of a plan that a database lacks.

    The methods of a notebook's cell run in this process, which alone knows them, and always anew: nobody can
    tell whether their code has changed.
    """
    in_cells = {name for name, kind in METHODS.all().items() if kind.__module__ == "__main__"}
    plan = [replace(step, to_run=step.to_run or step.spec.method in in_cells) for step in plan]
    is_own = any(step.spec.method in in_cells for step in plan)
    pool: Pool = choose(devices, 1 if is_own else jobs, None, len(to_run(plan)))
    if is_own:
        pool = OwnProcess(pool.devices, pool.threads)
    # a cell of a notebook shows a terminal's progress bar, which no widget is needed for
    is_terminal = "ipykernel" in sys.modules or None
    display = Display(Console(highlight=False, force_terminal=is_terminal, force_jupyter=False))
    home = None if is_own else paths.home()
    Sweep(plan, database, paths.data_roots(), pool, display, home=home).run()
