"""Documents: what a report says of each table of a study's paper, and what all of them come to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

import pandas as pd

from bench.figures.panels import Figure
from bench.report.table import Table
from bench.studies.cells import Cell, groups_of
from bench.studies.ranking import Ranking
from bench.studies.source import OWN
from bench.studies.study import Study
from bench.studies.verdicts import AGREEING


@dataclass(frozen=True, eq=False)
class Document:
    """Everything about one table of a study's paper: its views, its caption and notes, its cells and figures.
    ``name`` and ``title`` are those that it has in the study.

    ``views`` are written everywhere, ``details`` are folded on the page and not in LaTeX, as are the lines
    of ``fine_print``; ``printed`` are the tables of a terminal, none where nothing was run, and ``summary``
    says in a sentence what there is to see. ``primary_cells`` are those that verdicts rest on; ``cells`` are
    those under every reading. ``records`` are the numbers behind the tables of a statistic, by the name of
    their CSV file; fractions get four decimals there, texts stand as they are.
    """

    study: Study
    name: str
    title: str
    summary: str
    caption: tuple[str, ...]
    views: tuple[Table, ...]
    printed: tuple[Table, ...]
    cells: tuple[Cell, ...] = ()
    primary_cells: tuple[Cell, ...] = ()
    details: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()
    fine_print: tuple[str, ...] = ()
    figures: tuple[Figure, ...] = ()
    records: Mapping[str, pd.DataFrame] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Its name among those of all studies: ``fedsheafhn_table1``."""
        return f"{self.study.name}_{self.name}"

    @property
    def full_title(self) -> str:
        """Its title among those of all studies."""
        return f"{self.study.title}: {self.title}"

    @property
    def folder(self) -> PurePosixPath:
        """Where its files lie in the report: ``fedsheafhn/table1``."""
        return PurePosixPath(self.study.name, self.name)

    def stem(self, figure: Figure) -> PurePosixPath:
        """Where a figure's files lie in the report, whose endings it lacks."""
        return self.folder / figure.name.removeprefix(f"{self.key}_")


@dataclass(frozen=True)
class Score:
    """How the values came out that the paper of a ``title`` prints: ``counts`` of every verdict of measured
    cells, best first.
    """

    title: str
    counts: tuple[tuple[str, int], ...]
    published: int

    @property
    def measured(self) -> int:
        """Published values that were measured."""
        return sum(count for _, count in self.counts)

    @property
    def agreeing(self) -> int:
        """Published values that are reproduced or compatible."""
        return sum(count for verdict, count in self.counts if verdict in AGREEING)


@dataclass(frozen=True, eq=False)
class Part:
    """A study in a report. ``ranking`` is None where no two methods can be ranked.

    ``maps`` are the verdicts of the documents in which methods compete with each other, by their names.
    """

    study: str
    title: str
    sentences: tuple[str, ...]
    scores: tuple[Score, ...]
    ranking: Ranking | None
    maps: dict[str, Table]
    documents: Sequence[Document]

    @property
    def measured_share(self) -> float:
        """The share of its papers' published values that was measured."""
        published = sum(score.published for score in self.scores)
        return sum(score.measured for score in self.scores) / published if published else 0.0


@dataclass(frozen=True, eq=False)
class Report:
    """A part for each study. ``unrun`` names studies and experiments left out because nothing of them was
    run; ``elsewhere`` describes runs that no study shows.
    """

    parts: tuple[Part, ...]
    unrun: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()

    @property
    def documents(self) -> tuple[Document, ...]:
        """The documents of all studies."""
        return tuple(document for part in self.parts for document in part.documents)

    @property
    def shipped(self) -> dict[str, int]:
        """The number of runs shown by bundle."""
        return Counter(sorted(origin for origin in run_origins(self.documents).values() if origin != OWN))


def run_origins(documents: Iterable[Document]) -> dict[int, str]:
    """The bundle of every run in the cells shown, by its id; ``OWN`` for the user's own."""
    return {
        run: origin
        for group in groups_of(cell for document in documents for cell in document.cells)
        for run, origin in zip(group.runs["id"].tolist(), group.runs["origin"].tolist(), strict=True)
    }
