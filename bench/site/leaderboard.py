"""The leaderboard's folder: a front page, and pages of boards, methods, data sets and single runs."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from bench import __version__
from bench.csv_files import write_csv
from bench.dataset import DATASETS
from bench.engine.method import Method
from bench.frames.graded_cells import WRITTEN
from bench.frames.ranking import RANKS
from bench.metric_names import TITLES
from bench.replacement import replacing_folder
from bench.report.dataset_documents import LEGEND
from bench.report.grades import GRADES
from bench.report.ranking import pairs_record
from bench.site import folder, run_shards
from bench.site.boards import OTHER_METRICS, Boards, boards, coverage, dataset_title
from bench.site.datasets import judged_tables
from bench.site.folder import board_page, dataset_page, method_page, pairs_file, run_page
from bench.site.methods import MethodDescription, about, other_runs
from bench.site.pictures import rankings
from bench.site.templating import Pages, Section, records
from bench.store.tables import Tables
from bench.studies.study import Study
from bench.studies.wording import signed, with_std

EXPORTS = ("data/leaderboard.json", "data/cells.csv")
"""The site's data for programs."""

VERSION = 1
"""Version of the first of them; it grows when a field goes or changes its meaning, not when one is added."""

Entries = Mapping[Hashable, dict[str, Any]]
"""The rows of all boards by their labels, in the order of the boards."""


class Site(NamedTuple):
    """What was built: the number of runs, files and bytes."""

    runs: int
    files: int
    bytes: int


def build(
    source: Tables,
    studies: Mapping[str, type[Study]],
    methods: Mapping[str, type[Method]],
    out: Path,
) -> Site:
    """Write the site into ``out``, which is replaced whole; unchanged results give the same bytes.

    Raises:
        RequestError: no runs, or ``out`` holds other files than a site's or cannot be written.
    """
    folder.check(out, folder.LEADERBOARD)
    suite = {name for name, cls in methods.items() if cls.__module__.startswith("bench.methods.")}
    all_boards = boards(source, studies, suite)
    with replacing_folder(out) as site:
        (site / "data").mkdir()
        runs = _write(source, all_boards, methods, site)
        folder.seal(site, folder.LEADERBOARD)
        sizes = [path.stat().st_size for path in site.rglob("*") if path.is_file()]
    return Site(runs, len(sizes), sum(sizes))


def _write(source: Tables, all_boards: Boards, methods: Mapping[str, type[Method]], site: Path) -> int:
    """Write all files; the number of runs."""
    pages = Pages(
        site,
        ["board.js"],
        site="leaderboard",
        links={f"{folder.INDEX}#{place}": place.capitalize() for place in ("studies", "methods")}
        | {f"{folder.INDEX}#datasets": "Data sets"},
        files=EXPORTS,
        board_page=board_page,
        dataset_page=dataset_page,
        method_page=method_page,
        pairs_file=pairs_file,
        run_page=run_page,
        coverage=coverage,
        dataset_title=dataset_title,
        in_order=_in_order,
        signed=signed,
        with_std=with_std,
    )
    all_rows = pd.concat([rows for entry in all_boards.studies for rows in entry.boards.values()])
    entries: Entries = dict(zip(all_rows.index, records(all_rows), strict=True))
    for entry in all_boards.studies:
        for dataset, rows in entry.boards.items():
            _write_board(pages, site, entry, dataset, rows, entries)
    descriptions = _descriptions(all_boards, all_rows, methods)
    _write_methods(pages, all_boards, entries, descriptions)
    for entry in all_boards.studies:
        if entry.ranking:
            write_csv(site / pairs_file(entry.name), pairs_record(entry.ranking))
    datasets = _write_datasets(pages, all_boards)
    titles = {name: description.title for name, description in descriptions.items()}
    runs = run_shards.write(source, site / "data", titles, _boards_by_run(entries))
    _write_exports(site, all_boards, runs)
    pages.write("run.html", "run.html.j2")
    pages.write(
        folder.INDEX,
        "leaderboard.html.j2",
        headline=all_boards.studies[0].sentences,
        sections=[
            section._replace(sentences=[]) if place == 0 else section  # the page begins with them
            for place, section in enumerate(all_boards.studies)
            if section.measured
        ],
        empty=[section for section in all_boards.studies if not section.measured],
        measured=sum(section.measured for section in all_boards.studies),
        methods=titles,
        datasets=datasets,
        states=sorted(Counter(all_boards.results.runs["state"]).items()),
        runs=runs,
        elsewhere=all_boards.runs_outside_tables,
    )
    return runs


