"""``bench tune``: find each method's configuration with the same budget for all."""

from __future__ import annotations

import json
from dataclasses import replace

from bench import paths
from bench.cli import options
from bench.cli.output import console, say


def tune(
    *,
    grid: str | None = None,
    filters: options.RunFilters = options.ALL_RUNS,
    trials: options.Count = 20,
    settings: options.Settings = (),
    db: str | None = None,
    data_root: options.DataRoot = None,
    machines: options.Machines = options.LOCAL,
    dry_run: options.Flag = False,
    as_json: options.AsJson = False,
) -> int:
    """Tune methods by validation accuracy; the same command again goes on where it stopped.

    A cell's winner is written to BENCH_HOME/tuned when the search's budget is used up; bench sweep
    --use-tuned runs it. Without --grid, -d and -m say what to tune: with 10 clients, in the data set's first
    scenario, unless -k and -s say otherwise. --seed are the seeds of the search's runs, 1000 and 1001 unless
    given: seeds of reports, 0 to 19, are refused.

    Args:
        grid: Name of a grid (tuning_fedsheafhn, ...) or a TOML file.
        trials: Trials of a search in total; with rounds, local epochs and seeds it gives the client epochs.
        settings: A setting that is not tuned, such as protocol.rounds=8; may be given several times.
        db: Database of the searches' runs, none that are reported; default: sqlite:///BENCH_HOME/tuning.db.
        dry_run: Print the searches, how far they are and how long the rest takes, and run nothing.
    """
    roots = paths.data_roots(data_root)

    from bench.grids import expand, requested_grid
    from bench.resolve import parse_overrides
    from bench.runner import display, plan
    from bench.runner.run import Sweep, opened_pool
    from bench.store.store import stored_runs
    from bench.tune import show, trial
    from bench.tune.search import Searches, opened_searches
    from bench.tune.tuning import search_seeds, tunings

    seeds = search_seeds(filters.seed)
    choice = filters.of_grid()
    # One partition is tuned on, that of protocol.partition_seed, also where a grid has one a seed.
    base = requested_grid(grid, choice)
    base = base.model_copy(update={"seeds": seeds[:1], "partition_per_seed": False})
    runs = expand(base, replace(choice, seeds=()), parse_overrides(settings))
    requests, reasons = tunings(runs, trials, seeds)
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
        if as_json:
            print(json.dumps({"searches": rows, "skipped": reasons}, indent=1))
            return 0
        for row in rows:
            say(show.standing_line(row), notes)
        for name, reason in reasons.items():
            say(f"left out: {name}: {reason}", notes)
        return 0
    result = Searches(searches, home, lambda *ended: say(show.line(*ended), notes))
    outcome = Sweep(
        result.next_steps(searches),
        database,
        roots,
        pool,
        display.Display(notes, only_notes=True),  # trials have lines of their own
        trial.execute,
        home=home,
        follow_up=result.follow,
    ).run()
    result.give_up(outcome.left)
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
