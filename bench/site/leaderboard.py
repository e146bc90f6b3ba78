"""The leaderboard's folder: a front page, and pages of boards, methods, data sets and single runs."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from bench import __version__
from bench.csv_files import write_csv
from bench.dataset import DATASETS
from bench.engine.method import Method
from bench.frames.graded_cells import WRITTEN, Results, collect
from bench.frames.ranking import RANKS, Ranking, rank
from bench.frames.verdicts import STATES
from bench.metric_names import TITLES
from bench.replacement import replacing_folder
from bench.report import score
from bench.report.dataset_documents import LEGEND, judged_statistics
from bench.report.document import Score
from bench.report.grades import GRADES
from bench.report.ranking import pairs_record
from bench.site import folder, run_shards
from bench.site.boards import (
    OTHER_METRICS,
    board_rows,
    coverage,
    dataset_title,
    guests,
    rankings_of,
    shown_cells,
)
from bench.site.folder import board_page, dataset_page, method_page, pairs_file, run_page
from bench.site.methods import about, other_runs
from bench.site.templating import Pages, records
from bench.store.tables import Tables
from bench.studies.dataset_tables import PRINTED, texts
from bench.studies.study import Study
from bench.studies.wording import signed, with_std

EXPORTS = ("data/leaderboard.json", "data/cells.csv")
"""The site's data for programs."""

VERSION = 1
"""Version of the first of them; it grows when a field goes or changes its meaning, not when one is added."""

GROUPS = (
    "Groups are by paired tests over tasks, places by mean rank: a method may have a better mean rank than "
    "one of group 1 and still lose to the best in the test, so a group need not be a run of neighbours."
)


class Section(NamedTuple):
    """A study on the front page.

    notes     sentences below its ranking
    boards    data set -> the rows of its board
    counts    paper -> how many of its published values have each verdict
    waiting   methods that are no part of the suite and not ranked: a run of theirs is unverified or
              contradicted, or no run of theirs in a bundle was made again
    measured  number of rows of main tables with numbers, in the usual settings
    """

    study: str
    about: Study
    title: str
    sentences: Sequence[str]
    scores: Sequence[Score]
    ranking: Ranking | None
    notes: Sequence[str]
    cells: pd.DataFrame
    boards: Mapping[str, pd.DataFrame]
    counts: Mapping[str, Counter[str]]
    waiting: Sequence[str]
    measured: int


Row = dict[str, Any]
"""A row of a board by the names of its columns."""


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
    all_studies = [study() for study in studies.values()]
    results = collect(source, all_studies)
    suite = {name for name, cls in methods.items() if cls.__module__.startswith("bench.methods.")}
    sections = [_section(study, results, suite) for study in all_studies]
    # A shared protocol first, then most numbers; empty ones last.
    sections.sort(key=lambda one: (not one.measured, not one.about.shared_protocol, -one.measured))
    with replacing_folder(out) as site:
        (site / "data").mkdir()
        runs = _write(source, results, sections, methods, site)
        folder.seal(site, folder.LEADERBOARD)
        sizes = [path.stat().st_size for path in site.rglob("*") if path.is_file()]
    return Site(runs, len(sizes), sum(sizes))


def _section(study: Study, results: Results, suite: set[str]) -> Section:
    """What the front page says of a study, and the rows of its boards."""
    competing, waiting = guests(study, results, suite)
    ranking = rank(study, results, guests=competing)
    verdicts = score.verdict_counts(study, score.judged_once(study, results.cells))
    # What no table has is not run either.
    by_paper = verdicts.rename(columns={score.NO_TABLE: STATES["not_run"]}).T.groupby(level=0).sum()
    cells = shown_cells(study, results)
    rows = board_rows(study, cells, ranking, results)
    datasets = cells.sort_values(["document_number", "column_number"])["dataset"].unique()
    return Section(
        study=study.name,
        about=study,
        title=study.title,
        sentences=score.headline(ranking, verdicts),
        scores=score.scores(study, verdicts),
        ranking=ranking,
        notes=_notes(ranking, waiting),
        cells=cells,
        boards={name: rows[rows["dataset"] == name] for name in datasets},
        counts={
            str(paper): Counter({str(name): int(count) for name, count in row.items() if count})
            for paper, row in by_paper.items()
        },
        waiting=waiting,
        measured=coverage(rows)[0],
    )


def _notes(ranking: Ranking | None, waiting: Sequence[str]) -> list[str]:
    """What is to be said below a ranking."""
    notes = []
    if ranking:
        sentences = ["All default settings, none tuned."]
        if ranking.ranks["group"].notna().any():
            sentences.append(GROUPS)
        notes.append(" ".join(sentences))
        if ranking.unranked_titles:
            titles = ", ".join(ranking.unranked_titles)
            notes.append(f"Without numbers in default settings, not ranked: {titles}.")
    if waiting:
        notes.append(f"Not ranked until runs of theirs are made again and verified: {', '.join(waiting)}.")
    return notes


def _write(
    source: Tables,
    results: Results,
    sections: Sequence[Section],
    methods: Mapping[str, type[Method]],
    site: Path,
) -> int:
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
    all_rows = pd.concat([rows for section in sections for rows in section.boards.values()])
    entries = records(all_rows)
    for section in sections:
        for dataset, rows in section.boards.items():
            _write_board(pages, site, section, dataset, rows)
        if section.ranking:
            write_csv(site / pairs_file(section.study), pairs_record(section.ranking))
    method_titles = _write_methods(pages, results, sections, all_rows, entries, methods)
    dataset_titles = _write_datasets(pages, results, sections)
    runs = run_shards.write(source, site / "data", method_titles, _boards_by_run(entries))
    cells = pd.concat([section.cells for section in sections])
    _write_exports(site, sections, cells.loc[cells["primary"], WRITTEN], runs, results.metric)
    pages.write("run.html", "run.html.j2")
    shown = [section for section in sections if section.measured]
    shown[:1] = [section._replace(sentences=[]) for section in shown[:1]]  # the page begins with these
    pages.write(
        folder.INDEX,
        "leaderboard.html.j2",
        headline=sections[0].sentences,
        sections=shown,
        empty=[section for section in sections if not section.measured],
        measured=sum(section.measured for section in sections),
        methods=method_titles,
        datasets=dataset_titles,
        states=sorted(Counter(results.runs["state"]).items()),
        runs=runs,
    )
    return runs


