"""``bench sweep``, ``quickstart`` and ``compare`` make the missing runs of a grid or of a user's method."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cyclopts.types import PositiveFloat
from rich.console import Console
from rich.table import Table

from bench import paths
from bench.cli import options
from bench.cli.output import console, say, table
from bench.errors import RequestError
from bench.runner import Level

if TYPE_CHECKING:
    from bench.grids import Filters, Planned
    from bench.metric_names import Metric
    from bench.runner.plan import Estimator, Step
    from bench.runner.run import Sweep
    from bench.store.tables import Stored
    from bench.studies.study import Study


def sweep(
    *,
    grid: str | None = None,
    filters: options.RunFilters = options.ALL_RUNS,
    settings: options.Settings = (),
    db: options.Database = None,
    data_root: options.DataRoot = None,
    machines: options.Machines = options.LOCAL,
    timeout_seconds: PositiveFloat | None = None,
    checkpoint_minutes: PositiveFloat = 10.0,
    rerun: Level | None = None,
    use_tuned: options.Flag = False,
    save_models: options.Flag = False,
    dry_run: options.Flag = False,
    as_json: options.AsJson = False,
) -> int:
    """Run what is not done yet. After a stop, the same command continues.

    Without --grid, -d and -m are needed; the defaults are 10 clients, the data set's first scenario and
    seed 0. With --grid, options select runs of the grid, and --seed replaces its seeds.

    Args:
        grid: Name of a grid ('bench grids' lists them) or a TOML file.
        settings: A setting, such as protocol.rounds=8 or method.mu=0.1; may be given several times.
        timeout_seconds: Time limit of a run; a run that takes longer counts as failed.
        checkpoint_minutes: Time between two checkpoints; a killed run continues from the last one.
        use_tuned: Use the configurations that 'bench tune' found. Every cell must have one.
        save_models: Keep trained models under BENCH_HOME/models. Done runs without models are repeated.
        rerun: Repeat exactly the runs that are stale, failed, or made by other code (changed).
        dry_run: Print what is done, what would be run, and its cost. Run nothing.
    """
    if save_models and machines.backend != "local":
        raise RequestError("--save-models is for runs on this machine: it goes with --backend local")
    database, roots, home = db or paths.default_database(), paths.data_roots(data_root), paths.home()

    from bench.grids import expand, requested_grid
    from bench.resolve import parse_overrides
    from bench.runner import display, execution, plan, run
    from bench.store.store import stored_runs
    from bench.tune.record import tuned

    choice = filters.of_grid()
    runs = expand(requested_grid(grid, choice), choice, parse_overrides(settings))
    runs = tuned(runs) if use_tuned else runs
    saving = None
    if save_models:
        from bench.model_files import Saving

        saving = Saving(home / "models")
    rows = stored_runs(database)
    steps = plan.make_plan(runs, rows, plan.data_at_hand(roots), rerun, saving.lacks if saving else None)
    pool = run.opened_pool(machines, len(plan.to_run(steps)), home)
    if dry_run:
        _print_plan(steps, rows, pool.devices, as_json)
        return 0
    notes, execute = console(errors=as_json), saving or execution.execute
    sweep = run.Sweep(steps, database, roots, pool, display.Display(notes), execute, home=home)
    sweep.minutes, sweep.timeout = checkpoint_minutes, timeout_seconds
    return make(sweep, rows, notes, as_json)


def _print_plan(
    steps: Sequence[Step], rows: Mapping[str, Stored], devices: Sequence[str], as_json: bool
) -> None:
    """Print what is done, and the cost of the rest. Similar shipped runs help to estimate the cost."""
    from bench.runner import display
    from bench.runner.plan import Estimator
    from bench.store.bundle import shipped_runs

    shipped = shipped_runs() if any(step.status != "no_data" for step in steps) else {}
    estimator = Estimator(rows.values(), devices[0], shipped.values())
    tree = display.as_json(steps, estimator, len(devices), shipped)
    if as_json:
        print(json.dumps(tree, indent=1))
        return
    console(110).print(plan_table(steps, estimator))
    suffix = f"; {tree['shipped']:,} of these come with the suite" if tree["shipped"] else ""
    say(f"{display.summary(steps, estimator, len(devices))}{suffix}")


def plan_table(plan: Sequence[Step], estimator: Estimator) -> Table:
    """A table with one row a cell: states of its runs, time for the remaining runs, and the first reason."""
    from bench.runner import display

    cells: dict[tuple[str, str, int, str], list[Step]] = {}
    for step in plan:
        cells.setdefault(step.planned.names[:4], []).append(step)
    rows = []
    for names, steps in cells.items():
        times = [estimator.seconds(step.spec) or 0.0 for step in steps if step.to_run]
        time_left = "" if not times else display.duration(sum(times)) if all(times) else "unknown"
        reason = next((step.reason for step in steps if step.reason), "")
        counts = Counter("changed" if step.changed else step.status for step in steps)
        rows.append((*names, display.states(counts), time_left, reason))
    headings = ("dataset", "scenario", "clients", "method", "runs", "time", "reason")
    return table(headings, rows, right={"clients", "time"})


def make(sweep: Sweep, rows: Mapping[str, Stored], notes: Console, as_json: bool = False) -> int:
    """Make the runs of a sweep and print their outcomes. Return 1 if a run failed, else 0."""
    from bench.runner import display
    from bench.runner.plan import Estimator

    steps, devices = sweep.plan, sweep.pool.devices
    summary = display.summary(steps, Estimator(rows.values(), devices[0]), len(devices))
    if count := sum(step.changed and not step.to_run for step in steps):
        say(f"note: the code of {count:,} stored runs has changed, its numerics version has not", notes)
    is_any = any(step.to_run for step in steps)
    if is_any:
        say(summary, notes)
    start = time.monotonic()
    outcome = sweep.run()
    took = display.duration(time.monotonic() - start)
    ended = f"{display.runs(len(steps))}: {display.states(outcome.counts)}; took {took}"
    if as_json:
        print(json.dumps({"counts": outcome.counts, "ran": outcome.ran, "left": outcome.left}))
    else:
        say(ended if is_any else f"{summary}; nothing to run")
    return 1 if outcome.failed else 0


def quickstart(*, out: Path = Path("report")) -> int:
    """Run six methods on Cora and write a report. If called again, every run is done already."""
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


def compare(
    file: Path,
    *,
    dataset: options.OneDataset,
    scenario: options.Scenarios = (),
    clients: options.ClientCounts = (),
    seed: options.Seeds = (),
    study: str | None = None,
    settings: options.Settings = (),
    out: Path = Path("report"),
    metric: options.ByMetric = "accuracy",
    db: options.Database = None,
    data_root: options.DataRoot = None,
    machines: options.Machines = options.LOCAL,
) -> int:
    """Check your own method, make its missing runs, and rank it among the others.

    Results of other methods, on the same partitions, seeds and clients, come with the suite or from your
    database. Runs of older code of your method are repeated. On a data set of no study, other methods are
    run first: those of a study on data of this kind, with seeds 0-2. A whole report is written, too.

    Args:
        file: A Python file with one class that extends bench.engine.method.Method.
        seed: Seeds that replace the study's, such as 0-4,7.
        study: Study whose settings are used, such as fedpub; default: the first one with the data set.
        settings: A setting of your method, such as method.mu=0.1; may be given several times.
        out: Folder for the report.
    """
    from bench import comparison
    from bench.contract.checks import check
    from bench.grids import Filters
    from bench.resolve import parse_overrides
    from bench.runner import display
    from bench.runner.plan import Estimator, to_run
    from bench.runner.run import Sweep, opened_pool
    from bench.site import folder
    from bench.store.store import stored_runs

    folder.check(out)
    method, *more = comparison.methods_in(file)
    if more:
        raise RequestError(f"{file.name}: expected one method, got {', '.join([method, *more])}")
    choice = Filters((dataset,), scenario, clients, (), seed)
    beside, runs = comparison.asked(method, choice, parse_overrides(settings), study)
    if problems := [finding for finding in check(method) if finding.problem]:
        for finding in problems:
            say(f"mend: {finding.rule}: {finding.problem}")
        return 1
    screen, database, roots = console(), db or paths.default_database(), paths.data_roots(data_root)
    say(f"{method} keeps the contract", screen)
    rows = stored_runs(database)
    plan = comparison.plan(method, runs, rows, roots)
    pool = opened_pool(machines, len(to_run(plan)), paths.home())
    if any(step.planned.method != method for step in to_run(plan)):
        screen.print(plan_table(plan, Estimator(rows.values(), pool.devices[0])))
    sweep = Sweep(plan, database, roots, pool, display.Display(screen), home=paths.home())
    if make(sweep, rows, screen):
        return 1
    _report(beside, method, runs, choice, metric, database, out)
    return 0


def _report(
    study: Study, method: str, runs: list[Planned], choice: Filters, metric: Metric, database: str, out: Path
) -> None:
    """Write the report, and print how the method ranks."""
    from bench import comparison
    from bench.report.request import Request
    from bench.report.terminal import rich_table
    from bench.site import folder
    from bench.site.documents import build
    from bench.studies.shipped import opened_results
    from bench.studies.study import STUDIES

    screen, filters = console(), (choice.datasets, choice.scenarios, choice.clients)
    methods = (*(line.method for line in study.lines), method)
    request = Request((study.name,), *filters, methods, metric=metric)
    studies = {**STUDIES.all(), study.name: type(study)}
    with opened_results(database, own=False) as source:
        results, ranking, rows = comparison.compare(source, study, method, runs, metric)
        build(source, request, studies, out, results)
    for standing in comparison.tables(rows):
        screen.print(rich_table(standing))
    for line in comparison.sentences(method, ranking, rows):
        screen.print(line, markup=False)
    screen.print(f"Report: {out / folder.INDEX}", markup=False)
