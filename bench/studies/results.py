"""Stored runs as a report sees them: every question that it asks of the database, asked once."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bench.dataset import DATASETS
from bench.engine.methods import METHODS
from bench.grids.grid import PARTITION_SEED
from bench.metric_names import ACCURACY, Metric
from bench.resolve import default_hyper
from bench.selection import client_mean
from bench.studies.groups import Aggregate, Average, Group, with_marks
from bench.studies.metric import client_values
from bench.studies.planned import PlannedCell, UsualCells, settings_in_grid, usual_cells
from bench.studies.settings import PER_SEED, Column, Settings, difference_text, is_special
from bench.studies.source import OWN, Runs, Source, spec_by_cell
from bench.studies.tuned import search_of
from bench.studies.verdicts import between_partitions
from bench.tune.apply import Configurations


class PooledSpread(NamedTuple):
    """A spread between partitions over several cells: standard deviation in points, degrees of freedom, and
    the data sets of these cells.
    """

    std: float
    freedom: int
    datasets: frozenset[str]


class Results:
    """Answers a study's questions from the database; every query is made once.

    ``experiment_hashes`` are spec hashes of runs that experiments show: the main tables give them no line of
    their own. Runs under attack or with newcomers belong to no group at all. ``metric`` is what clients are
    scored by; curves are of accuracy whatever it is, and so are the rounds that rules select.
    """

    def __init__(
        self,
        source: Source,
        usual_cells: UsualCells,
        experiment_hashes: Collection[str] = (),
        tunings: Configurations | None = None,
        metric: Metric = ACCURACY,
    ) -> None:
        self.metric = metric
        self._source = source
        self._usual_cells = usual_cells
        self._grids = {column: cell.grid for (column, _), cell in usual_cells.items() if cell.grid}
        self._experiment_hashes = frozenset(experiment_hashes)
        self._tunings = tunings or Configurations({})
        self._means: dict[tuple[str, str, str, Average], dict[int, float]] = {}
        self._values: dict[tuple[str, str, str, Metric], pd.DataFrame] = {}
        self._clients: dict[tuple[int | str, ...], pd.DataFrame] = {}
        self._cells_of_grids: dict[tuple[str, ...], UsualCells] = {}
        self._pooled: dict[
            tuple[tuple[str, ...], frozenset[Column] | None, str, str, Average], PooledSpread | None
        ] = {}
        self.runs = self._load()
        self._all_runs = Runs.of(self.runs)
        self._samples, self._run_by_partition = self._by_partition()
        self._rows = {digest: row for row, digest in enumerate(self.runs["spec_hash"])}
        self._groups = self._group()

    def _load(self) -> pd.DataFrame:
        runs = self._source.runs()
        if "origin" not in runs:
            runs = runs.assign(origin=OWN)
        runs = runs.sort_values(["dataset", "scenario", "clients", "method", "seed", "id"], ignore_index=True)
        per_seed = {column for (column, _), cell in self._usual_cells.items() if cell.per_seed}
        columns = [
            Column(*names) for names in zip(runs["dataset"], runs["scenario"], runs["clients"], strict=True)
        ]
        specs = spec_by_cell(runs)
        on_any_partition = {cell: spec.cell_on_any_partition for cell, spec in specs.items()}
        fixed = {cell: spec.settings() for cell, spec in specs.items()}
        drawn = {cell: settings | {PARTITION_SEED: PER_SEED} for cell, settings in fixed.items()}
        cells: list[str] = []
        settings: list[Settings] = []
        for column, cell, seed in zip(columns, runs["cell"], runs["seed"].tolist(), strict=True):
            draws_partition = column in per_seed and fixed[cell][PARTITION_SEED] == seed
            settings.append((drawn if draws_partition else fixed)[cell])
            cells.append(on_any_partition[cell] if draws_partition else cell)
        return runs.assign(
            settings=pd.Series(settings, dtype=object),
            column=pd.Series(columns, dtype=object),
            cell=cells,
            cell_on_any_partition=runs["cell"].map(on_any_partition),
        )

    def _by_partition(self) -> tuple[dict[str, dict[str, list[int]]], dict[tuple[Column, str, str], int]]:
        """The runs that have numbers, by what they are samples of on any partition and by partition; and one
        run of honest, known clients for every column, method and partition.
        """
        samples: dict[str, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        run_by_partition: dict[tuple[Column, str, str], int] = {}
        done_runs = self.runs[self.runs["state"] == "done"]
        names = ["id", "column", "method", "partition_hash", "cell_on_any_partition", "settings"]
        for run, column, method, partition, cell, settings in done_runs[names].itertuples(index=False):
            samples[cell][partition].append(run)
            if not is_special(settings):
                run_by_partition.setdefault((column, method, partition), run)
        return samples, run_by_partition

    def _group(self) -> dict[tuple[Column, str], list[Group]]:
        rows: dict[tuple[Column, str], dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        for row, (column, method, cell, settings) in enumerate(
            self.runs[["column", "method", "cell", "settings"]].itertuples(index=False)
        ):
            if not is_special(settings):
                rows[column, method][cell].append(row)
        by_cell: dict[tuple[Column, str], list[Group]] = {}
        for (column, method), cells in rows.items():
            parts = [self._all_runs.take(cells[cell]) for cell in sorted(cells)]
            if len(parts) > 1:
                parts.sort(key=lambda part: (-len(part), json.dumps(part["settings"][0], sort_keys=True)))
            reference = self._reference(column, method, parts[0]["settings"][0])
            by_cell[column, method] = [self._group_of(column, method, reference, part) for part in parts]
        marked_groups = with_marks(by_cell)
        return {key: sorted(groups, key=lambda group: group.setting) for key, groups in marked_groups.items()}

    def _reference(self, column: Column, method: str, frequent_settings: Settings) -> Settings:
        """The settings that a line need not name: those that the column's grid plans, or would plan.

        In a column without a grid: the method's defaults there, and the most frequent protocol.
        """
        planned_cell = self._usual_cells.get((column, method))
        if planned_cell is not None:
            return planned_cell.settings
        kind, data = METHODS.all().get(method), DATASETS.all().get(column.dataset)
        if kind is None or data is None:
            return frequent_settings
        if column in self._grids:
            return settings_in_grid(self._grids[column], column, method)
        defaults = {f"method.{name}": value for name, value in default_hyper(data, kind).items()}
        return {key: defaults.get(key, value) for key, value in frequent_settings.items()}

    def _group_of(self, column: Column, method: str, reference: Settings, runs: Runs) -> Group:
        settings = runs["settings"][0]
        setting = difference_text(settings, reference)
        usual_cell = None if setting else self._usual_cells.get((column, method))
        runs = _planned_runs(runs, usual_cell.seeds if usual_cell else ())
        if not setting:
            return Group(column, method, settings, setting, runs)
        search = search_of(runs, self._tunings.behind)
        if search:  # the search stands for what it has tuned, and for nothing else
            space = search.record.space
            setting = difference_text(_without(settings, space), _without(reference, space))
            search = replace(search, other_settings=setting)
        return Group(column, method, settings, setting, runs, search)

    def usual_cell(self, column: Column, method: str) -> PlannedCell | None:
        """What is planned in the usual settings of a cell."""
        return self._usual_cells.get((column, method))

    @property
    def columns(self) -> set[Column]:
        """Where anything was run."""
        return set(self.runs["column"])

    def methods(self, column: Column) -> list[str]:
        """Methods with a stored run or planned by a grid, sorted."""
        cells = {*self._groups, *self._usual_cells}
        return sorted({method for cell_column, method in cells if cell_column == column})

    def groups(self, column: Column, method: str) -> list[Group]:
        """The specs that were run for a cell; the usual one, if it was, comes first."""
        return self._groups.get((column, method), [])

    def lines(self, column: Column, method: str) -> list[Group]:
        """The specs that have a line in a main table: the usual one, and others that no experiment shows."""
        return [
            group
            for group in self.groups(column, method)
            if not (group.setting and self._experiment_hashes.issuperset(group.runs["spec_hash"]))
        ]

    def unlisted_runs(self, columns: Collection[Column], methods: Collection[str]) -> int:
        """Number of runs of these columns and methods that have no line in a main table."""
        shown_runs = {
            int(run)
            for column in columns
            for method in methods
            for group in self.lines(column, method)
            for run in group.runs["id"]
        }
        runs = self.runs[self.runs["column"].isin(list(columns)) & self.runs["method"].isin(list(methods))]
        return len(set(runs["id"]) - shown_runs)

    def stored_runs(self, hashes: Iterable[str]) -> Runs:
        """The stored runs among these spec hashes, in the order of ``runs``."""
        return self._all_runs.take(sorted(self._rows[digest] for digest in hashes if digest in self._rows))

    def artefact(self, run: int, name: str) -> NDArray[Any] | None:
        """An array kept with a run; None where there is none."""
        try:
            return self._source.artefact(run, name)
        except KeyError:
            return None

    def _results(
        self, stage: str, rule: str, split: str = "test", metric: Metric | None = None
    ) -> pd.DataFrame:
        """What all clients of all runs score, indexed by run: by the report's metric or another."""
        key = (stage, rule, split, metric or self.metric)
        if key not in self._values:
            run_ids = self.runs.loc[self.runs["state"] == "done", "id"]
            rows = client_values(self._source, [int(run) for run in run_ids], key[-1], stage, split, rule)
            rows = rows[["run_id", "client", "value", "samples"]]
            self._values[key] = rows.set_index("run_id").sort_index(kind="stable")
        return self._values[key]

    def with_metric(self, metric: Metric) -> Results:
        """The same runs with their clients scored by another metric."""
        if metric == self.metric:
            return self
        results = copy(self)
        results.metric = metric
        results._means, results._clients, results._pooled = {}, {}, {}
        return results

    def metric_coverage(self, columns: Collection[Column] | None = None) -> tuple[int, int]:
        """Number of runs in these columns (None: in all) that were taken to their end, and of those that no
        client has a score of.
        """
        is_done = self.runs["state"] == "done"
        if columns is not None:
            is_done &= self.runs["column"].isin(columns)
        run_ids = set(self.runs.loc[is_done, "id"])
        return len(run_ids), len(run_ids - set(self._results("trained", "last").index))

    def clients(self, group: Group, stage: str, rule: str) -> pd.DataFrame:
        """Test results of the group's runs: run_id, seed, partition, client, value (0 to 1), samples."""
        seeds = dict(zip(group.done["id"].tolist(), group.seeds, strict=True))
        key = (*seeds, stage, rule)
        if key not in self._clients:
            rows = _of_runs(self._results(stage, rule), sorted(seeds)).reset_index()
            partitions = dict(zip(seeds, group.done["partition_hash"], strict=True))
            rows = rows.assign(
                seed=rows["run_id"].map(seeds),
                partition=pd.Series([partitions[run] for run in rows["run_id"].tolist()], dtype=object),
            )
            self._clients[key] = rows.sort_values(["seed", "client"], ignore_index=True)
        return self._clients[key]

    def _accuracies(self, stage: str, rule: str, split: str, average: Average) -> dict[int, float]:
        """Accuracy in percent by run."""
        key = (stage, rule, split, average)
        if key not in self._means:
            rows = self._results(stage, rule, split)
            if average == "clients":
                values = rows["value"].groupby(level=0).mean()
            else:
                samples = rows["samples"].astype(float)
                correct = (rows["value"] * samples).groupby(level=0).sum()
                values = correct / samples.groupby(level=0).sum()
            self._means[key] = {
                run: 100.0 * value for run, value in zip(values.index.tolist(), values.tolist(), strict=True)
            }
        return self._means[key]

    def aggregate(
        self, group: Group, stage: str, rule: str, average: Average, split: str = "test"
    ) -> Aggregate | None:
        """Accuracy of a group in percent; None where it has no such numbers."""
        by_run = self._accuracies(stage, rule, split, average)
        values = tuple(by_run[run] for run in group.done["id"] if run in by_run)
        return Aggregate(values) if values else None

    def between_partitions(
        self, group: Group, stage: str, rule: str, average: Average
    ) -> tuple[float | None, int]:
        """Standard deviation in points of a cell's accuracy between partitions, training apart, from all runs
        that differ from the group's in seed and partition alone, and the number of their partitions.

        None where they cannot tell (see ``bench.studies.verdicts.between_partitions``).
        """
        by_run = self._accuracies(stage, rule, "test", average)
        partitions = [
            values
            for runs in self._samples.get(group.runs["cell_on_any_partition"][0], {}).values()
            if (values := [by_run[run] for run in runs if run in by_run])
        ]
        return between_partitions(partitions), len(partitions)

    def pooled_between_partitions(
        self,
        grids: tuple[str, ...],
        columns: Collection[Column] | None,
        stage: str,
        rule: str,
        average: Average,
    ) -> PooledSpread | None:
        """Root mean square of ``between_partitions`` over the cells of these grids (without grids: the usual
        cells) in these columns (None: in all) whose methods train, and its degrees of freedom: cells of one
        column have the same partitions, and count once.

        None where no cell has an estimate.
        """
        key = grids, None if columns is None else frozenset(columns), stage, rule, average
        if key not in self._pooled:
            spreads: list[float] = []
            freedom: dict[Column, int] = {}
            for group in self._groups_of(grids):
                if (columns is None or group.column in columns) and group.trains:
                    spread, partitions = self.between_partitions(group, stage, rule, average)
                    if spread is not None:
                        spreads.append(spread)
                        freedom[group.column] = max(freedom.get(group.column, 0), partitions - 1)
            std = float(np.sqrt(np.mean(np.square(spreads)))) if spreads else 0.0
            datasets = frozenset(column.dataset for column in freedom)
            self._pooled[key] = PooledSpread(std, sum(freedom.values()), datasets) if spreads else None
        return self._pooled[key]

    def _groups_of(self, grids: tuple[str, ...]) -> Iterator[Group]:
        """The groups in the settings that grids plan; without grids those in the usual ones."""
        if not grids:
            yield from (group for groups in self._groups.values() for group in groups if not group.setting)
            return
        if grids not in self._cells_of_grids:
            self._cells_of_grids[grids] = usual_cells(grids)
        for place, planned_cell in self._cells_of_grids[grids].items():
            for group in self.groups(*place):
                if not difference_text(group.settings, planned_cell.settings):
                    yield group

    def on_the_same_clients(
        self, method: str, group: Group, stage: str, rule: str, average: Average
    ) -> Aggregate | None:
        """What a method reaches on each partition that the group's runs have, one value a run of the group.

        For a method that no seed and setting changes; None where it has no run on any of them, and for
        newcomers, who are some of the clients.
        """
        if any(key.startswith("newcomers.") for key in group.settings):
            return None
        by_run = self._accuracies(stage, rule, "test", average)
        runs = (
            self._run_by_partition.get((group.column, method, partition))
            for partition in group.done["partition_hash"]
        )
        values = tuple(by_run[run] for run in runs if run in by_run)
        return Aggregate(values) if values else None

    def curves(self, group: Group, stage: str, average: Average) -> NDArray[np.float64]:
        """Test accuracy in percent ``[seeds, rows]`` of the runs that keep a curve, cut to the shortest."""
        results = self._results(stage, "last")
        every_client, every_size = results["client"].to_numpy(), results["samples"].to_numpy()
        runs = group.done["id"].tolist()
        stored_curves = self._source.curves(runs, "test")
        curves = []
        for run, start, stop in zip(runs, *_places(results, runs), strict=True):
            if start == stop or (run, stage) not in stored_curves:
                continue
            clients, sizes = every_client[start:stop], every_size[start:stop]
            correct = stored_curves[run, stage][:, clients]
            share = (
                (correct / sizes).mean(axis=1) if average == "clients" else correct.sum(axis=1) / sizes.sum()
            )
            curves.append(100.0 * share)
        if not curves:
            return np.zeros((0, 0))
        rows = min(len(curve) for curve in curves)
        return np.stack([curve[:rows] for curve in curves])

    def best_round(self, run: int, stage: str) -> int | None:
        """The row of a run's curve that the rule ``best_val`` reads; None where that can't be told.

        Bundles keep the curve of the test split alone: there it is the one row with the counts that the rule
        reads of every client.
        """
        correct = self._source.curves([run], "val").get((run, stage))
        if correct is None:
            return self._row_with_counts(run, stage)
        samples = np.zeros(correct.shape[1], np.int32)
        results = _of_runs(self._results(stage, "last", "val", ACCURACY), [run])
        samples[results["client"].to_numpy()] = results["samples"].to_numpy()
        return int(client_mean(correct, samples).argmax())

    def _row_with_counts(self, run: int, stage: str) -> int | None:
        """The one row of a run's test curve with the counts that ``best_val`` reads, if it is just one."""
        correct = self._source.curves([run], "test").get((run, stage))
        if correct is None:
            return None
        results = _of_runs(self._results(stage, "best_val", "test", ACCURACY), [run])
        counts = np.rint((results["value"] * results["samples"]).to_numpy())
        (rows,) = np.nonzero((correct[:, results["client"].to_numpy()] == counts).all(axis=1))
        return int(rows[0]) if len(rows) == 1 else None

    def environments(self, groups: list[Group]) -> list[dict[str, Any]]:
        """Descriptions of the environments in which the groups' runs were made, by id."""
        used_ids = {int(env) for group in groups for env in group.done["environment_id"] if pd.notna(env)}
        rows = self._source.environments().sort_values("id")
        descriptions = zip(rows["id"], rows["description"], strict=True)
        return [json.loads(text) for number, text in descriptions if int(number) in used_ids]


