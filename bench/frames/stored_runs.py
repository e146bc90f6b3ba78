"""The runs frame: every run that is shown, and what its settings make of it.

To the columns of ``bench.runs()`` come:

cell              what the run is a sample of: the spec without its seed; without the partition's seed, too,
                  where the usual runs of the column each draw their own partition
family            the spec without the seed and without the partition's seed
special           some clients attack, or join at the end
newcomers         some clients join at the end
setting           difference from the usual settings of column and method, with the mark of a search; ""
tuning            ``default``, ``tuned`` (a search found the settings, nothing else differs) or
                  ``other settings``
search            number of the search that found the settings, or that the usual settings won; missing
                  without one
counted           False for further seeds of usual settings where all planned seeds have numbers
listed            a main table has a line for the cell: not special, and not shown by an experiment alone

The rows are ordered by dataset, scenario, clients, method, seed, run.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd

from bench.dataset import DATASETS
from bench.engine.methods import METHODS
from bench.errors import RequestError
from bench.grids import Filters, expand, load_grid, plan
from bench.grids.grid import PARTITION_SEED
from bench.resolve import default_hyper
from bench.spec import RunSpec
from bench.store.tables import Tables
from bench.studies.settings import PER_SEED, Settings, difference_text, settings_of
from bench.studies.shipped import OWN
from bench.tune.apply import Configuration

WHERE = ["dataset", "scenario", "clients"]
"""Columns that say where a method is measured."""

DEFAULT, TUNED, OTHER = "default", "tuned", "other settings"
"""Values of the column ``tuning``."""

SettingsOf = dict[str, Settings]
"""Cell -> its settings by dotted key."""


class Usual(NamedTuple):
    """The usual runs of a method in a column: their cell, as in the runs frame, and its settings, the planned
    seeds, whether every seed draws its own partition, and the grid that plans them ("": none).
    """

    cell: str
    settings: Settings
    seeds: tuple[int, ...]
    per_seed: bool
    grid: str = ""


UsualRuns = dict[tuple[str, str, int, str], Usual]
"""What is usual by dataset, scenario, clients and method."""


def rows_of(frame: pd.DataFrame) -> Iterator[Any]:
    """The rows of a frame as named tuples, whose fields are its columns."""
    yield from frame.itertuples()


def parts_of(frame: pd.DataFrame, columns: str | list[str]) -> Iterator[tuple[Any, pd.DataFrame]]:
    """The rows that have the same values in some columns, after these values, in their order."""
    yield from frame.groupby(columns)


def with_text_as_objects(frame: pd.DataFrame) -> pd.DataFrame:
    """Text as Python's strings: selecting rows then takes a third of the time that Arrow's strings take."""
    return frame.astype(dict.fromkeys(frame.select_dtypes("str").columns, "object"))


def usual_of(grids: Iterable[str]) -> UsualRuns:
    """What grids plan; where two settings plan the same method in the same column, the first."""
    usual: UsualRuns = {}
    for name in dict.fromkeys(grids):
        grid = load_grid(name)
        for run in expand(grid, Filters(seeds=grid.seeds[:1])):
            spec, per_seed = run.spec, grid.partition_per_seed
            cell = spec.cell_on_any_partition if per_seed else spec.cell
            one = Usual(cell, settings_of(spec, per_seed), grid.seeds, per_seed, name)
            usual.setdefault((*run.names[:3], spec.method), one)
    return usual


def runs_frame(
    source: Tables,
    usual: UsualRuns,
    experiment_hashes: Collection[str],
    searches: Sequence[Configuration],
) -> tuple[pd.DataFrame, SettingsOf]:
    """The runs frame, and the settings of every cell in it.

    ``experiment_hashes`` are those of runs that experiments show.
    """
    runs = source.runs().rename(columns={"id": "run"})
    if runs.empty:
        raise RequestError("the database has no runs yet: run 'bench sweep --grid quickstart' first")
    runs["origin"] = runs.get("origin", OWN)
    runs = with_text_as_objects(runs).sort_values([*WHERE, "method", "seed", "run"], ignore_index=True)
    cells, settings = _cells_and_settings(runs, usual)
    runs[["cell", "family"]] = cells
    cell_settings = runs["cell"].map(settings)
    runs["special"] = cell_settings.map(lambda one: any(k.startswith(("attack.", "newcomers.")) for k in one))
    runs["newcomers"] = cell_settings.map(lambda one: any(key.startswith("newcomers.") for key in one))
    references = _reference_settings(runs, settings, usual)
    differences = {cell: difference_text(settings[cell], other) for cell, other in references.items()}
    runs["setting"] = runs["cell"].map(differences).astype(object).fillna("")  # special runs have no line
    runs["counted"] = _is_counted(runs, usual)
    shown = runs["spec_hash"].isin(experiment_hashes).groupby(runs["cell"]).transform("all")
    runs["listed"] = ~runs["special"] & ~((runs["setting"] != "") & shown)
    return _with_searches(runs, settings, references, searches), settings


def _cells_and_settings(runs: pd.DataFrame, usual: UsualRuns) -> tuple[list[tuple[str, str]], SettingsOf]:
    """Cell and family of every run, and the settings of every cell.

    A run draws its own partition if it draws it by its own seed, in a column whose usual runs do so.
    """
    texts = runs.drop_duplicates("cell").set_index("cell")["spec"]
    specs = {cell: RunSpec.model_validate_json(text) for cell, text in texts.items()}
    families = {cell: spec.cell_on_any_partition for cell, spec in specs.items()}
    drawn_columns = {where[:3] for where, one in usual.items() if one.per_seed}
    cells: list[tuple[str, str]] = []
    settings: SettingsOf = {}
    for run in rows_of(runs[[*WHERE, "cell", "seed"]]):
        spec, family = specs[run.cell], families[run.cell]
        has_column = (run.dataset, run.scenario, run.clients) in drawn_columns
        is_drawn = has_column and spec.protocol.partition_seed == run.seed
        cell = family if is_drawn else run.cell
        if cell not in settings:
            settings[cell] = {**spec.settings(), **({PARTITION_SEED: PER_SEED} if is_drawn else {})}
        cells.append((cell, family))
    return cells, settings


def _reference_settings(runs: pd.DataFrame, settings: SettingsOf, usual: UsualRuns) -> dict[str, Settings]:
    """Cell -> the settings that its line need not name: those that the column's grid plans, or would plan.

    In a column without a grid: the method's defaults there, and the most frequent protocol.
    """
    grid_names = {where[:3]: one.grid for where, one in usual.items() if one.grid}
    grids = {name: load_grid(name) for name in set(grid_names.values())}
    references: dict[str, Settings] = {}
    for _, cells in cells_in_order(runs, settings).groupby([*WHERE, "method"], sort=False):
        dataset, scenario, clients, method, frequent_cell = cells[[*WHERE, "method", "cell"]].iloc[0]
        where = dataset, scenario, clients
        kind, data = METHODS.all().get(method), DATASETS.all().get(dataset)
        if (*where, method) in usual:
            reference = usual[*where, method].settings
        elif kind and data and where in grid_names:
            grid = grids[grid_names[where]]
            spec = plan(grid, *where, method, {}, grid.seeds[0]).spec
            reference = settings_of(spec, grid.partition_per_seed)
        else:
            hyper = default_hyper(data, kind) if kind and data else {}
            defaults = {f"method.{name}": value for name, value in hyper.items()}
            reference = {key: defaults.get(key, value) for key, value in settings[frequent_cell].items()}
        references |= dict.fromkeys(cells["cell"], reference)
    return references


def cells_in_order(runs: pd.DataFrame, settings: SettingsOf) -> pd.DataFrame:
    """A row a cell that is not special: dataset, scenario, clients, method, cell; in each column and method
    the cells of most runs first, equal ones by their settings as JSON.
    """
    cells = runs[~runs["special"]].groupby([*WHERE, "method", "cell"], as_index=False, sort=False).size()
    cells["size"] = -cells["size"]
    cells["settings"] = [json.dumps(settings[cell], sort_keys=True) for cell in cells["cell"]]
    return cells.sort_values([*WHERE, "method", "size", "settings"], ignore_index=True)


def _is_counted(runs: pd.DataFrame, usual: UsualRuns) -> pd.Series[bool]:
    """False for further seeds of usual settings where all planned seeds have numbers: nobody shall look at a
    grade and add seeds until it is another one.
    """
    is_counted = pd.Series(True, runs.index)
    is_usual = (runs["setting"] == "") & ~runs["special"]
    for (*where, _), part in parts_of(runs[is_usual], [*WHERE, "method", "cell"]):
        planned = usual[tuple(where)].seeds if tuple(where) in usual else ()
        done_seeds = set(part.loc[part["state"] == "done", "seed"])
        if planned and done_seeds.issuperset(planned):
            is_counted[part.index] = part["seed"].isin(planned)
    return is_counted


def _with_searches(
    runs: pd.DataFrame,
    settings: SettingsOf,
    references: Mapping[str, Settings],
    searches: Sequence[Configuration],
) -> pd.DataFrame:
    """The runs with ``tuning`` and ``search``, and with the mark of the search in ``setting``.

    A search is behind a cell if it is the one search by the installed code behind all of its runs, whose
    seeds are others. Behind usual settings it is the search that they won, and they have no mark.
    """
    numbers: dict[str, list[int]] = defaultdict(list)
    for number, search in enumerate(searches):
        spec = search.record.spec
        if spec.method in METHODS.all() and search.current:
            numbers[search.apply(spec).cell_on_any_partition].append(number)
    candidates = runs[runs["family"].isin(numbers.keys()) & ~runs["special"] & runs["counted"]]
    found, marks, fully_tuned = {}, {}, set()
    for (cell, family, setting), part in parts_of(candidates, ["cell", "family", "setting"]):
        fitting = [
            number
            for number in numbers[family]
            if (searches[number].record.spec.cell_on_any_partition == family) == (setting == "")
        ]
        behind = {
            next((number for number in fitting if seed not in searches[number].record.seeds), None)
            for seed in part["seed"]
        }
        (first, *others) = behind
        if first is None or others:
            continue
        found[cell] = first
        if setting:
            record = searches[first].record
            fixed, reference = (
                {key: value for key, value in one.items() if key not in record.space}
                for one in (settings[cell], references[cell])
            )
            used, granted = record.used.trials, record.budget.trials
            count = f"{granted}" if used == granted else f"{used} of {granted}"
            mark = f"tuned{' here' if searches[first].own else ''}, {count} trials"
            difference = difference_text(fixed, reference)
            marks[cell] = f"{mark};{difference}" if difference else mark
            if not difference:
                fully_tuned.add(cell)
    setting = runs["cell"].map(marks).astype(object).fillna(runs["setting"])
    tuning = setting.eq("").map({True: DEFAULT, False: OTHER})
    return runs.assign(
        setting=setting,
        tuning=tuning.mask(runs["cell"].isin(fully_tuned), TUNED),
        search=runs["cell"].map(found).astype("Int64"),
    )