def _write_board(
    pages: Pages, site: Path, entry: Section, dataset: str, rows: pd.DataFrame, entries: Entries
) -> None:
    """A board as a page and as CSV."""
    address = board_page(entry.name, dataset)
    metrics = [metric for metric in OTHER_METRICS if rows[metric].notna().any()]
    columns = [*WRITTEN, "group", "trust", *metrics]
    write_csv(site / "data" / f"{Path(address).stem}.csv", rows[columns])
    pages.write(
        address,
        "board.html.j2",
        study=entry.study,
        dataset=dataset,
        title=dataset_title(dataset),
        name=Path(address).stem,
        rows=rows,
        rankings=list(rankings(rows, entries)),
        waiting=entry.waiting,
        metric=metrics[0] if metrics else None,
        titles=TITLES,
    )


def _descriptions(
    all_boards: Boards, rows: pd.DataFrame, methods: Mapping[str, type[Method]]
) -> dict[str, MethodDescription]:
    """Every method by name; one that has no title anywhere else goes by that of its row in a table."""
    usual_rows = rows[rows["usual"] & (rows["title"] != "")].drop_duplicates("method")
    row_titles = dict(zip(usual_rows["method"], usual_rows["title"], strict=True))
    names = {*methods, *rows["method"], *all_boards.results.runs["method"]}
    titles = all_boards.method_titles
    return {
        name: about(name, methods, titles.get(name) or ("" if name in methods else row_titles.get(name, "")))
        for name in sorted(names)
    }


def _write_methods(
    pages: Pages, all_boards: Boards, entries: Entries, descriptions: Mapping[str, MethodDescription]
) -> None:
    """The pages of all methods."""
    rows_by_method = defaultdict(list)
    for row in entries.values():
        rows_by_method[row["method"]].append(row)
    shown_hashes = {run.spec_hash for row in entries.values() for run in row["runs"]}
    unshown_runs = other_runs(all_boards.results.runs, shown_hashes)
    rankings = [entry.ranking for entry in all_boards.studies if entry.ranking]
    for name, description in descriptions.items():
        pages.write(
            method_page(name),
            "method.html.j2",
            method=description,
            base=descriptions.get(description.preset_of),
            rows=rows_by_method[name],
            beside=unshown_runs.get(name, []),
            studies=[ranking.study for ranking in rankings if name in set(ranking.ranks["method"])],
        )


def _write_datasets(pages: Pages, all_boards: Boards) -> dict[str, str]:
    """The pages of all data sets that a board or a run has; their titles by name."""
    studies = all_boards.studies
    names = {name for entry in studies for name in entry.boards} | {*all_boards.results.runs["dataset"]}
    for name in sorted(names):
        kind = DATASETS.all().get(name)
        pages.write(
            dataset_page(name),
            "dataset.html.j2",
            name=name,
            title=dataset_title(name),
            kind=kind,
            boards=[(entry.study, entry.boards[name]) for entry in studies if name in entry.boards],
            tables=list(judged_tables(name, kind, [entry.study for entry in studies if entry.study])),
            legend=LEGEND,
        )
    return {name: dataset_title(name) for name in sorted(names)}


def _boards_by_run(entries: Entries) -> dict[str, list[dict[str, str]]]:
    """Spec hash -> the rows that a run stands in, main tables first."""
    boards: dict[str, list[dict[str, str]]] = defaultdict(list)
    for row in sorted(entries.values(), key=lambda row: not row["usual"]):
        board = {
            "address": f"{row['board']}#{row['anchor']}",
            "title": f"{row['study_title']}: {row['where']}",
            "stage": row["stage"],
            "rule": row["rule"],
        }
        for run in row["runs"]:
            boards[run.spec_hash].append(board)
    return boards


def _write_exports(site: Path, all_boards: Boards, runs: int) -> None:
    """The cells that verdicts rest on as CSV, and with studies and rankings as JSON."""
    cells = all_boards.cells.loc[all_boards.cells["primary"], WRITTEN]
    studies = [
        {
            "name": entry.name,
            "title": entry.title,
            "ranking": records(entry.ranking.ranks[list(RANKS)[1:]]) if entry.ranking else [],
            "verdicts": {paper: dict(sorted(counts.items())) for paper, counts in entry.counts.items()},
            "boards": list(entry.boards),
        }
        for entry in all_boards.studies
    ]
    document: dict[str, Any] = {
        "format": "bench leaderboard",
        "version": VERSION,
        "suite": __version__,
        "runs": runs,
        "metric": all_boards.results.metric,
        "studies": studies,
        "cells": records(cells.round(4)),
    }
    text = json.dumps(document, allow_nan=False, separators=(",", ":"))
    as_json, as_csv = (site / name for name in EXPORTS)
    as_json.write_text(text + "\n", encoding="ascii", newline="\n")
    write_csv(as_csv, cells)


def _in_order(groups: Iterable[Iterable[str]]) -> list[str]:
    """All verdicts in some groups: grades first, best first, then states by name."""
    names = {name for group in groups for name in group}
    return [*filter(names.__contains__, GRADES), *sorted(names.difference(GRADES))]