def _write_board(pages: Pages, site: Path, section: Section, dataset: str, rows: pd.DataFrame) -> None:
    """A board as a page and as CSV."""
    address = board_page(section.study, dataset)
    metrics = [metric for metric in OTHER_METRICS if rows[metric].notna().any()]
    columns = [*WRITTEN, "group", "trust", *metrics]
    write_csv(site / "data" / f"{Path(address).stem}.csv", rows[columns])
    pages.write(
        address,
        "board.html.j2",
        study=section.about,
        dataset=dataset,
        title=dataset_title(dataset),
        name=Path(address).stem,
        rows=rows,
        rankings=list(rankings_of(rows)),
        waiting=section.waiting,
        metric=metrics[0] if metrics else None,
        titles=TITLES,
    )


def _write_methods(
    pages: Pages,
    results: Results,
    sections: Sequence[Section],
    rows: pd.DataFrame,
    entries: Sequence[Row],
    methods: Mapping[str, type[Method]],
) -> dict[str, str]:
    """The pages of all methods; their titles by name.

    A method has the title that a ranking gives it, else that of its class, else that of its row in a table.
    """
    rankings = [section.ranking for section in sections if section.ranking]
    usual_rows = rows[rows["usual"] & (rows["title"] != "")].drop_duplicates("method")
    titles = dict(zip(usual_rows["method"], usual_rows["title"], strict=True))
    titles |= {name: cls.title for name, cls in methods.items()}
    for ranking in reversed(rankings):
        titles |= dict(zip(ranking.ranks["method"], ranking.ranks["title"], strict=True))
    shown_hashes = {run.spec_hash for row in entries for run in row["runs"]}
    unshown_runs = other_runs(results.runs, shown_hashes)
    names = sorted({*methods, *rows["method"], *results.runs["method"]})
    descriptions = {name: about(name, methods, titles.get(name, "")) for name in names}
    for name, description in descriptions.items():
        pages.write(
            method_page(name),
            "method.html.j2",
            method=description,
            base=descriptions.get(description.preset_of),
            rows=[row for row in entries if row["method"] == name],
            beside=unshown_runs.get(name, []),
            studies=[ranking.study for ranking in rankings if (ranking.ranks["method"] == name).any()],
        )
    return {name: description.title for name, description in descriptions.items()}


def _write_datasets(pages: Pages, results: Results, sections: Sequence[Section]) -> dict[str, str]:
    """The pages of all data sets that a board or a run has; their titles by name."""
    names = sorted({name for section in sections for name in section.boards} | {*results.runs["dataset"]})
    statistics = [(section.about, judged_statistics(section.about)) for section in sections]
    for name in names:
        kind = DATASETS.all().get(name)
        pages.write(
            dataset_page(name),
            "dataset.html.j2",
            name=name,
            title=dataset_title(name),
            kind=kind,
            boards=[(one.about, one.boards[name]) for one in sections if name in one.boards],
            tables=list(_statistics(name, statistics)),
            legend=LEGEND,
        )
    return {name: dataset_title(name) for name in names}


def _statistics(
    name: str, statistics: Iterable[tuple[Study, pd.DataFrame]]
) -> Iterator[tuple[str, pd.DataFrame, Sequence[str], list[str]]]:
    """What the studies' papers print of a data set, beside the statistics that come with the suite: title of
    the paper, texts of the rows, notes, and the verdicts of the rows.
    """
    for study, rows in statistics:
        if study.data_table and len(rows):
            paper = study.data_table.paper
            shown = rows[(rows["paper"] == paper) & (rows["dataset"] == name)].drop_duplicates(PRINTED)
            if len(shown):
                notes = study.data_table.notes
                yield study.paper_title(paper), texts(shown), notes, shown["verdict"].tolist()


def _boards_by_run(entries: Iterable[Row]) -> dict[str, list[dict[str, str]]]:
    """Spec hash -> the rows that a run stands in, main tables first."""
    boards: dict[str, list[dict[str, str]]] = defaultdict(list)
    for row in sorted(entries, key=lambda row: not row["usual"]):
        board = {
            "address": f"{row['board']}#{row['anchor']}",
            "title": f"{row['study_title']}: {row['where']}",
            "stage": row["stage"],
            "rule": row["rule"],
        }
        for run in row["runs"]:
            boards[run.spec_hash].append(board)
    return boards


def _write_exports(
    site: Path, sections: Sequence[Section], cells: pd.DataFrame, runs: int, metric: str
) -> None:
    """The cells that verdicts rest on as CSV, and with studies and rankings as JSON."""
    studies = [
        {
            "name": section.study,
            "title": section.title,
            "ranking": records(section.ranking.ranks[list(RANKS)[1:]]) if section.ranking else [],
            "verdicts": {paper: dict(sorted(counts.items())) for paper, counts in section.counts.items()},
            "boards": list(section.boards),
        }
        for section in sections
    ]
    document = {
        "format": "bench leaderboard",
        "version": VERSION,
        "suite": __version__,
        "runs": runs,
        "metric": metric,
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
