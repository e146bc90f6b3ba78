"""``bench runs``: what the database holds of single runs, and what runs now."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any

from cyclopts import App, Parameter

from bench import paths
from bench.cli import options
from bench.cli.output import console, say, table
from bench.engine.states import State
from bench.errors import RequestError

app = App(name="runs", help="List stored runs, show or delete them, and say what runs now.")

HASH = 12
"""Digits of a hash that a table shows."""

States = Annotated[tuple[State, ...], Parameter(show_default=False, help="Only this state, or several.")]
SETTINGS_HELP = "Only runs with this setting, such as method.mu=0.1; may be given several times."
SomeSettings = Annotated[options.Settings, Parameter(help=SETTINGS_HELP)]


@app.command(name="list")
def list_runs(
    *,
    filters: options.RunFilters = options.ALL_RUNS,
    state: States = (),
    settings: SomeSettings = (),
    db: options.Database = None,
    as_json: options.AsJson = False,
) -> None:
    """List stored runs, oldest first."""
    from bench.resolve import parse_overrides
    from bench.runner import display
    from bench.runner.run_details import chosen_runs, run_list
    from bench.store import open_store

    with open_store(db or paths.default_database(), create=False) as store:
        runs = run_list(chosen_runs(store, filters.columns, state, parse_overrides(settings)))
    if as_json:
        print(json.dumps(runs, indent=1))
        return
    _print_list(runs)
    say(f"{display.runs(len(runs))}; test: percent, trained model, round of best validation")


def _print_list(runs: list[dict[str, Any]]) -> None:
    columns = ["id", "cell", "seed", "apart", "rounds", "state", "seconds", "test", "reason"]
    columns = [name for name in columns if name not in ("apart", "reason") or any(run[name] for run in runs)]
    rows = []
    for run in runs:
        cell = "/".join(str(run[name]) for name in ("dataset", "scenario", "clients", "method"))
        texts = run | {"cell": cell, "seconds": f"{run['seconds']:.1f}", "test": _percent(run["test"], "")}
        rows.append([texts[column] for column in columns])
    numbers = {"id", "seed", "rounds", "seconds", "test"}
    headings = [{"apart": "settings"}.get(name, name) for name in columns]
    console().print(table(headings, rows, numbers, numbers))


def _percent(value: float | None, missing: str = "-") -> str:
    return missing if value is None else f"{value:.2f}"


@app.command(name="delete")
def delete_runs(
    *,
    filters: options.RunFilters = options.ALL_RUNS,
    state: States = (),
    settings: SomeSettings = (),
    yes: options.Flag = False,
    db: options.Database = None,
) -> int:
    """Show stored runs of your own, ask, and delete them; runs of imported bundles stay.

    Args:
        yes: Delete without asking.
    """
    from rich.prompt import Confirm

    from bench.resolve import parse_overrides
    from bench.runner import display
    from bench.runner.run_details import chosen_runs, run_list
    from bench.store import open_store

    database = db or paths.default_database()
    with open_store(database, create=False) as store:
        runs = chosen_runs(store, filters.columns, state, parse_overrides(settings))
    runs = runs[runs["bundle"] == ""]
    _print_list(run_list(runs))
    count = display.runs(len(runs))
    if not yes and not sys.stdin.isatty():
        raise RequestError(f"{count} to delete: expected --yes, since nobody can be asked here")
    if not (yes or Confirm.ask(f"Delete {count}?", default=False)):
        return 1
    with open_store(database, create=True) as store:
        store.delete(runs["run"].tolist())
    say(f"{count} deleted")
    return 0


@app.command(name="show")
def show_run(run: str, *, db: options.Database = None, as_json: options.AsJson = False) -> None:
    """Show a run: its spec, state, costs, accuracies and the command that makes it again; or a cell's
    runs, those that come with the suite, too: accuracy, hashes of clients and spec, and the commands that
    make them.

    Args:
        run: The run's id, as 'bench runs list' prints it, or a cell: DATASET/SCENARIO/CLIENTS/METHOD.
    """
    from bench.runner.run_details import cell, run_detail
    from bench.store import open_store
    from bench.studies.shipped import opened_results

    if run.isdecimal():
        with open_store(db or paths.default_database(), create=False) as store:
            shown: Any = run_detail(store, int(run))
    else:
        with opened_results(db, own=False) as source:
            shown = cell(source, run)
    if as_json:
        print(json.dumps(shown, indent=1))
    elif run.isdecimal():
        _print_run(shown)
    else:
        _print_cell(shown)


def _print_run(detail: dict[str, Any]) -> None:
    accuracy = detail.pop("accuracy")
    for key, value in detail.items():
        say(f"{key}: {json.dumps(value) if isinstance(value, (dict, list)) else value}")
    for reading, share in accuracy.items():
        say(f"{reading}: {100 * share:.2f} %")


def _print_cell(parts: list[dict[str, Any]]) -> None:
    for part in parts:
        say(part["command"])
        rows = []
        for run in part["runs"]:
            hashes = (run["partition_hash"][:HASH] or "-", run["spec_hash"][:HASH])
            names = (run["seed"], run["state"], _percent(run["test"]), run["origin"], run["device"] or "-")
            rows.append((*names, *hashes))
        headings = ("seed", "state", "test", "origin", "device", "clients", "spec")
        console().print(table(headings, rows, right={"seed", "test"}))
    say("test: percent, trained model, round of best validation; hashes in full: --json")


@app.command
def status(*, db: options.Database = None) -> None:
    """Say what the sweeps into a database are at: how far they are, and what runs where."""
    from bench.runner import display

    say(display.status(db or paths.default_database()))
