"""``bench sweep``, which runs what a grid still lacks, and ``bench quickstart``."""

from __future__ import annotations

import json
import time
from pathlib import Path

from bench import paths
from bench.cli import options
from bench.cli.output import console, say
from bench.errors import RequestError
from bench.runner.policy import Level


def sweep(
    *,
    grid: str | None = None,
    filters: options.RunFilters = options.ALL_RUNS,
    settings: options.Settings = (),
    db: options.Database = None,
    data_root: options.DataRoot = None,
    machines: options.Machines = options.LOCAL,
    timeout_seconds: options.Positive | None = None,
    checkpoint_minutes: options.Positive = 10.0,
    rerun: Level | None = None,
    use_tuned: options.Flag = False,
    save_models: options.Flag = False,
    dry_run: options.Flag = False,
    as_json: options.AsJson = False,
) -> int:
    """Run what is not done yet; the same command again goes on where it stopped.

    Without --grid, -d and -m say what to run: with 10 clients, in the data set's first scenario and with
    seed 0, unless -k, -s and --seed say otherwise. With it they choose among the grid's runs, but for
    --seed, which stands in place of the grid's.

    Args:
        grid: Name of a grid (bench grids lists them) or a TOML file.
        settings: A setting, such as protocol.rounds=8 or method.mu=0.1; may be given several times.
        timeout_seconds: How long a run may take; then it counts as failed.
        checkpoint_minutes: How often a run is saved; after a kill it goes on from there.
        use_tuned: Run every cell in its tuned configuration (bench tune); refused where one has none.
        save_models: Keep the trained models under BENCH_HOME/models; done runs without models are made again.
        rerun: Redo exactly the runs that are stale, failed, or made by other sources (changed).
        dry_run: Print what is done, what would be run and what that costs, and run nothing.
    """
    if save_models and machines.backend != "local":
        raise RequestError("--save-models is for runs on this machine: it goes with --backend local")
    roots = paths.data_roots(data_root)

    from bench import model_files
    from bench.grids import expand, requested_grid
    from bench.resolve import parse_overrides
    from bench.runner import display, execution
    from bench.runner.plan import Estimator, data_at_hand, make_plan, to_run
    from bench.runner.run import Sweep, opened_pool
    from bench.store import bundle
    from bench.store.store import stored_runs
    from bench.tune.apply import tuned

    choice = filters.of_grid()
    base = requested_grid(grid, choice)
    runs = expand(base, choice, parse_overrides(settings))
    if use_tuned:
        runs = tuned(runs)
    saving = model_files.Saving(paths.home() / "models") if save_models else None
    lacks_models = saving.lacks if saving else lambda spec: False
    database = db or paths.default_database()
    rows = stored_runs(database)
    plan = make_plan(runs, rows, data_at_hand(roots), rerun, lacks_models)
    steps = to_run(plan)
    pool = opened_pool(machines, len(steps), paths.home())
    shipped = bundle.shipped_runs() if dry_run and any(step.status != "no_data" for step in steps) else {}
    estimator = Estimator(rows.values(), pool.devices[0], shipped.values())
    summary = display.summary(plan, estimator, len(pool.devices))
    if dry_run:
        tree = display.as_json(plan, estimator, len(pool.devices), shipped)
        if as_json:
            print(json.dumps(tree, indent=1))
        else:
            console(110).print(display.table(plan, estimator))
            if tree["shipped"]:
                summary += f"; {tree['shipped']:,} of these come with the suite"
            say(summary)
        return 0
    notes = console(errors=as_json)
    if count := sum(step.changed and not step.to_run for step in plan):
        reason = f"the code has changed since {count:,} of the stored runs"
        say(f"note: {reason}, its numerics version has not", notes)
    if steps:
        say(summary, notes)
    start = time.monotonic()
    outcome = Sweep(
        plan,
        database,
        roots,
        pool,
        display.Display(notes),
        execute=saving or execution.execute,
        home=paths.home(),
        minutes=checkpoint_minutes,
        timeout=timeout_seconds,
    ).run()
    if as_json:
        print(json.dumps({"counts": outcome.counts, "ran": outcome.ran, "left": outcome.left}))
    elif not steps:
        say(f"{summary}; {f'none to be made again as {rerun}' if rerun else 'nothing to run'}")
    else:
        took = display.duration(time.monotonic() - start)
        say(f"{display.runs(len(plan))}: {display.states(outcome.counts)}; took {took}")
    return 1 if outcome.failed else 0


def quickstart(*, out: Path = Path("report")) -> int:
    """Run six methods on Cora and report on them; the same command again finds every run done."""
    from bench.cli.report import report
    from bench.grids import load_grid
    from bench.site import folder

    folder.check(out)
    if code := sweep(grid="quickstart"):
        return code
    methods = (*load_grid("quickstart").methods, "fedavg_ft")
    cells = options.CellFilters(("cora",), ("non-overlapping",), (10,), method=methods)
    report(study=("fedsheafhn",), filters=cells, own=True, out=out, only_main=True)
    say("\nNext: bench report                                what others have run")
    say("      bench sweep --grid paper_tables --dry-run   what a whole table would cost")
    return 0
