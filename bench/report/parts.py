"""What a report has of a study: its documents, and what they come to in sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bench.report.document import Document
from bench.report.printout import Score
from bench.report.table import Table
from bench.studies.ranking import Ranking


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
