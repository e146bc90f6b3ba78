"""``bench sweep``: run what a grid still lacks."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console

from bench import paths
from bench.grids import Filters, ad_hoc, expand, load_grid
from bench.resolve import parse_overrides
from bench.store.peek import stored_runs
from bench.sweep import devices, show
from bench.sweep.plan import data_at_hand, make_plan
from bench.sweep.progress import reporter
from bench.sweep.run import refuse_unimplemented
from bench.sweep.run import sweep as run_sweep

WIDTH = 110
"""Columns of the plan's table where the terminal is narrower or there is none."""


def sweep(
    *,
    grid: str | None = None,
    dataset: Annotated[list[str] | None, Parameter(name=["--dataset", "-d"], negative="")] = None,
    method: Annotated[list[str] | None, Parameter(name=["--method", "-m"], negative="")] = None,
    clients: Annotated[list[int] | None, Parameter(name=["--clients", "-k"], negative="")] = None,
    scenario: Annotated[list[str] | None, Parameter(name=["--scenario", "-s"], negative="")] = None,
    seed: Annotated[list[int] | None, Parameter(negative="")] = None,
    set_: Annotated[list[str] | None, Parameter(name="--set", negative="")] = None,
    db: str | None = None,
    data_root: Path | None = None,
    jobs: int | None = None,
    threads: int | None = None,
    device: str | None = None,
    dry_run: Annotated[bool, Parameter(negative="")] = False,
    as_json: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> int:
    """Run what is not done yet; the same command again goes on where it stopped.

    Options that can be given several times: -d, -m, -k, -s, --seed, --set.

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
        Only this seed of the grid; without a grid: 0 if left out.
    set_
        Override of a setting, such as protocol.rounds=8 or method.mu=0.1.
    db
        Database URL; default: sqlite:///BENCH_HOME/bench.db.
    data_root
        Folder searched first for raw files.
    jobs
        Runs at a time; default: one for each visible GPU, else one for each core.
    threads
        Threads of one run; default 1, which two runs side by side use best. It may change last digits.
    device
        cpu, cuda or cuda:NUMBER; default: every visible GPU, else cpu.
    dry_run
        Print what is done and what would be run, and run nothing.
    as_json
        Print the plan (--dry-run) or the counts by state as JSON on standard output.
    """
    filters = Filters(
        tuple(dataset or ()),
        tuple(scenario or ()),
        tuple(clients or ()),
        tuple(method or ()),
        tuple(seed or ()),
    )
    wanted = load_grid(grid) if grid else ad_hoc(filters)
    planned = expand(wanted, filters, parse_overrides(set_ or []))
    database = db or paths.default_database()
    roots = paths.data_roots(data_root)
    stored, history = stored_runs(database, write=not dry_run)
    plan = make_plan(planned, stored, history, data_at_hand(roots))
    refuse_unimplemented(plan)
    slots = devices.choose(device, jobs, threads, len(plan.to_run))
    out, notes = Console(), Console(stderr=as_json)
    if dry_run:
        if as_json:
            print(json.dumps(show.as_json(plan, len(slots.devices)), indent=1))
            return 0
        Console(width=max(out.width, WIDTH)).print(show.table(plan))
        _say(out, f"{show.runs(len(plan.steps))}: {show.states(plan.counts)}")
        if plan.to_run:
            _say(out, show.to_do(plan, len(slots.devices)))
        return 0
    changed = sum(step.changed for step in plan.steps)
    if changed:
        _say(
            notes,
            f"note: the code has changed since {changed:,} of the stored runs, its numerics version has not",
        )
    if plan.to_run:
        todo = show.to_do(plan, len(slots.devices))
        _say(notes, f"{show.runs(len(plan.steps))}: {show.states(plan.counts)}; {todo}")
    outcome = run_sweep(plan, database, roots, slots, reporter(notes))
    if as_json:
        print(json.dumps({"counts": outcome.counts, "ran": outcome.ran}))
    elif not outcome.ran and outcome.counts.keys() == {"done"}:
        _say(out, f"all {len(plan.steps):,} runs are done")
    else:
        _say(out, f"{show.runs(len(plan.steps))}: {show.states(outcome.counts)}")
    return outcome.exit_code


def _say(console: Console, text: str) -> None:
    console.print(text, markup=False, highlight=False, soft_wrap=True)
