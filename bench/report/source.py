"""What a report reads: a result database, results that come with the suite, or both as one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import compress, count
from typing import Any, Protocol, Unpack

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from bench.spec import RunSpec
from bench.store.filters import Readings, filter_runs


class Source(Protocol):
    """A result database; ``bench.store.Store`` and ``bench.store.bundle.Bundle`` are some."""

    def runs(self, **filters: Any) -> pd.DataFrame:
        """One row a run, every column of ``runs``."""

    def client_results(self, run_ids: Iterable[int], **only: Unpack[Readings]) -> pd.DataFrame:
        """Columns run_id, client, stage, split, rule, metric, value, samples."""

    def counts(self, run_ids: Iterable[int]) -> pd.DataFrame:
        """As ``bench.store.queries.Queries.counts``."""

    def curves(self, run_ids: Iterable[int], split: str) -> dict[tuple[int, str], NDArray[np.int32]]:
        """Run and stage -> correct predictions ``[rows, clients]``, of those runs that have a curve."""

    def confusions(self, run_ids: Iterable[int]) -> dict[tuple[int, str, str], NDArray[np.int32]]:
        """As ``bench.store.queries.Queries.confusions``."""

    def artefact(self, run_id: int, name: str) -> NDArray[Any]:
        """An array kept with a run; raises ``KeyError`` where there is none."""

    def environments(self) -> pd.DataFrame:
        """One row an environment: id, hash, description (JSON)."""


class Runs:
    """Rows of a table of runs, column by column. A report takes thousands of small parts of one table, of
    which pandas would make a frame each in a hundred times as long.
    """

    def __init__(self, columns: Mapping[str, NDArray[Any]], rows: NDArray[np.intp]) -> None:
        self._columns, self._rows = columns, rows

    @classmethod
    def of(cls, table: pd.DataFrame) -> Runs:
        """All rows of a table."""
        numbers = set(table.select_dtypes("number").columns)
        columns = {
            name: column.to_numpy() if name in numbers else column.to_numpy(object)
            for name, column in table.items()
        }
        return cls(columns, np.arange(len(table)))  # type: ignore[arg-type]

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self._columns[name][self._rows]

    def take(self, which: NDArray[np.bool_] | Sequence[int]) -> Runs:
        """Those of the rows that a mask or their places among these name."""
        return Runs(self._columns, self._rows[np.asarray(which, None if len(which) else np.intp)])


OWN = ""
"""``origin`` of the runs of the user's own database."""


class Merged:
    """Several sources as one: the user's own database first, then results that come with the suite.

    A cell (a spec apart from its seed, and from a partition seed that equals it) of which the own
    database has a run made here is taken from there alone: own and shipped seeds are never mixed.
    Runs there that were imported, or could not start for want of data, stand back behind shipped
    ones. A spec that several bundles hold is taken from the first of them. ``runs``
    has the column ``origin``: ``""`` for the own database, else the bundle's name. The own runs keep
    their ids.
    """

    def __init__(self, own: Source | None, shipped: Sequence[tuple[str, Source]]) -> None:
        self._sources: list[Source] = [] if own is None else [own]
        self._sources += [source for _, source in shipped]
        origins = ([] if own is None else [OWN]) + [name for name, _ in shipped]
        self._environments, numbers = _environments(self._sources)
        frames = [source.runs() for source in self._sources]
        chosen = _choose(frames) if own is not None else _choose([None, *frames])
        parts = [
            runs.assign(environment_id=runs["environment_id"].map(numbers[place]), origin=origin, place=place)
            for place, (origin, runs) in enumerate(zip(origins, chosen, strict=True))
        ]
        filled = [part for part in parts if len(part)] or parts[:1]
        whole = pd.concat(filled, ignore_index=True)
        kept: list[int] = whole["id"].tolist()
        places: list[int] = whole.pop("place").tolist()
        mine = (whole["origin"] == OWN).tolist()
        fresh = count(max(compress(kept, mine), default=0) + 1)
        ids = [run if own_run else next(fresh) for run, own_run in zip(kept, mine, strict=True)]
        self._home = dict(zip(ids, zip(places, kept, strict=True), strict=True))
        # Reports take many small parts of this frame: of plain objects in one block that takes a third of
        # the time.
        texts: list[str] = whole.select_dtypes("string").columns.tolist()
        self._runs: pd.DataFrame = (
            whole.assign(id=pd.array(ids, dtype="int64")).astype(dict.fromkeys(texts, object)).copy()
        )

    def runs(self, **filters: Any) -> pd.DataFrame:
        """One row a run, every column of ``runs`` and ``origin``, ordered by id; filtered alike."""
        return filter_runs(self._runs, filters)

    def client_results(self, run_ids: Iterable[int], **only: Unpack[Readings]) -> pd.DataFrame:
        """As ``Store.client_results``."""
        return self._joined(run_ids, lambda source, ids: source.client_results(ids, **only))

    def counts(self, run_ids: Iterable[int]) -> pd.DataFrame:
        """As ``Queries.counts``, ordered so within each source."""
        return self._joined(run_ids, lambda source, ids: source.counts(ids))

    def _joined(
        self, run_ids: Iterable[int], answer: Callable[[Source, Iterable[int]], pd.DataFrame]
    ) -> pd.DataFrame:
        """What every source answers for its runs among these, under the ids here."""
        parts = []
        for place, numbers in self._kept_as(run_ids).items():
            rows = answer(self._sources[place], numbers)
            parts.append(rows.assign(run_id=rows["run_id"].map(numbers)))
        filled = [part for part in parts if len(part)] or parts[:1]
        return pd.concat(filled, ignore_index=True)

    def curves(self, run_ids: Iterable[int], split: str) -> dict[tuple[int, str], NDArray[np.int32]]:
        """As ``Store.curves``."""
        return {
            (numbers[run], stage): counts
            for place, numbers in self._kept_as(run_ids).items()
            for (run, stage), counts in self._sources[place].curves(numbers, split).items()
        }

    def confusions(self, run_ids: Iterable[int]) -> dict[tuple[int, str, str], NDArray[np.int32]]:
        """As ``Store.confusions``."""
        return {
            (numbers[run], stage, rule): counts
            for place, numbers in self._kept_as(run_ids).items()
            for (run, stage, rule), counts in self._sources[place].confusions(numbers).items()
        }

    def _kept_as(self, run_ids: Iterable[int]) -> dict[int, dict[int, int]]:
        """For each source, its ids of these runs -> those here."""
        wanted: dict[int, dict[int, int]] = {place: {} for place in range(len(self._sources))}
        for number in run_ids:
            if int(number) in self._home:
                place, run = self._home[int(number)]
                wanted[place][run] = int(number)
        return wanted

    def artefact(self, run_id: int, name: str) -> NDArray[Any]:
        """An array kept with a run; raises ``KeyError`` where there is none."""
        place, run = self._home[int(run_id)]
        return self._sources[place].artefact(run, name)

    def environments(self) -> pd.DataFrame:
        """One row an environment: id, hash, description (JSON); each once."""
        return self._environments.copy()


