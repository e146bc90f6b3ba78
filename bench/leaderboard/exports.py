"""The site's data for programs: ``data/leaderboard.json`` with its schema, and ``data/cells.csv``."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import BaseModel, Field, create_model

from bench import __version__
from bench.leaderboard.boards import Boards
from bench.pages.templating import records
from bench.studies import frame
from bench.studies.ranking import TABLE

VERSION = 1
"""Version of the document; it grows when a field goes or changes its meaning, not when one is added."""

_PYTHON = {"string": str, "int64": int, "Int64": int, "float64": float}


def _row(name: str, types: Mapping[str, str], meaning: str) -> type[BaseModel]:
    """The schema of a row of a frame."""
    fields: dict[str, Any] = {column: (_PYTHON[kind] | None, None) for column, kind in types.items()}
    return create_model(name, __doc__=meaning, **fields)


Cell = _row(
    "Cell",
    frame.TYPES,
    "One number of a study's tables beside one published value; scores in percent.",
)
Rank = _row(
    "Rank",
    TABLE,
    "A method over the tasks of a study: mean rank with its 95 % interval, and its group of ties.",
)


class StudyRecord(BaseModel):
    """A study: its ranking, and how many of each paper's published values have which verdict."""

    name: str
    title: str
    ranking: list[Rank]  # type: ignore[valid-type]
    verdicts: dict[str, dict[str, int]]
    boards: list[str]


class Leaderboard(BaseModel):
    """All that the site shows of studies and cells."""

    format: str = "bench leaderboard"
    version: int = Field(description="grows when a field goes or changes its meaning")
    suite: str = Field(description="version of the suite")
    runs: int
    metric: str = Field(description="what clients are scored by; verdicts are of accuracy alone")
    studies: list[StudyRecord]
    cells: list[Cell]  # type: ignore[valid-type]


def write(folder: Path, boards: Boards, table: pd.DataFrame, runs: int) -> None:
    """Write the document, its JSON schema and the ``table`` of the cells as CSV into ``folder``."""
    studies = [
        StudyRecord(
            name=entry.study.name,
            title=entry.study.title,
            ranking=[Rank(**row) for row in records(entry.ranking.table)] if entry.ranking else [],
            verdicts={paper: dict(sorted(counts.items())) for paper, counts in entry.findings.counts.items()},
            boards=list(entry.boards),
        )
        for entry in boards.studies
    ]
    document = Leaderboard(
        version=VERSION,
        suite=__version__,
        runs=runs,
        metric=boards.results.metric,
        studies=studies,
        cells=records(table.round(4)),
    )
    _write(folder / "leaderboard.json", document.model_dump())
    _write(folder / "leaderboard.schema.json", Leaderboard.model_json_schema())
    frame.write(folder / "cells.csv", table)


def _write(path: Path, document: dict[str, Any]) -> None:
    text = json.dumps(document, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    path.write_text(text + "\n", encoding="ascii", newline="\n")