def _planned_runs(runs: Runs, planned_seeds: Collection[int]) -> Runs:
    """The runs of the planned seeds where all of these have numbers, so that nobody looks at a grade and goes
    on until it is another one; else all runs.
    """
    is_planned = [seed in planned_seeds for seed in runs["seed"]]
    seeds_with_numbers = {
        seed for seed, state in zip(runs["seed"], runs["state"], strict=True) if state == "done"
    }
    is_complete = bool(planned_seeds) and seeds_with_numbers.issuperset(planned_seeds)
    return runs.take(is_planned) if is_complete and not all(is_planned) else runs


def _without(settings: Settings, keys: Collection[str]) -> Settings:
    return {key: value for key, value in settings.items() if key not in keys}


def _places(rows: pd.DataFrame, runs: Sequence[int]) -> tuple[list[int], list[int]]:
    """Where the rows of each of these runs start and stop; ``rows`` are sorted by their index, the run."""
    index, run_ids = rows.index.to_numpy(), np.asarray(runs)
    return index.searchsorted(run_ids, "left").tolist(), index.searchsorted(run_ids, "right").tolist()


def _of_runs(rows: pd.DataFrame, runs: Iterable[int]) -> pd.DataFrame:
    """The rows of these runs, in their order; ``rows`` are sorted by their index, the run."""
    places = [np.arange(start, stop) for start, stop in zip(*_places(rows, list(runs)), strict=True)]
    return rows.iloc[np.concatenate(places)] if places else rows.iloc[:0]
