"""What a study's tables consist of: rows, columns, readings and the published tables beside them."""

from __future__ import annotations

from dataclasses import dataclass

from bench.report.settings import Column


@dataclass(frozen=True)
class Row:
    """A row of a table.

    ``reads`` names the method whose runs the row shows, where that is not ``method`` itself;
    ``stage`` fixes the stage of the primary comparison for this row; ``published`` is the method's
    name in the published numbers where that differs; ``ranked`` False keeps a reference that is
    no competitor out of best and second best.
    """

    method: str
    title: str
    reads: str = ""
    stage: str = ""
    published: str = ""
    ranked: bool = True

    @property
    def runs(self) -> str:
        """The method whose runs the row shows."""
        return self.reads or self.method

    @property
    def published_name(self) -> str:
        """The method's name in the published numbers."""
        return self.published or self.method


@dataclass(frozen=True)
class Reading:
    """Which of a run's numbers is read: a stage and a selection rule."""

    stage: str
    rule: str


@dataclass(frozen=True)
class Target:
    """Published numbers that a table is set beside: a table of a paper, and its name here."""

    label: str
    paper: str
    table: str


@dataclass(frozen=True)
class PaperTable:
    """A table of the study: file name, title, published numbers (the first is the main one), columns."""

    name: str
    title: str
    targets: tuple[Target, ...]
    columns: tuple[Column, ...]
