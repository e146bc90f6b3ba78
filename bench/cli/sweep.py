"""``bench sweep``: run what a grid still lacks."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console

from bench import paths
from bench.cli.seeds import Seeds
from bench.errors import RequestError
from bench.sweep.choices import Engine, Level

WIDTH = 110
"""Columns of the plan's table where the terminal is narrower or there is none."""


def sweep(
    *,
    grid: str | None = None,
    dataset: Annotated[list[str] | None, Parameter(name=["--dataset", "-d"], negative="")] = None,
    method: Annotated[list[str] | None, Parameter(name=["--method", "-m"], negative="")] = None,
    clients: Annotated[list[int] | None, Parameter(name=["--clients", "-k"], negative="")] = None,
    scenario: Annotated[list[str] | None, Parameter(name=["--scenario", "-s"], negative="")] = None,
    seed: Seeds = None,
    set_: Annotated[list[str] | None, Parameter(name="--set", negative="")] = None,
    db: str | None = None,
    data_root: Path | None = None,
    jobs: int | None = None,
    threads: int | None = None,
    devices: str | None = None,
    engine: Engine = "local",
    address: str | None = None,
    slurm: Annotated[list[str] | None, Parameter(negative="")] = None,
    timeout: float | None = None,
    budget_hours: float | None = None,
    fail_fast: Annotated[bool, Parameter(negative="")] = False,
    max_failures: int | None = None,
    checkpoint_minutes: float = 10.0,
    rerun: Level | None = None,
    use_tuned: Annotated[bool, Parameter(negative="")] = False,
    dry_run: Annotated[bool, Parameter(negative="")] = False,
    probe: Annotated[bool, Parameter(negative="")] = False,
    as_json: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> int:
    """Run what is not done yet; the same command again goes on where it stopped.

    Options that can be given several times: -d, -m, -k, -s, --seed, --set, --slurm.

    Parameters
    ----------
    grid
        Name of a grid (quickstart, paper_tables, ...) or a TOML file. Without it, -d and -m say what to run.
    dataset
        Only this data set of the grid.
    method
        Only this method of the grid.
    clients
        Only this number of clients of the grid; without a grid: 10 if left out.
    scenario
        Only this scenario of the grid; without a grid: the data set's first if left out.
    seed
        This seed, or a range such as 0-4, in place of the grid's; without a grid: 0 if left out.
    set_
        Override of a setting, such as protocol.rounds=8 or method.mu=0.1.
    db
        Database URL; default: sqlite:///BENCH_HOME/bench.db.
    data_root
        Folder searched first for raw files.
    jobs
        Runs at a time over all devices; default: one for each core, on GPUs at most four for each of them;
        with --engine ray as many as the cluster has room for, with --engine slurm 32.
    threads
        Threads of one run; default 1, which two runs side by side use best. It may change last digits.
    devices
        cpu, cuda, or GPUs such as cuda:0,cuda:1; default: every visible GPU, else cpu. With another engine
        cpu or cuda.
    engine
        Where runs are made: local (this machine), ray (a Ray cluster) or slurm (a Slurm job each).
    address
        Address of the Ray cluster; without it Ray is started on this machine and ended with the sweep.
    slurm
        What Slurm is to give every job, such as partition=gpu or timeout_min=60.
    timeout
        Seconds that a run may take; then it counts as failed.
    budget_hours
        Hours that the sweep may take: nothing starts that is expected to end later.
    fail_fast
        Start nothing new once a run has failed.
    max_failures
        Start nothing new once so many runs have failed.
    checkpoint_minutes
        How often a run is saved; after a kill it goes on from there.
    use_tuned
        Run every cell in its tuned configuration (bench tune); refused where one has none.
    rerun
        Redo exactly the runs that are stale, failed, or made by other sources (changed), and no others.
    dry_run
        Print what is done, what would be run and what that costs, and run nothing.
    probe
        First run two, one and three rounds of every kind whose time is unknown, and store nothing of them.
    as_json
        Print the plan (--dry-run) or the counts by state as JSON on standard output.
    """
    from bench.sweep.engines import Request, check, opened
    from bench.sweep.limits import checked

    limits = checked(fail_fast, max_failures, timeout, budget_hours, checkpoint_minutes)
    if probe and engine != "local":
        raise RequestError("--probe measures this machine: it goes with --engine local")
    where = Request(engine, address, slurm or (), devices, jobs, threads)
    check(where)
    roots = paths.data_roots(data_root)

    from bench.grids import Filters, ad_hoc, expand, load_grid
    from bench.resolve import parse_overrides

    filters = Filters(
        tuple(dataset or ()),
        tuple(scenario or ()),
        tuple(clients or ()),
        tuple(method or ()),
        tuple(seed or ()),
    )
    wanted = load_grid(grid) if grid else ad_hoc(filters)
    planned = expand(wanted, filters, parse_overrides(set_ or []))

    from bench.store.peek import stored_runs
    from bench.sweep import show
    from bench.sweep.estimate import bytes_a_run
    from bench.sweep.plan import data_at_hand, make_plan
    from bench.sweep.probe import probe as run_probe
    from bench.sweep.progress import reporter
    from bench.sweep.run import refuse_unimplemented
    from bench.sweep.run import sweep as run_sweep
    from bench.tune.apply import tuned

    if use_tuned:
        planned = tuned(planned)
    database = db or paths.default_database()
    stored, history = stored_runs(database, write=not dry_run)
    plan = make_plan(planned, stored, data_at_hand(roots), rerun)
    refuse_unimplemented(plan)
    out, notes = Console(), Console(stderr=as_json)
    with opened(where, len(plan.to_run), paths.home()) as (slots, make_workers):
        plan = plan.timed(history, slots.sort)
        if probe:
            measured = run_probe(plan, roots, slots, reporter(Console(stderr=True)))
            plan = plan.timed([*history, *measured], slots.sort)
        if dry_run:
            each = bytes_a_run(database, len(stored))
            if as_json:
                print(json.dumps(show.as_json(plan, len(slots.devices), each), indent=1))
                return 0
            wide = Console(width=max(out.width, WIDTH))
            wide.print(show.table(plan))
            if plan.ready:
                wide.print(show.methods(plan))
            _say(out, f"{show.runs(len(plan.steps))}: {show.states(plan.counts)}")
            for line in show.level_lines(plan):
                _say(out, line)
            if plan.to_run:
                _say(out, show.to_do(plan, len(slots.devices)))
            if plan.ready:
                _say(out, show.cost(plan, each))
            return 0
        changed = sum(step.changed and not step.to_run for step in plan.steps)
        if changed:
            since = f"the code has changed since {changed:,} of the stored runs"
            _say(notes, f"note: {since}, its numerics version has not")
        if plan.to_run:
            todo = show.to_do(plan, len(slots.devices))
            _say(notes, f"{show.runs(len(plan.steps))}: {show.states(plan.counts)}; {todo}")
        began = time.monotonic()
        outcome = run_sweep(
            plan,
            database,
            roots,
            slots,
            reporter(notes),
            limits=limits,
            home=paths.home(),
            minutes=checkpoint_minutes,
            make_workers=make_workers,
        )
        if as_json:
            print(json.dumps({"counts": outcome.counts, "ran": outcome.ran, "left": outcome.left}))
        elif not plan.to_run:
            done = outcome.counts.keys() == {"done"}
            _say(out, show.all_done(plan) if done else show.nothing(plan, rerun))
        else:
            whole = outcome.ran == len(plan.ready) and not outcome.failed
            took = show.took(plan, len(slots.devices), time.monotonic() - began, whole)
            _say(out, f"{show.runs(len(plan.steps))}: {show.states(outcome.counts)}; {took}")
        return outcome.exit_code


def _say(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)
