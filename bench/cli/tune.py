"""``bench tune``: find each method's configuration with the same budget for all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from cyclopts.types import PositiveInt

from bench import paths
from bench.cli import options
from bench.cli.output import console, say

if TYPE_CHECKING:
    from bench.grids import Planned
    from bench.runner.plan import Estimator
    from bench.tune.record import Record, Trial
    from bench.tune.search import Search
    from bench.tune.tuning import Value


def tune(
    *,
    grid: str | None = None,
    filters: options.RunFilters = options.ALL_RUNS,
    trials: PositiveInt = 20,
    settings: options.Settings = (),
    db: str | None = None,
    data_root: options.DataRoot = None,
    machines: options.Machines = options.LOCAL,
    dry_run: options.Flag = False,
) -> int:
    """Tune methods by validation accuracy. After a stop, the same command continues.

    'bench sweep --use-tuned' uses the configurations that are found (BENCH_HOME/tuned). Without --grid, -d
    and -m are needed; the defaults are 10 clients and the data set's first scenario. --seed gives the seeds
    of the search's runs, by default 1000 and 1001. Seeds of reports, 0 to 19, are refused.

    Args:
        grid: Name of a grid (tuning_fedsheafhn, ...) or a TOML file.
        trials: Trials of a search. Times rounds, local epochs and seeds, this is its budget of client epochs.
        settings: A setting that is not tuned, such as protocol.rounds=8; may be given several times.
        db: Database for the runs of searches alone; default: sqlite:///BENCH_HOME/tuning.db.
        dry_run: Print the searches, their progress and the time that is left. Run nothing.
    """
    roots = paths.data_roots(data_root)

    from bench.runner import plan
    from bench.runner.display import Display
    from bench.runner.execution import execute_trial
    from bench.runner.run import Sweep, opened_pool
    from bench.store.store import stored_runs
    from bench.tune.search import Searches, opened_searches
    from bench.tune.tuning import search_seeds, tunings

    seeds = search_seeds(filters.seed)
    requests, reasons = tunings(_cells(grid, filters, settings, seeds[0]), trials, seeds)
    home = paths.home()
    database = db or f"sqlite:///{home / 'tuning.db'}"
    searches, timings = opened_searches(database, requests)
    history = stored_runs(paths.default_database()).values()
    pool = opened_pool(machines, len(requests) * trials * len(seeds), home)
    estimator = plan.Estimator([*history, *timings], pool.devices[0])
    if dry_run:
        data_gap = plan.data_at_hand(roots)
        for search in searches:
            say(standing(search, estimator, data_gap(search.tuning.spec.dataset)))
        for name, reason in reasons.items():
            say(f"left out: {name}: {reason}")
        return 0
    result = Searches(searches, home, lambda *ended: say(_line(*ended)))
    display = Display(console(), only_notes=True)  # each trial prints its own line
    steps = result.next_steps(searches)
    sweep = Sweep(steps, database, roots, pool, display, execute_trial, home=home, follow_up=result.follow)
    result.give_up(sweep.run().left)
    for record in result.records:
        say(_result(record))
    for title, reason in result.failed.items():
        say(f"{title}: no winner: {reason}")
    return 1 if result.failed else 0


def _cells(
    grid: str | None, filters: options.RunFilters, settings: Sequence[str], seed: int
) -> list[Planned]:
    """The cells to tune, on the partition of protocol.partition_seed, even if a grid draws one a seed."""
    from bench.grids import expand, requested_grid
    from bench.resolve import parse_overrides

    choice = filters.of_grid()
    base = requested_grid(grid, choice)
    base = base.model_copy(update={"seeds": (seed,), "partition_per_seed": False})
    return expand(base, replace(choice, seeds=()), parse_overrides(settings))


# In one line --------------------------------------------------------------------------------------


def standing(search: Search, estimator: Estimator, data_gap: str) -> str:
    """Progress of a search by its stored runs, and the time for its unused client epochs, or the reason why
    its data are missing. The time assumes sequential runs with the cost of the default configuration.
    """
    from bench.runner.display import duration
    from bench.tune.record import winner_of

    tuning, best = search.tuning, winner_of(search.trials)
    used = sum(trial.client_epochs for trial in search.trials)
    seconds = estimator.seconds(tuning.spec)
    time = "time unknown"
    if seconds is not None:
        time = duration(seconds * len(tuning.seeds) * (tuning.budget - used) / tuning.run_epochs)
    state = data_gap or (f"done: {search.ended} used up" if search.ended else f"to do, {time}")
    trials = f"{len(search.trials)} of {tuning.trials} trials"
    epochs = f"{used:,.0f} of {tuning.budget:,.0f} client epochs"
    score = _percent(best.validation if best else None)
    return f"{tuning.title}: {trials}, {epochs}, best {score}: {state}"


def _percent(accuracy: float | None) -> str:
    """An accuracy in percent as text; ``-`` for None."""
    return "-" if accuracy is None else f"{100 * accuracy:.2f}"


def _settings(parameters: Mapping[str, Value]) -> str:
    """A configuration as text: ``KEY=VALUE`` with spaces between."""
    return " ".join(f"{key}={value}" for key, value in parameters.items())


def _line(search: Search, trial: Trial) -> str:
    """One line on a trial that has ended."""
    score = trial.reason or f"validation {_percent(trial.validation)}"
    number = f"trial {trial.number + 1} of {search.tuning.trials}, {search.tuning.title}"
    return f"{number}: {trial.state}, {score}, {trial.seconds:.1f} s: {_settings(trial.parameters)}"


def _result(record: Record) -> str:
    """One line on a finished search."""
    winner, used = record.winner, f"after {record.used.trials} of {record.budget.trials} trials"
    scores = f"validation {_percent(winner.validation)}, default {_percent(record.default_validation)}"
    return f"{record.tuning.title}: {scores}, {used}: {_settings(winner.overrides)}"
