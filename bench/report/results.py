"""Stored runs as a report sees them: grouped by spec over seeds, and averaged."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import fmean, stdev
from typing import Any, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bench.report.expected import Expectation
from bench.report.source import Source

Average = Literal["clients", "samples"]
"""``clients``: unweighted mean over clients with samples. ``samples``: pooled over all samples."""

SECTIONS = {"protocol": "protocol", "client": "client", "hyper": "method"}
"""Part of a spec -> the section of ``--set`` that changes it."""


@dataclass(frozen=True, order=True)
class Column:
    """Where a method is measured: a data set spread over clients."""

    dataset: str
    scenario: str
    clients: int


Settings = Mapping[str, Any]
"""Dotted key as in ``--set`` (``protocol.rounds``, ``method.mu``) -> value."""


def settings_of(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a spec (its JSON): everything but names and seed, flat."""
    return {
        f"{section}.{key}": value for part, section in SECTIONS.items() for key, value in sorted(spec[part].items())
    }


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))


def difference(settings: Settings, reference: Settings) -> str:
    """``key=value;...`` for what ``settings`` has other than ``reference``; empty where nothing."""
    return ";".join(
        f"{key}={_text(value)}"
        for key, value in sorted(settings.items())
        if key not in reference or reference[key] != value
    )


@dataclass(frozen=True)
class Aggregate:
    """A cell's accuracy in percent, one value a seed."""

    values: tuple[float, ...]

    @property
    def n(self) -> int:
        """Number of seeds."""
        return len(self.values)

    @property
    def mean(self) -> float:
        """Mean over seeds."""
        return fmean(self.values)

    @property
    def std(self) -> float | None:
        """Sample standard deviation over seeds (ddof 1); None for one seed."""
        return stdev(self.values) if self.n > 1 else None


@dataclass(frozen=True, eq=False)
class Group:
    """The runs of one spec over its seeds. ``setting`` says how it differs from the cell's usual spec."""

    column: Column
    method: str
    settings: Settings
    setting: str
    runs: pd.DataFrame = field(repr=False)

    @property
    def done(self) -> pd.DataFrame:
        """The runs that have numbers, by seed."""
        return self.runs[self.runs["state"] == "done"]

    @property
    def seeds(self) -> tuple[int, ...]:
        """Seeds that have numbers."""
        return tuple(int(seed) for seed in self.done["seed"])

    def failure(self) -> tuple[str, str]:
        """State and reason that stand for the runs without numbers: the most frequent, then by name."""
        lost = self.runs[self.runs["state"] != "done"]
        counts = lost["state"].value_counts()
        state = min(counts.index, key=lambda name: (-counts[name], name))
        first = lost[lost["state"] == state].iloc[0]
        lines = str(first["reason"]).strip().splitlines()
        reason = lines[0] if lines else ""
        return str(state), f"seed {first['seed']}: {reason}" if reason else f"seed {first['seed']}"


