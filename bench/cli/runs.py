"""``bench runs``: what the database holds of single runs, and what runs now."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

from cyclopts import App, Parameter
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from bench import paths
from bench.cli.seeds import Seeds
from bench.engine.states import State
from bench.errors import RequestError

app = App(name="runs", help="List stored runs, show one of them, and say what runs now.")

COLUMNS = (
    "id",
    "dataset",
    "scenario",
    "clients",
    "method",
    "seed",
    "rounds",
    "state",
    "seconds",
    "test",
    "reason",
)

WIDTH = 120
"""Columns of the list where the terminal is narrower or there is none."""


@app.command(name="list")
def list_(
    *,
    dataset: Annotated[list[str] | None, Parameter(name=["--dataset", "-d"], negative="")] = None,
    method: Annotated[list[str] | None, Parameter(name=["--method", "-m"], negative="")] = None,
    clients: Annotated[list[int] | None, Parameter(name=["--clients", "-k"], negative="")] = None,
    scenario: Annotated[list[str] | None, Parameter(name=["--scenario", "-s"], negative="")] = None,
    seed: Seeds = None,
    state: Annotated[list[State] | None, Parameter(negative="")] = None,
    db: str | None = None,
    as_json: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> None:
    """List stored runs, oldest first.

    Parameters
    ----------
    dataset
        Only this data set; may be given several times, as may the others.
    method
        Only this method.
    clients
        Only this number of clients.
    scenario
        Only this scenario.
    seed
        Only this seed, or a range such as 0-4.
    state
        Only this state.
    db
        Database URL; default: sqlite:///BENCH_HOME/bench.db.
    as_json
        Print a JSON list of objects.
    """
    from bench.store import open_store
    from bench.store.bundle_choice import Choice, choose
    from bench.sweep.detail import run_list

    filters = {
        "dataset": dataset,
        "method": method,
        "clients": clients,
        "scenario": scenario,
        "seed": seed,
        "state": state,
    }
    chosen = Choice(
        tuple(dataset or ()),
        tuple(scenario or ()),
        tuple(clients or ()),
        tuple(method or ()),
        tuple(seed or ()),
    )
    with open_store(db or paths.default_database(), create=False) as store:
        if chosen != Choice():
            choose(store.runs(), chosen)  # refuses what no stored run has; a state may have none
        runs = run_list(store, {key: value for key, value in filters.items() if value})
    if as_json:
        print(json.dumps(runs, indent=1))
        return
    console = Console(width=max(Console().width, WIDTH))
    table = Table(box=SIMPLE_HEAD, padding=(0, 1))
    for column in COLUMNS:
        table.add_column(column, overflow="fold")
    for run in runs:
        table.add_row(*("" if run[column] is None else str(run[column]) for column in COLUMNS))
    console.print(table)
    console.print(
        f"{len(runs):,} runs; test: percent, trained model, round of best validation", highlight=False
    )


LONGEST_ID = 18
"""Digits that a database's numbers have room for."""

ACCURACY_COLUMNS = ("mean", "std", "min")


@app.command
def show(
    run: str,
    *,
    db: str | None = None,
    as_json: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> None:
    """Show a run: its spec, state, costs, accuracies and the command that makes it again; or a cell's
    runs, those that come with the suite, too, and the commands that make them.

    Parameters
    ----------
    run
        The run's id, as 'bench runs list' prints it, or a cell: DATASET/SCENARIO/CLIENTS/METHOD.
    db
        Database URL; default: sqlite:///BENCH_HOME/bench.db.
    as_json
        Print a JSON object.
    """
    if not run.isdecimal():
        _show_cell(run, db, as_json)
        return
    if len(run) > LONGEST_ID:
        raise RequestError(f"no run {run}: 'bench runs list' prints the ids")

    from bench.store import open_store
    from bench.sweep.detail import run_detail

    with open_store(db or paths.default_database(), create=False) as store:
        detail = run_detail(store, int(run))
    if as_json:
        print(json.dumps(detail, indent=1))
        return
    console = Console()
    accuracy = detail.pop("accuracy")
    for key, value in detail.items():
        text = json.dumps(value) if isinstance(value, (dict, list)) else str(value)
        console.print(f"{key}: {text}", markup=False, highlight=False, soft_wrap=True)
    if accuracy:
        table = Table("accuracy, percent over clients", *ACCURACY_COLUMNS, box=SIMPLE_HEAD)
        for reading, values in accuracy.items():
            numbers = (values[name] for name in ACCURACY_COLUMNS)
            table.add_row(reading, *("-" if number is None else f"{100 * number:.2f}" for number in numbers))
        console.print(table)


def _show_cell(name: str, db: str | None, as_json: bool) -> None:
    from bench.report.shipped import opened
    from bench.sweep.cell import cell

    with opened(db, own=False) as source:
        found = cell(source.runs(), name)
    if as_json:
        print(json.dumps([asdict(each) for each in found], indent=1))
        return
    for each in found:
        states = ", ".join(f"{count} {state}" for state, count in sorted(each.states.items()))
        origins = ", ".join(origin or "your database" for origin in each.origins)
        print(f"{states} ({origins}):\n  {each.command}")


@app.command
def status(
    *,
    watch: Annotated[bool, Parameter(negative="")] = False,
    as_json: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> None:
    """Say what running sweeps are at: what runs where, what has failed, and when they end.

    Parameters
    ----------
    watch
        Go on until no sweep runs.
    as_json
        Print a JSON list of objects, one for each sweep.
    """
    if as_json and watch:
        raise RequestError("--watch is for people: expected it without --json")

    from bench.sweep import status_show
    from bench.sweep.status import sweeps

    home = paths.home()
    if as_json:
        print(json.dumps(sweeps(home), indent=1))
    elif not watch:
        print(status_show.text(sweeps(home)))
    elif not (console := Console()).is_terminal:
        status_show.watch(home, print, every_second=False)
    else:
        with Live(console=console, auto_refresh=False) as live:
            status_show.watch(home, lambda text: live.update(Text(text), refresh=True), every_second=True)
