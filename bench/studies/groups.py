"""The runs of one spec over its seeds, and what they average to."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from statistics import fmean, stdev
from typing import Literal

import numpy as np

from bench.engine import NUMERICS
from bench.engine.methods import METHODS
from bench.studies.settings import Column, Settings
from bench.studies.source import Runs
from bench.studies.tuned import SearchSummary, mark

Average = Literal["clients", "samples"]
"""``clients``: unweighted mean over clients with samples. ``samples``: pooled over all samples."""


@dataclass(frozen=True)
class Aggregate:
    """What a cell measures (in a main table its accuracy in percent), one value a seed."""

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
    """The runs of one spec over its seeds.

    ``setting`` says how it differs from the cell's usual spec, ``search`` which search found it, if one did.
    """

    column: Column
    method: str
    settings: Settings
    setting: str
    runs: Runs = field(repr=False)
    search: SearchSummary | None = None

    @cached_property
    def done(self) -> Runs:
        """The runs that have numbers, by seed."""
        is_done = self.runs["state"] == "done"
        return self.runs if is_done.all() else self.runs.take(is_done)

    @cached_property
    def seeds(self) -> tuple[int, ...]:
        """Seeds that have numbers."""
        return tuple(self.done["seed"].tolist())

    @cached_property
    def trains(self) -> bool:
        """Whether the method trains anything, as every method does of which nothing is known."""
        kind = METHODS.all().get(self.method)
        return kind is None or kind.trains

    @property
    def older_numerics(self) -> str:
        """Which runs were made by code of older numbers; empty where none was, or the method is unknown."""
        kind = METHODS.all().get(self.method)
        notes = []
        for name, current in (("method", kind.numerics if kind else 0), ("engine", NUMERICS)):
            versions = self.done[f"{name}_numerics"]
            if len(versions) and versions.min() < current:
                notes.append(f"{name} numerics {versions.min()}, now {current}")
        return " and ".join(notes)

    def common_runs(self, other: Group) -> Group:
        """Those of the runs that have numbers for the seeds of another group, on the same clients."""
        other_samples = set(other._samples)
        mask = [key in other_samples for key in self._samples]
        return self if all(mask) and self.done is self.runs else replace(self, runs=self.done.take(mask))

    @cached_property
    def _samples(self) -> list[tuple[int, str]]:
        """Seed and clients of the runs that have numbers."""
        return list(zip(self.seeds, self.done["partition_hash"], strict=True))

    @cached_property
    def seconds(self) -> float:
        """Seconds of a run, median over those with numbers."""
        return float(np.median(self.done["seconds_total"]))

    @cached_property
    def megabytes(self) -> float:
        """Megabytes that clients and server exchange in a run, mean over those with numbers."""
        return float((self.done["bytes_up"] + self.done["bytes_down"]).mean()) / 1e6

    @cached_property
    def peak_mib(self) -> float:
        """Peak memory of a run in MiB, mean over those with numbers."""
        return float(self.done["peak_memory"].mean()) / 2**20

    @property
    def own_seeds(self) -> tuple[int, ...]:
        """Seeds of the runs that are the user's, made here and neither shipped nor imported."""
        places = zip(self.runs["seed"].tolist(), self.runs["origin"], self.runs["bundle"], strict=True)
        return tuple(seed for seed, origin, bundle in places if not (origin or bundle))

    @property
    def is_own(self) -> bool:
        """Whether all runs are the user's."""
        return len(self.own_seeds) == len(self.runs)

    @cached_property
    def origin(self) -> str:
        """Where the runs come from: ``shipped: NAME``, ``own``, ``bundle NAME: verified``."""
        origins = {
            f"bundle {bundle}: {state}" if bundle else f"shipped: {origin}" if origin else "own"
            for bundle, state, origin in zip(
                self.runs["bundle"], self.runs["bundle_state"], self.runs["origin"], strict=True
            )
        }
        return "; ".join(sorted(origins))

    def failure(self) -> tuple[str, str]:
        """State and reason that stand for the runs without numbers: the most frequent, then by name."""
        states = self.runs["state"].tolist()
        counts = Counter(state for state in states if state != "done")
        state = min(counts, key=lambda name: (-counts[name], name))
        first_row = states.index(state)
        seed, lines = self.runs["seed"][first_row], str(self.runs["reason"][first_row]).strip().splitlines()
        return state, f"seed {seed}: {lines[0]}" if lines else f"seed {seed}"


def with_marks(cells: Mapping[tuple[Column, str], Sequence[Group]]) -> dict[tuple[Column, str], list[Group]]:
    """The cells with their tuned groups' settings marked so. Those of one method, one total and one origin
    have one mark, and with it one row over all columns, also where some of the studies used fewer trials.
    """
    counts: dict[tuple[str, int, bool], set[int]] = defaultdict(set)
    for (_, method), groups in cells.items():
        for group in groups:
            if group.search:
                counts[method, group.search.trials, group.search.is_own] |= group.search.counts

    def with_mark(group: Group) -> Group:
        if group.search is None:
            return group
        trial_counts = counts[group.method, group.search.trials, group.search.is_own]
        search = replace(group.search, counts=frozenset(trial_counts))
        return replace(group, setting=";".join(filter(None, (mark(search), group.setting))), search=search)

    return {key: [with_mark(group) for group in groups] for key, groups in cells.items()}
