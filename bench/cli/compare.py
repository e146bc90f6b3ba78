"""``bench compare``: one's own method against everything."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console

from bench import paths
from bench.cli.seeds import Seeds
from bench.engine.methods import METHODS

WIDTH = 100
"""Columns of the tables where the terminal is narrower or there is none."""


def compare(
    file: Path,
    *,
    dataset: Annotated[str, Parameter(name=["--dataset", "-d"])],
    study: str | None = None,
    clients: Annotated[list[int] | None, Parameter(name=["--clients", "-k"], negative="")] = None,
    scenario: Annotated[list[str] | None, Parameter(name=["--scenario", "-s"], negative="")] = None,
    seed: Seeds = None,
    set_: Annotated[list[str] | None, Parameter(name="--set", negative="")] = None,
    out: Path = Path("report"),
    db: str | None = None,
    data_root: Path | None = None,
    jobs: int | None = None,
    threads: int | None = None,
    devices: str | None = None,
) -> int:
    """Check your own method, run what is missing of it, and say where it stands.

    The other methods' results come with the suite or from your database; they are compared on the
    same partitions, seeds and clients. Runs that your method's code made before it changed are made
    again. The whole report is written, too.

    Parameters
    ----------
    file
        A Python file with one class that extends bench.engine.method.Method.
    dataset
        Data set.
    study
        Study whose first grid with the data set gives the settings, such as fedsheafhn or fedhgn; default:
        the first that has the data set.
    clients
        Only this number of clients.
    scenario
        Only this scenario.
    seed
        This seed, or a range such as 0-4, in place of those of the study.
    set_
        Override of a setting of your method, such as method.mu=0.1.
    out
        Folder for the report.
    db
        Database URL; default: sqlite:///BENCH_HOME/bench.db.
    data_root
        Folder searched first for raw files.
    jobs
        Runs at a time over all devices; default: one for each core, on GPUs at most four for each of them.
    threads
        Threads of one run; default 1.
    devices
        cpu, cuda, or GPUs such as cuda:0,cuda:1; default: every visible GPU, else cpu.
    """
    from bench import compare as comparison
    from bench.contract.checks import check
    from bench.grids import Filters
    from bench.report import standing
    from bench.report.report import Request, build
    from bench.report.shipped import opened
    from bench.report.study import STUDIES
    from bench.report.terminal import rich_table
    from bench.resolve import parse_overrides
    from bench.store.peek import stored_runs
    from bench.sweep import show
    from bench.sweep.devices import choose
    from bench.sweep.plan import data_at_hand, make_plan
    from bench.sweep.progress import reporter
    from bench.sweep.run import sweep

    method = comparison.own_method(file)
    its_study = comparison.find_study(study, dataset)
    filters = Filters((dataset,), tuple(scenario or ()), tuple(clients or ()), (), tuple(seed or ()))
    runs = comparison.planned_runs(its_study, method, filters, parse_overrides(set_ or []))
    console = Console(highlight=False, markup=False, soft_wrap=True)
    console.width = max(console.width, WIDTH)
    broken = [finding for finding in check(method) if finding.problem]
    for finding in broken:
        console.print(f"mend: {finding.rule}: {finding.problem}")
    if broken:
        return 1
    console.print(f"{method} keeps the contract")

    database = db or paths.default_database()
    roots = paths.data_roots(data_root)
    stored, history = stored_runs(database, write=True)
    plan = comparison.with_changed(make_plan(runs, stored, data_at_hand(roots)))
    slots = choose(devices, jobs, threads, len(plan.to_run))
    plan = plan.timed(history, slots.sort)
    changed = sum(step.changed for step in plan.steps)
    if changed:
        console.print(f"its code, or the engine's, has changed since {show.runs(changed)}: to be made again")
    todo = show.to_do(plan, len(slots.devices)) if plan.to_run else "nothing to run, all are stored"
    console.print(f"{show.runs(len(plan.steps))} of it: {todo}")
    outcome = sweep(plan, database, roots, slots, reporter(console), home=paths.home())
    if set(outcome.counts) != {"done"}:
        states = ", ".join(f"{count} {state}" for state, count in sorted(outcome.counts.items()))
        console.print(f"of its {len(runs)} runs: {states}; see bench runs list")
        return 1

    with opened(database, own=False) as source:
        found = comparison.compare(source, its_study, method, runs)
        methods = (*(row.method for row in its_study.lines), method)
        request = Request((its_study.name,), (dataset,), filters.scenarios, filters.clients, methods)
        built = build(source, request, STUDIES.all(), out, comparison.expectations(its_study, runs))
    title = f"{METHODS.named(method).title} on {its_study.title_of(dataset)}"
    console.print(rich_table(standing.table(its_study, found.standings, title)))
    for line in standing.sentences(its_study, found.ranking, method, found.standings):
        console.print(line)
    console.print(
        f"Wrote {len(built.paths)} files to {out}: {its_study.name}_ranking_pairs.csv has all pairs, "
        f"{its_study.name}_ranking.md says how they were tested."
    )
    return 0
