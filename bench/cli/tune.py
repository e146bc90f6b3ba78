"""``bench tune``: find each method's configuration with the same budget for all."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cyclopts.types import PositiveInt
from rich.console import Console

from bench import paths
from bench.cli import options
from bench.cli.output import console, say

if TYPE_CHECKING:
    from bench.grids import Planned
    from bench.runner.plan import Estimator
    from bench.tune.record import Record, Trial
    from bench.tune.search import Search, Searches
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
    as_json: options.AsJson = False,
) -> int:
    """Tune methods by validation accuracy; the same command again goes on where it stopped.

    bench sweep --use-tuned runs what a search has found (BENCH_HOME/tuned). Without --grid, -d and -m say
    what to tune: with 10 clients, in the data set's first scenario, unless -k and -s say otherwise. --seed
    are the seeds of the search's runs, 1000 and 1001 unless given: those of reports, 0 to 19, are refused.

    Args:
        grid: Name of a grid (tuning_fedsheafhn, ...) or a TOML file.
        trials: Trials of a search in total; with rounds, local epochs and seeds it gives the client epochs.
        settings: A setting that is not tuned, such as protocol.rounds=8; may be given several times.
        db: Database of the searches' runs, none that are reported; default: sqlite:///BENCH_HOME/tuning.db.
        dry_run: Print the searches, how far they are and how long the rest takes, and run nothing.
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
    notes = console(errors=as_json)
    pool = opened_pool(machines, len(requests) * trials * len(seeds), home)
    estimator = plan.Estimator([*history, *timings], pool.devices[0])
    if dry_run:
        data_gap = plan.data_at_hand(roots)
        rows = [standing(one, estimator, data_gap(one.tuning.spec.dataset)) for one in searches]
        _print_searches(rows, reasons, notes, as_json)
        return 0
    result = Searches(searches, home, lambda *ended: say(_line(*ended), notes))
    display = Display(notes, only_notes=True)  # trials have lines of their own
    steps = result.next_steps(searches)
    sweep = Sweep(steps, database, roots, pool, display, execute_trial, home=home, follow_up=result.follow)
    result.give_up(sweep.run().left)
    return _print_results(result, notes, as_json)


def _cells(
    grid: str | None, filters: options.RunFilters, settings: Sequence[str], seed: int
) -> list[Planned]:
    """The cells to tune, on the partition of protocol.partition_seed, also where a grid has one a seed."""
    from bench.grids import expand, requested_grid
    from bench.resolve import parse_overrides

    choice = filters.of_grid()
    base = requested_grid(grid, choice)
    base = base.model_copy(update={"seeds": (seed,), "partition_per_seed": False})
    return expand(base, replace(choice, seeds=()), parse_overrides(settings))


def _print_searches(
    rows: Sequence[dict[str, Any]], reasons: Mapping[str, str], notes: Console, as_json: bool
) -> None:
    """Print how far searches are, and which cells have none."""
    if as_json:
        print(json.dumps({"searches": rows, "skipped": reasons}, indent=1))
        return
    for row in rows:
        say(standing_line(row), notes)
    for name, reason in reasons.items():
        say(f"left out: {name}: {reason}", notes)


def _print_results(result: Searches, notes: Console, as_json: bool) -> int:
    """Say what came of the searches; returned is 1 where one has no winner."""
    finished = []
    for record, path in result.records:
        shown = record.model_dump(include={"winner", "default_validation", "budget", "used"})
        finished.append({"search": record.study, "file": str(path), **shown})
        if not as_json:
            say(_result(record), notes)
    if as_json:
        print(json.dumps({"finished": finished, "failed": result.failed}, indent=1))
    for title, reason in result.failed.items():
        say(f"{title}: no winner: {reason}", notes)
    return 1 if result.failed else 0


# In one line -------------------------------------------------------------------------------------


def standing(search: Search, estimator: Estimator, data_gap: str) -> dict[str, Any]:
    """How far a search is by its stored runs.

    ``seconds`` is what its unused client epochs take, one run after the other, by runs like its default
    configuration; None where no such run is known. ``lacking`` says why its data are not at hand.
    """
    from bench.tune.record import winner_of

    tuning, best = search.tuning, winner_of(search.trials)
    used = sum(trial.client_epochs for trial in search.trials)
    seconds = 0.0 if search.ended else estimator.seconds(tuning.spec)
    if seconds is not None:
        seconds *= len(tuning.seeds) * (tuning.budget - used) / tuning.run_epochs
    return {
        "search": tuning.title,
        "trials": len(search.trials),
        "trials_asked": tuning.trials,
        "client_epochs": used,
        "client_epochs_asked": tuning.budget,
        "best_validation": best.validation if best else None,
        "seconds": seconds,
        "ended": search.ended,
        "lacking": data_gap,
    }


def standing_line(row: Mapping[str, Any]) -> str:
    """One line on a ``standing``."""
    from bench.runner.display import duration

    time = "time unknown" if row["seconds"] is None else duration(row["seconds"])
    state = row["lacking"] or (f"done: {row['ended']} used up" if row["ended"] else f"to do, {time}")
    trials = f"{row['trials']} of {row['trials_asked']} trials"
    epochs = f"{row['client_epochs']:,.0f} of {row['client_epochs_asked']:,.0f} client epochs"
    return f"{row['search']}: {trials}, {epochs}, best {_percent(row['best_validation'])}: {state}"


def _percent(accuracy: float | None) -> str:
    """An accuracy as people read it; ``-`` where there is none."""
    return "-" if accuracy is None else f"{100 * accuracy:.2f}"


def _settings(parameters: Mapping[str, Value]) -> str:
    """A configuration in one phrase."""
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
