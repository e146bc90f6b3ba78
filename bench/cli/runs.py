"""``bench runs``: lists, shows and deletes the runs of a database, and shows the progress of sweeps."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from bench import paths
from bench.cli import options
from bench.cli.output import console, say, table
from bench.engine.states import State
from bench.errors import RequestError

if TYPE_CHECKING:
    import pandas as pd

    from bench.resolve import Overrides
    from bench.store import Store
    from bench.store.tables import Tables

app = App(name="runs", help="List stored runs, show or delete them, and show what is running.")

HASH = 12
"""Number of digits of a hash in a table."""

CELL = ["dataset", "scenario", "clients", "method"]

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
    """Show your own stored runs that match, ask, and delete them. Runs of imported bundles are kept.

    Args:
        yes: Delete without asking.
    """
    from rich.prompt import Confirm

    from bench.resolve import parse_overrides
    from bench.runner import display
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
    """Show a run: its spec, state, costs, accuracies, and the command that repeats it. Or show all runs of
    a cell, also those that come with the suite: accuracies, hashes of clients and spec, and their commands.

    Args:
        run: A run's id, which 'bench runs list' prints, or a cell: DATASET/SCENARIO/CLIENTS/METHOD.
    """
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
    from bench.runner import claims

    say(claims.status(db or paths.default_database()))


# Stored runs and cells as values for tables and JSON ------------------------------------------------


def _records(frame: pd.DataFrame, **options: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(frame.to_json(orient="records", **options))
    return rows


def chosen_runs(
    store: Store, filters: Mapping[str, Any], states: Sequence[str] = (), settings: Overrides | None = None
) -> pd.DataFrame:
    """Rows of ``bench.runs`` that pass all filters, oldest first. The column settings holds dictionaries."""
    from bench.frames.whole_frames import whole_frame

    runs = whole_frame("runs", store, filters=filters)
    runs["settings"] = runs["settings"].map(json.loads)
    for key, value in (settings or {}).items():
        runs = runs[[own.get(key) == value for own in runs["settings"]]]
    return runs[runs["state"].isin(states)] if states else runs


def run_list(runs: pd.DataFrame) -> list[dict[str, Any]]:
    """Names, settings, state, seconds and test accuracy of rows of ``chosen_runs``. If several runs have the
    same names and seed, ``apart`` lists the settings in which they differ.
    """
    import pandas as pd

    runs = runs.assign(apart="")
    has_others = runs.duplicated([*CELL, "seed"], keep=False)
    for _, alike in runs[has_others].groupby([*CELL, "seed"]):
        settings = pd.DataFrame(alike["settings"].tolist(), index=alike.index).map(json.dumps)
        differing = settings.loc[:, settings.nunique() > 1]
        for index, values in differing.iterrows():
            runs.loc[index, "apart"] = " ".join(f"{key}={value}" for key, value in values.items())
    runs = runs.rename(columns={"run": "id", "seconds_total": "seconds"}).round({"seconds": 2, "test": 2})
    names = ["id", *CELL, "seed", "settings", "apart", "rounds", "state", "reason", "seconds", "test"]
    return _records(runs[names])


def run_detail(store: Store, run_id: int) -> dict[str, Any]:
    """All stored data of a run except its arrays, and the command that repeats the run. Accuracies are means
    over clients. An unknown id raises ``RequestError``.
    """
    from bench.metric_names import ACCURACY
    from bench.resolve import command
    from bench.spec import RunSpec

    runs = store.runs(id=run_id)
    if runs.empty:
        raise RequestError(f"no run {run_id} in {store.name}: 'bench runs list' prints the ids")
    (row,) = _records(runs, date_format="iso")
    (description,) = store.table("environments", id=row.pop("environment_id"))["description"]
    results = store.client_results([run_id], metric=ACCURACY)
    readings = results["stage"] + " " + results["split"] + " " + results["rule"]
    return row | {
        "spec": json.loads(row["spec"]),
        "environment": json.loads(description),
        "accuracy": results["value"].groupby(readings).mean().round(6).to_dict(),
        "command": command(RunSpec.model_validate_json(row["spec"])),
    }


def cell(source: Tables, name: str) -> list[dict[str, Any]]:
    """The runs of a cell (DATASET/SCENARIO/CLIENTS/METHOD) in a report's source, grouped by the command that
    makes them, most runs first. Runs of one command differ only in their seeds. A cell without runs raises
    ``RequestError``.
    """
    from bench.frames.whole_frames import whole_frame
    from bench.resolve import command
    from bench.spec import RunSpec

    rows = whole_frame("runs", source).round({"test": 2})
    rows = rows[rows[CELL].astype(str).agg("/".join, axis=1) == name]
    if rows.empty:
        form = "a run's id or DATASET/SCENARIO/CLIENTS/METHOD such as cora/non-overlapping/10/fedavg"
        raise RequestError(f"no run of a cell '{name}': expected {form}")
    columns = ["seed", "state", "test", "origin", "device", "partition_hash", "spec_hash"]
    parts = []
    for _, runs in rows.sort_values("seed", kind="stable").groupby("cell"):
        spec = RunSpec.model_validate_json(runs["spec"].iloc[0])
        parts.append(
            {"command": command(spec, runs["seed"].unique().tolist()), "runs": _records(runs[columns])}
        )
    return sorted(parts, key=lambda part: (-len(part["runs"]), part["command"]))