class Results:
    """Answers a study's questions from the database; every query is made once."""

    def __init__(self, source: Source, expected: Mapping[tuple[Column, str], Expectation]) -> None:
        self._source = source
        self._expected = expected
        self._values: dict[tuple[str, str], pd.DataFrame] = {}
        self.runs = self._load()
        self._groups = self._group()

    def _load(self) -> pd.DataFrame:
        runs = self._source.runs()
        runs = runs.sort_values(["dataset", "scenario", "clients", "method", "seed", "id"], ignore_index=True)
        return runs.assign(settings=[settings_of(json.loads(spec)) for spec in runs["spec"]])

    def _group(self) -> dict[tuple[Column, str], list[Group]]:
        found: dict[tuple[Column, str], list[Group]] = {}
        for (dataset, scenario, clients, method), cell in self.runs.groupby(
            ["dataset", "scenario", "clients", "method"], sort=True
        ):
            column = Column(str(dataset), str(scenario), int(clients))
            keys = [json.dumps(settings, sort_keys=True) for settings in cell["settings"]]
            parts = [part for _, part in cell.groupby(keys, sort=True)]
            parts.sort(key=len, reverse=True)
            reference = self.expected(column, str(method)).settings or parts[0]["settings"].iloc[0]
            groups = [
                Group(column, str(method), settings, difference(settings, reference), part)
                for part in parts
                for settings in [part["settings"].iloc[0]]
            ]
            found[column, str(method)] = sorted(groups, key=lambda group: group.setting)
        return found

    def expected(self, column: Column, method: str) -> Expectation:
        """What the grids plan for a cell; an empty expectation where they do not name it."""
        return self._expected.get((column, method), Expectation())

    @property
    def columns(self) -> set[Column]:
        """Where anything was run."""
        return {column for column, _ in self._groups}

    def methods(self, column: Column) -> list[str]:
        """Methods with a stored run or planned by a grid, sorted."""
        cells = {*self._groups, *self._expected}
        return sorted({method for where, method in cells if where == column})

    def groups(self, column: Column, method: str) -> list[Group]:
        """The specs that were run for a cell; the usual one, if it was, comes first."""
        return self._groups.get((column, method), [])

    def _results(self, stage: str, rule: str) -> pd.DataFrame:
        if (stage, rule) not in self._values:
            done = self.runs.loc[self.runs["state"] == "done", "id"]
            rows = self._source.client_results([int(run) for run in done], stage=stage, split="test", rule=rule)
            rows = rows[(rows["metric"] == "accuracy") & (rows["samples"] > 0)]
            self._values[stage, rule] = rows.set_index("run_id").sort_index(kind="stable")
        return self._values[stage, rule]

    def clients(self, group: Group, stage: str, rule: str) -> pd.DataFrame:
        """Test results of the group's runs: run_id, seed, client, value (0 to 1), samples."""
        seeds = dict(zip(group.done["id"], group.done["seed"], strict=True))
        rows = self._results(stage, rule)
        rows = rows[rows.index.isin(list(seeds))].reset_index()
        return rows.assign(seed=rows["run_id"].map(seeds)).sort_values(["seed", "client"], ignore_index=True)

    def aggregate(self, group: Group, stage: str, rule: str, average: Average) -> Aggregate | None:
        """Test accuracy of a group in percent; None where it has no such numbers."""
        rows = self.clients(group, stage, rule)
        if rows.empty:
            return None
        if average == "clients":
            values = rows.groupby("seed")["value"].mean()
        else:
            rows = rows.assign(correct=rows["value"] * rows["samples"])
            sums = rows.groupby("seed")[["correct", "samples"]].sum()
            values = sums["correct"] / sums["samples"]
        return Aggregate(tuple(100.0 * float(value) for value in values.sort_index()))

    def partition_spread(self, group: Group, stage: str, rule: str, average: Average) -> float:
        """Sample std of the mean over partitions (points): runs equal to ``group`` but for the partition seed.

        0 where there is only one partition.
        """
        fixed = {key: value for key, value in group.settings.items() if key != "protocol.partition_seed"}
        means = [
            found.mean
            for other in self.groups(group.column, group.method)
            if fixed == {key: value for key, value in other.settings.items() if key != "protocol.partition_seed"}
            and (found := self.aggregate(other, stage, rule, average)) is not None
        ]
        return stdev(means) if len(means) > 1 else 0.0

    def curves(self, group: Group, stage: str, average: Average) -> NDArray[np.float64]:
        """Test accuracy in percent ``[seeds, rows]`` of the runs that keep a curve, cut to the shortest."""
        results = self._results(stage, "last")
        curves = []
        for run in group.done["id"]:
            samples = results.loc[[run]] if run in results.index else results.iloc[:0]
            if samples.empty:
                continue
            clients, sizes = samples["client"].to_numpy(), samples["samples"].to_numpy()
            try:
                correct = self._source.curve(int(run), stage, "test")[:, clients]
            except KeyError:
                continue
            share = (correct / sizes).mean(axis=1) if average == "clients" else correct.sum(axis=1) / sizes.sum()
            curves.append(100.0 * share)
        if not curves:
            return np.zeros((0, 0))
        rows = min(len(curve) for curve in curves)
        return np.stack([curve[:rows] for curve in curves])

    def environments(self, groups: list[Group]) -> list[dict[str, Any]]:
        """Descriptions of the environments in which the groups' runs were made, by id."""
        used = {int(env) for group in groups for env in group.done["environment_id"].dropna()}
        rows = self._source.environments().sort_values("id")
        return [json.loads(row.description) for row in rows.itertuples() if int(row.id) in used]
