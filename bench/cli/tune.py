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
    from bench.tune.search import Searches


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
    from bench.runner.run import Sweep, opened_pool
    from bench.store.store import stored_runs
    from bench.tune import show, trial
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
        rows = [show.standing(one, estimator, data_gap(one.tuning.spec.dataset)) for one in searches]
        _print_searches(rows, reasons, notes, as_json)
        return 0
    result = Searches(searches, home, lambda *ended: say(show.line(*ended), notes))
    display = Display(notes, only_notes=True)  # trials have lines of their own
    steps = result.next_steps(searches)
    sweep = Sweep(steps, database, roots, pool, display, trial.execute, home=home, follow_up=result.follow)
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
    from bench.tune import show

    for row in rows:
        say(show.standing_line(row), notes)
    for name, reason in reasons.items():
        say(f"left out: {name}: {reason}", notes)


def _print_results(result: Searches, notes: Console, as_json: bool) -> int:
    """Say what came of the searches; returned is 1 where one has no winner."""
    from bench.tune import show

    finished = []
    for record, path in result.records:
        shown = record.model_dump(include={"winner", "default_validation", "budget", "used"})
        finished.append({"search": record.study, "file": str(path), **shown})
        if not as_json:
            say(show.result(record), notes)
    if as_json:
        print(json.dumps({"finished": finished, "failed": result.failed}, indent=1))
    for title, reason in result.failed.items():
        say(f"{title}: no winner: {reason}", notes)
    return 1 if result.failed else 0
