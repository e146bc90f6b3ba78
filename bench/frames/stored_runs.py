"""The runs frame: every run that is shown, and what its settings make of it.

Columns, a row a run, ordered by dataset, scenario, clients, method, seed, run:

run               id of the run in the source
spec_hash         hash of the run's spec
dataset, scenario, clients, method, seed, rounds, state, reason, partition_hash, ...
                  as in ``bench.runs()``
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
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from bench.dataset import DATASETS
from bench.engine.methods import METHODS
from bench.errors import RequestError
from bench.grids import Filters, expand, load_grid, plan
from bench.grids.grid import PARTITION_SEED
from bench.resolve import default_hyper
from bench.spec import RunSpec
from bench.store.tables import Tables
from bench.studies.settings import PER_SEED, Settings, difference_text, is_special, settings_of
from bench.studies.shipped import OWN
from bench.tune.apply import Configuration

WHERE = ["dataset", "scenario", "clients"]
"""Columns that say where a method is measured."""

DEFAULT, TUNED, OTHER = "default", "tuned", "other settings"
"""Values of the column ``tuning``."""

SettingsOf = dict[str, Settings]
"""Cell -> its settings by dotted key."""

UsualRuns = tuple[pd.DataFrame, SettingsOf]
"""What is usual, as ``first_usual`` gives it, and the settings of its cells."""


def rows_of(frame: pd.DataFrame) -> Iterator[Any]:
    """The rows of a frame as named tuples, whose fields are its columns."""
    yield from frame.itertuples()


def parts_of(frame: pd.DataFrame, columns: str | list[str]) -> Iterator[tuple[Any, pd.DataFrame]]:
    """The rows that have the same values in some columns, after these values, in their order."""
    yield from frame.groupby(columns)


def with_text_as_objects(frame: pd.DataFrame) -> pd.DataFrame:
    """A frame whose columns of text hold Python's strings: such columns lie in one block, and selecting rows
    of a frame with dozens of them takes a third of the time that Arrow's take.
    """
    return frame.astype(dict.fromkeys(frame.select_dtypes("str").columns, "object"))


def usual_frame(grids: Iterable[str]) -> tuple[pd.DataFrame, SettingsOf]:
    """The settings that grids plan, and these settings by cell; where two grids plan the same method in the
    same column, the first one's.

    Columns: grid, dataset, scenario, clients, method, cell (as in the runs frame), seeds (planned),
    per_seed (every seed draws its own partition).

    Raises:
        RequestError: an unknown grid, or one that is not valid.
    """
    rows: list[dict[str, Any]] = []
    settings: SettingsOf = {}
    for name in dict.fromkeys(grids):
        grid = load_grid(name)
        for run in expand(grid, Filters(seeds=grid.seeds[:1])):
            spec = run.spec
            cell = spec.cell_on_any_partition if grid.partition_per_seed else spec.cell
            settings[cell] = settings_of(spec, grid.partition_per_seed)
            where = dict(zip(WHERE, run.names, strict=False))
            plan = {"cell": cell, "seeds": grid.seeds, "per_seed": grid.partition_per_seed}
            rows.append({"grid": name, **where, "method": spec.method, **plan})
    columns = ["grid", *WHERE, "method", "cell", "seeds", "per_seed"]
    return pd.DataFrame(rows, columns=columns).drop_duplicates(["grid", *WHERE, "method"]), settings


def first_usual(usual: pd.DataFrame) -> pd.DataFrame:
    """One row a column and method of ``usual_frame``: what the first grid plans."""
    return usual.drop_duplicates([*WHERE, "method"], ignore_index=True)


def runs_frame(
    source: Tables,
    usual: pd.DataFrame,
    usual_settings: SettingsOf,
    experiment_hashes: Collection[str],
    searches: Sequence[Configuration],
) -> tuple[pd.DataFrame, SettingsOf]:
    """The runs frame, and the settings of every cell in it.

    ``usual`` is what ``first_usual`` gives. ``experiment_hashes`` are spec hashes of runs that experiments
    show. ``searches`` are those at hand.

    Raises:
        RequestError: the source has no runs.
    """
    runs = source.runs().rename(columns={"id": "run"})
    if runs.empty:
        raise RequestError("the database has no runs yet: run 'bench sweep --grid quickstart' first")
    if "origin" not in runs:
        runs["origin"] = OWN
    runs = with_text_as_objects(runs).sort_values([*WHERE, "method", "seed", "run"], ignore_index=True)
    first_runs = runs.drop_duplicates("cell")
    specs = dict(zip(first_runs["cell"], map(RunSpec.model_validate_json, first_runs["spec"]), strict=True))
    fixed_settings: SettingsOf = {cell: spec.settings() for cell, spec in specs.items()}
    runs["family"] = runs["cell"].map({cell: spec.cell_on_any_partition for cell, spec in specs.items()})
    is_drawn = _draws_its_own_partition(runs, fixed_settings, usual)
    fixed, drawn = runs[~is_drawn], runs[is_drawn]
    settings = {cell: fixed_settings[cell] for cell in fixed["cell"].unique()}
    for cell, family in drawn[["cell", "family"]].drop_duplicates("family").itertuples(index=False):
        settings[family] = {**fixed_settings[cell], PARTITION_SEED: PER_SEED}
    runs["cell"] = runs["family"].where(is_drawn, runs["cell"])
    cell_settings = runs["cell"].map(settings)
    runs["special"] = cell_settings.map(is_special)
    runs["newcomers"] = cell_settings.map(lambda one: any(key.startswith("newcomers.") for key in one))
    references = _reference_settings(runs, settings, usual, usual_settings)
    differences = {cell: difference_text(settings[cell], other) for cell, other in references.items()}
    texts = [differences.get(cell, "") for cell in runs["cell"]]  # special runs have no line in a main table
    runs["setting"] = pd.Series(texts, runs.index, dtype=object)
    runs["counted"] = _is_counted(runs, usual)
    shown = runs["spec_hash"].isin(experiment_hashes).groupby(runs["cell"]).transform("all")
    runs["listed"] = ~runs["special"] & ~((runs["setting"] != "") & shown)
    return _with_searches(runs, settings, references, searches), settings


def _draws_its_own_partition(
    runs: pd.DataFrame, settings: Mapping[str, Settings], usual: pd.DataFrame
) -> pd.Series[bool]:
    """Which runs draw their partition by their own seed, in a column whose usual runs do so."""
    columns = usual.loc[usual["per_seed"].astype(bool), WHERE].drop_duplicates()
    in_column = runs[WHERE].merge(columns, how="left", indicator=True)["_merge"] == "both"
    partition_seeds = runs["cell"].map({cell: values[PARTITION_SEED] for cell, values in settings.items()})
    return in_column & (partition_seeds == runs["seed"])


def _reference_settings(
    runs: pd.DataFrame, settings: SettingsOf, usual: pd.DataFrame, usual_settings: SettingsOf
) -> dict[str, Settings]:
    """Cell -> the settings that its line need not name: those that the column's grid plans, or would plan.

    In a column without a grid: the method's defaults there, and the most frequent protocol.
    """
    planned = usual.set_index([*WHERE, "method"])["cell"].to_dict()
    of_grids = usual[usual["grid"] != ""]  # not what was planned without one
    grids = of_grids.drop_duplicates(WHERE, keep="last").set_index(WHERE)["grid"].to_dict()
    grid_by_name = {name: load_grid(name) for name in set(grids.values())}
    references: dict[str, Settings] = {}
    for _, cells in cells_in_order(runs, settings).groupby([*WHERE, "method"], sort=False):
        dataset, scenario, clients, method, frequent_cell = cells[[*WHERE, "method", "cell"]].iloc[0]
        where = dataset, scenario, clients
        kind, data = METHODS.all().get(method), DATASETS.all().get(dataset)
        if (*where, method) in planned:
            reference = usual_settings[planned[*where, method]]
        elif kind is None or data is None:
            reference = settings[frequent_cell]
        elif where in grids:
            grid = grid_by_name[grids[where]]
            spec = plan(grid, *where, method, {}, grid.seeds[0]).spec
            reference = settings_of(spec, grid.partition_per_seed)
        else:
            defaults = {f"method.{name}": value for name, value in default_hyper(data, kind).items()}
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


def _is_counted(runs: pd.DataFrame, usual: pd.DataFrame) -> pd.Series[bool]:
    """Leave out further seeds of usual settings where all planned seeds have numbers, so that nobody looks at
    a grade and goes on until it is another one.
    """
    seeds = runs[[*WHERE, "method"]].merge(usual[[*WHERE, "method", "seeds"]], how="left")["seeds"]
    planned = [known if isinstance(known, tuple) else () for known in seeds]
    is_usual = (runs["setting"] == "") & ~runs["special"]
    is_in_plan = np.array([seed in known for seed, known in zip(runs["seed"], planned, strict=True)])
    is_planned = is_usual & is_in_plan
    with_numbers = (is_planned & (runs["state"] == "done")).groupby(runs["cell"]).transform("sum")
    is_complete = (with_numbers > 0) & (with_numbers == [len(known) for known in planned])
    is_counted: pd.Series[bool] = is_planned | ~is_complete | ~is_usual
    return is_counted


def _with_searches(
    runs: pd.DataFrame,
    settings: SettingsOf,
    references: Mapping[str, Settings],
    searches: Sequence[Configuration],
) -> pd.DataFrame:
    """The runs with ``tuning`` and ``search``, and with the mark of the search in ``setting``.

    Settings of one method, one total of trials and one origin have one mark, and with it one line over all
    columns, also where some of the searches used fewer trials.
    """
    found = _searches_behind(runs, searches)
    usual_cells = set(runs.loc[runs["setting"] == "", "cell"])
    tuned = {cell: searches[number] for cell, number in found.items() if cell not in usual_cells}
    used = defaultdict(list)
    for search in tuned.values():
        used[_kind(search)].append(search.record.used.trials)
    marked, fully_tuned = {}, set()
    for cell, search in tuned.items():
        trials, alike = search.record.budget.trials, used[_kind(search)]
        low, high = min(alike), max(alike)
        counts = "" if low == trials else f"{low} of " if low == high else f"{low} to {high} of "
        mark = f"tuned{' here' if search.own else ''}, {counts}{trials} trials"
        fixed = {key: value for key, value in settings[cell].items() if key not in search.record.space}
        reference = {key: references[cell][key] for key in references[cell] if key not in search.record.space}
        difference = difference_text(fixed, reference)
        marked[cell] = f"{mark};{difference}" if difference else mark
        if not difference:
            fully_tuned.add(cell)
    setting = runs["cell"].map(marked).astype(object).fillna(runs["setting"])
    tuning = setting.eq("").map({True: DEFAULT, False: OTHER})
    return runs.assign(
        setting=setting,
        tuning=tuning.mask(runs["cell"].isin(fully_tuned), TUNED),
        search=runs["cell"].map(found).astype("Int64"),
    )


def _kind(search: Configuration) -> tuple[str, int, bool]:
    """What searches with one mark have in common: method, trials granted, whose they are."""
    return search.record.spec.method, search.record.budget.trials, search.own


def _searches_behind(runs: pd.DataFrame, searches: Sequence[Configuration]) -> dict[str, int]:
    """Cell -> the number of the one search by the installed code behind all of its runs, whose seeds are
    others; of usual settings it is the search that they won.
    """
    numbers_by_family: dict[str, list[int]] = defaultdict(list)
    for number, search in enumerate(searches):
        spec = search.record.spec
        if spec.method in METHODS.all() and search.current:
            numbers_by_family[search.apply(spec).cell_on_any_partition].append(number)
    candidates = runs[runs["family"].isin(numbers_by_family.keys()) & ~runs["special"] & runs["counted"]]
    found = {}
    for (cell, family, setting), part in parts_of(candidates, ["cell", "family", "setting"]):
        fitting = [
            number
            for number in numbers_by_family[family]
            if (searches[number].record.spec.cell_on_any_partition == family) == (setting == "")
        ]
        behind = {
            next((number for number in fitting if seed not in searches[number].record.seeds), None)
            for seed in part["seed"]
        }
        (first, *others) = behind
        if first is not None and not others:
            found[cell] = first
    return found