def _choose(frames: Sequence[pd.DataFrame | None]) -> list[pd.DataFrame]:
    """The runs to show, of the own database (None: there is none) and of each bundle; see ``Merged``."""
    own, *shipped = frames
    mine = set() if own is None else set().union(*_cells(own[_made_here(own)]))
    chosen = []
    taken: set[str] = set()
    for runs in shipped:
        assert runs is not None
        cells = _cells(runs) if mine else [mine] * len(runs)
        free = [
            spec not in taken and mine.isdisjoint(ours)
            for spec, ours in zip(runs["spec"], cells, strict=True)
        ]
        chosen.append(runs[np.array(free, bool)])
        taken.update(chosen[-1]["spec"])
    if own is None:
        return chosen
    theirs = {cell for runs in chosen for cells in _cells(runs) for cell in cells}
    kept = _made_here(own) | np.array([theirs.isdisjoint(cells) for cells in _cells(own)], bool)
    return [own[kept], *chosen]


def _made_here(runs: pd.DataFrame) -> NDArray[np.bool_]:
    """Which runs of the own database were made here; a failed one was, one without data was not."""
    made: NDArray[np.bool_] = ((runs["bundle"] == "") & (runs["state"] != "no_data")).to_numpy(bool)
    return made


def _environments(sources: Sequence[Source]) -> tuple[pd.DataFrame, list[dict[int, int]]]:
    """Every environment once, and for each source its ids -> the new ones."""
    found: dict[str, tuple[int, str]] = {}
    numbers = []
    for source in sources:
        own = {}
        for number, digest, text in source.environments()[["id", "hash", "description"]].itertuples(
            index=False
        ):
            own[int(number)] = found.setdefault(digest, (len(found) + 1, text))[0]
        numbers.append(own)
    rows = [{"id": number, "hash": digest, "description": text} for digest, (number, text) in found.items()]
    return pd.DataFrame(rows, columns=["id", "hash", "description"]), numbers


def spec_by_cell(runs: pd.DataFrame) -> dict[str, RunSpec]:
    """Cell -> the spec of one of its runs, which differ in their seed alone."""
    one = runs.drop_duplicates("cell")
    return {
        cell: RunSpec.model_validate_json(text) for cell, text in zip(one["cell"], one["spec"], strict=True)
    }


def _cells(runs: pd.DataFrame) -> list[set[str]]:
    """What every run is a sample of: its cell, and that on any partition where it draws its own."""
    specs = spec_by_cell(runs)
    seeds = {cell: spec.protocol.partition_seed for cell, spec in specs.items()}
    anywhere = {cell: spec.cell_on_any_partition for cell, spec in specs.items()}
    return [
        {cell, anywhere[cell]} if seeds[cell] == seed else {cell}
        for cell, seed in zip(runs["cell"], runs["seed"].tolist(), strict=True)
    ]
