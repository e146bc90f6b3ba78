"""The site's data for programs: ``data/leaderboard.json`` and ``data/cells.csv``."""

from __future__ import annotations

import json
from pathlib import Path

from bench import __version__
from bench.csv_files import write_csv
from bench.frames.ranking import RANKS
from bench.leaderboard.boards import Boards
from bench.pages.templating import records

VERSION = 1
"""Version of the document; it grows when a field goes or changes its meaning, not when one is added."""


def write(folder: Path, boards: Boards, runs: int) -> None:
    """Write the document, and the cells as CSV, into ``folder``."""
    table = boards.table
    studies = [
        {
            "name": entry.study.name,
            "title": entry.study.title,
            "ranking": records(entry.ranking.ranks[list(RANKS)[1:]]) if entry.ranking else [],
            "verdicts": {paper: dict(sorted(counts.items())) for paper, counts in entry.counts.items()},
            "boards": list(entry.boards),
        }
        for entry in boards.studies
    ]
    document = {
        "format": "bench leaderboard",
        "version": VERSION,
        "suite": __version__,
        "runs": runs,
        "metric": boards.results.metric,
        "studies": studies,
        "cells": records(table.round(4)),
    }
    text = json.dumps(document, allow_nan=False, separators=(",", ":"))
    (folder / "leaderboard.json").write_text(text + "\n", encoding="ascii", newline="\n")
    write_csv(folder / "cells.csv", table)
