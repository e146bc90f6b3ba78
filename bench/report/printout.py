"""What a terminal shows of a report, as plain values: kept with the report, so that it can be shown again."""

from __future__ import annotations

from dataclasses import dataclass, field

from bench.errors import unknown
from bench.report.table import Table
from bench.studies.verdicts import AGREEING


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


@dataclass(frozen=True)
class PrintedDocument:
    """A document's tables for 80 columns and its notes; no tables where nothing was run."""

    title: str
    tables: tuple[Table, ...]
    notes: tuple[str, ...]
    short: bool


@dataclass(frozen=True)
class PrintedStudy:
    """A study's two sentences, its scores, and its documents by name."""

    title: str
    runs: int
    sentences: tuple[str, ...]
    scores: tuple[Score, ...]
    documents: dict[str, PrintedDocument]


@dataclass(frozen=True)
class Printout:
    """All that is printed. ``unrun`` names studies and experiments left out because nothing of them was run;
    ``elsewhere`` describes runs that no study shows; ``shipped`` counts runs by bundle.
    """

    studies: dict[str, PrintedStudy]
    unrun: tuple[str, ...] = ()
    elsewhere: tuple[str, ...] = ()
    shipped: dict[str, int] = field(default_factory=dict)
    figures: int = 0

    def document(self, name: str) -> PrintedDocument:
        """A document by its name, ``fedsheafhn_table1`` or ``fedsheafhn/table1``.

        Raises:
            RequestError: there is none; the message has the nearest name.
        """
        documents = {key: value for study in self.studies.values() for key, value in study.documents.items()}
        key = name.replace("/", "_", 1)
        if key not in documents:
            raise unknown("table", name, documents)
        return documents[key]
