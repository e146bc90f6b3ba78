"""The runs frame: every run that is shown, with columns derived from its settings.

It has the columns of ``bench.runs()`` and those that ``columns.csv`` describes. Rows are sorted by dataset,
scenario, clients, method, seed, run.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
import pandas as pd

from bench.dataset import DATASETS
from bench.engine.methods import METHODS
from bench.errors import RequestError
from bench.grids import Filters, expand, load_grid, plan
from bench.resolve import default_hyper
from bench.spec import RunSpec
from bench.store.tables import Tables, plain_texts
from bench.studies.experiment import PlannedCell, usual_cell
from bench.studies.settings import Settings, difference_text, settings_of
from bench.studies.shipped import OWN
from bench.tune.record import Record

WHERE = ["dataset", "scenario", "clients"]
"""Columns that say where a method is measured."""

DEFAULT, TUNED, OTHER = "default", "tuned", "other settings"
"""Values of the column ``tuning``."""

SettingsOf = dict[str, Settings]
"""Cell -> its settings by dotted key."""

UsualRuns = dict[tuple[str, str, int, str], PlannedCell]
"""Dataset, scenario, clients and method -> the runs in usual settings."""


@cache
def columns_of(frame: str) -> dict[str, str]:
    """The columns of a frame and their types; ``columns.csv`` says what they mean."""
    columns = pd.read_csv(str(files("bench.frames").joinpath("columns.csv")), index_col="frame").loc[frame]
    return dict(zip(columns["name"], columns["type"], strict=True))


def rows_of(frame: pd.DataFrame) -> Iterator[Any]:
    """The rows of a frame as named tuples, whose fields are its columns."""
    yield from frame.itertuples()


def parts_of(frame: pd.DataFrame, columns: str | list[str]) -> Iterator[tuple[Any, pd.DataFrame]]:
    """Yield groups of rows with equal values in some columns: the values, then the rows, sorted by value."""
    yield from frame.groupby(columns)


def usual_of(grids: Iterable[str]) -> UsualRuns:
    """Return the runs that grids plan. If a method has two settings in one column, the first is usual."""
    usual: UsualRuns = {}
    for name in dict.fromkeys(grids):
        grid = load_grid(name)
        for run in expand(grid, Filters(seeds=grid.seeds[:1])):
            one = usual_cell(run.spec, grid.partition_per_seed, grid)
            usual.setdefault((*run.names[:3], run.spec.method), one)
    return usual


def runs_frame(
    source: Tables, usual: UsualRuns, experiment_hashes: Collection[str], searches: Sequence[Record]
) -> tuple[pd.DataFrame, SettingsOf]:
    """Return the runs frame, and the settings of every cell in it.

    ``experiment_hashes`` are the spec hashes of the runs that experiments show.
    """
    runs = source.runs().rename(columns={"id": "run"})
    if runs.empty:
        raise RequestError("the database has no runs yet: run 'bench sweep --grid quickstart' first")
    runs["origin"] = runs.get("origin", OWN)
    runs = plain_texts(runs).sort_values([*WHERE, "method", "seed", "run"], ignore_index=True)
    runs, settings = _with_cells(runs, usual)
    cell_settings = runs["cell"].map(settings)
    runs["newcomers"] = cell_settings.map(lambda one: any(key.startswith("newcomers.") for key in one))
    is_attacked = cell_settings.map(lambda one: any(key.startswith("attack.") for key in one))
    runs["special"] = runs["newcomers"] | is_attacked
    references = _reference_settings(runs, settings, usual)
    differences = {cell: difference_text(settings[cell], other) for cell, other in references.items()}
    runs["setting"] = runs["cell"].map(differences).astype(object).fillna("")  # special runs have no line
    # If all planned seeds have numbers, only these count: nobody shall add seeds until a grade changes.
    runs["counted"] = True
    seeds_of = {one.cell: one.seeds for one in usual.values() if one.seeds}
    for cell, part in parts_of(runs[runs["cell"].isin(seeds_of.keys())], "cell"):
        if set(part.loc[part["state"] == "done", "seed"]).issuperset(seeds_of[cell]):
            runs.loc[part.index, "counted"] = part["seed"].isin(seeds_of[cell])
    shown = runs["spec_hash"].isin(experiment_hashes).groupby(runs["cell"]).transform("all")
    runs["listed"] = ~runs["special"] & ~((runs["setting"] != "") & shown)

    marks = _marks_of_searches(runs, settings, references, searches)
    runs["setting"] = runs["cell"].map(marks).astype(object).fillna(runs["setting"])
    runs["tuned"] = runs["cell"].isin(marks.keys())
    return runs, settings


def _with_cells(runs: pd.DataFrame, usual: UsualRuns) -> tuple[pd.DataFrame, SettingsOf]:
    """Return the runs with their cell and family, and the settings of every cell.

    A run has its own partition if its partition seed is its seed and usual runs of its column do the same.
    """
    drawn_columns = {where[:3] for where, one in usual.items() if one.per_seed}
    one_a_cell = rows_of(runs.drop_duplicates("cell"))  # runs of a cell differ in their seed alone
    specs = {run.cell: RunSpec.model_validate_json(run.spec) for run in one_a_cell}
    families = {cell: spec.cell_on_any_partition for cell, spec in specs.items()}
    cells: list[str] = []
    settings: SettingsOf = {}
    for run in rows_of(runs[[*WHERE, "cell", "seed"]]):
        spec = specs[run.cell]
        has_column = (run.dataset, run.scenario, run.clients) in drawn_columns
        is_drawn = has_column and spec.protocol.partition_seed == run.seed
        cell = families[run.cell] if is_drawn else run.cell
        if cell not in settings:
            settings[cell] = settings_of(spec.with_seed(run.seed), is_drawn)
        cells.append(cell)
    return runs.assign(family=runs["cell"].map(families), cell=np.array(cells, object)), settings


def _reference_settings(runs: pd.DataFrame, settings: SettingsOf, usual: UsualRuns) -> SettingsOf:
    """Return per cell the settings that its line need not name: as the column's grid plans or would plan.

    In a column without a grid these are the method's defaults there, and the most frequent protocol.
    """
    grids = {where[:3]: one.grid for where, one in usual.items() if one.grid}
    cells = runs[~runs["special"]].groupby([*WHERE, "method", "cell"], as_index=False).size()
    cells["text"] = [json.dumps(settings[cell], sort_keys=True) for cell in cells["cell"]]
    cells = cells.sort_values(["size", "text"], ascending=[False, True])
    references: SettingsOf = {}
    for (*column, method), part in parts_of(cells, [*WHERE, "method"]):
        where = tuple(column)
        kind, data = METHODS.all().get(method), DATASETS.all().get(where[0])
        if (*where, method) in usual:
            reference = usual[*where, method].settings
        elif kind and data and where in grids:
            spec = plan(grids[where], *where, method, {}, grids[where].seeds[0]).spec
            reference = settings_of(spec, grids[where].partition_per_seed)
        else:
            hyper = default_hyper(data, kind) if kind and data else {}
            defaults = {f"method.{name}": value for name, value in hyper.items()}
            frequent = settings[part["cell"].iloc[0]]
            reference = {key: defaults.get(key, value) for key, value in frequent.items()}
        references |= dict.fromkeys(part["cell"], reference)
    return references


def _marks_of_searches(
    runs: pd.DataFrame, settings: SettingsOf, references: SettingsOf, searches: Sequence[Record]
) -> dict[str, str]:
    """Return per cell the mark of the search that found its settings, if these are not the usual ones.

    A search counts if the installed code made it, it has seen none of the cell's seeds, and all settings that
    it did not vary are usual.
    """
    by_family: dict[str, list[Record]] = defaultdict(list)
    for search in searches:
        if search.spec.method in METHODS.all() and search.is_current:
            by_family[search.apply(search.spec).cell_on_any_partition].append(search)
    candidates = runs[runs["counted"] & ~runs["special"] & (runs["setting"] != "")]
    candidates = candidates[candidates["family"].isin(by_family.keys())]
    marks: dict[str, str] = {}
    for (cell, family), part in parts_of(candidates, ["cell", "family"]):
        for search in by_family[family]:
            own, usual = settings[cell], references[cell]
            fixed = {*own, *usual}.difference(search.space)
            is_usual = all(key in own and key in usual and own[key] == usual[key] for key in fixed)
            if is_usual and not part["seed"].isin(search.seeds).any():
                used, granted = search.used.trials, search.budget.trials
                count = f"{granted}" if used == granted else f"{used} of {granted}"
                marks.setdefault(cell, f"tuned{' here' if search.own else ''}, {count} trials")
    return marks
