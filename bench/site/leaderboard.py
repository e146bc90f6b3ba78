"""The leaderboard's folder: a front page, and pages of boards, methods, data sets and single runs."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from bench.csv_files import write_csv
from bench.dataset import DATASETS
from bench.engine.method import Method
from bench.frames.graded_cells import WRITTEN, Results, collect
from bench.frames.ranking import Ranking, rank
from bench.frames.verdicts import STATES
from bench.replacement import replacing_folder
from bench.report import score
from bench.site import folder, run_shards
from bench.site.boards import (
    Row,
    board_rows,
    coverage,
    dataset_title,
    guests,
    rows_by,
    shown_cells,
    with_pictures,
)
from bench.site.folder import board_page, dataset_page, method_page, run_page
from bench.site.methods import about
from bench.site.templating import Pages, records
from bench.store.tables import Tables
from bench.studies.study import Study
from bench.studies.wording import with_std

CELLS = "data/cells.csv"
"""Every cell that verdicts rest on."""

GROUPS = (
    "Groups are by paired tests over tasks, places by mean rank: a method may have a better mean rank than "
    "one of group 1 and still lose to the best in the test, so a group need not be a run of neighbours."
)


class Section(NamedTuple):
    """A study on the front page.

    sentences  what was found
    notes      sentences below its ranking
    boards     data set -> the rows of its board
    counts     a row a paper: how many of its published values have each verdict
    measured   number of rows of main tables with numbers, in the usual settings
    """

    about: Study
    study: str
    title: str
    sentences: Sequence[str]
    ranking: Ranking | None
    notes: Sequence[str]
    boards: Mapping[str, Sequence[Row]]
    counts: pd.DataFrame
    measured: int


def build(
    source: Tables,
    studies: Mapping[str, type[Study]],
    methods: Mapping[str, type[Method]],
    out: Path,
) -> int:
    """Write the site into ``out``, which is replaced whole; unchanged results give the same bytes. The number
    of runs.

    Raises:
        RequestError: no runs, or ``out`` holds other files than a site's or cannot be written.
    """
    folder.check(out)
    all_studies = [study() for study in studies.values()]
    results = collect(source, all_studies)
    suite = {name for name, cls in methods.items() if cls.__module__.startswith("bench.methods.")}
    sections = [_section(study, results, suite) for study in all_studies]
    # A shared protocol first, then most numbers; empty ones last.
    sections.sort(key=lambda one: (not one.measured, not one.about.shared_protocol, -one.measured))
    with replacing_folder(out) as site:
        _write(source, results, sections, methods, site)
        folder.seal(site)
    return len(results.runs)


def _section(study: Study, results: Results, suite: set[str]) -> Section:
    """What the front page says of a study, and the rows of its boards."""
    competing, waiting = guests(study, results, suite)
    ranking = rank(study, results, guests=competing)
    verdicts = score.verdict_counts(study, score.judged_once(study, results.cells))
    counts = verdicts.rename(index=study.paper_title)
    counts[STATES["not_run"]] += counts.pop(score.NO_TABLE)  # what no table has is not run either
    rows = board_rows(study, shown_cells(study, results), ranking, results)
    boards = rows_by(records(with_pictures(rows)), "dataset")
    return Section(
        about=study,
        study=study.name,
        title=study.title,
        sentences=score.headline(ranking, verdicts),
        ranking=ranking,
        notes=_notes(ranking, waiting),
        boards=boards,
        counts=counts.loc[:, counts.any()],
        measured=sum(coverage(board)[0] for board in boards.values()),
    )


def _notes(ranking: Ranking | None, waiting: Sequence[str]) -> list[str]:
    """What is to be said below a ranking."""
    notes = []
    if ranking:
        sentences = ["All default settings, none tuned."]
        if ranking.ranks["group"].notna().any():
            sentences.append(GROUPS)
        notes.append(" ".join(sentences))
    if waiting:
        notes.append(f"Not ranked until runs of theirs are made again and verified: {', '.join(waiting)}.")
    return notes


def _write(
    source: Tables,
    results: Results,
    sections: Sequence[Section],
    methods: Mapping[str, type[Method]],
    site: Path,
) -> None:
    """Write all files."""
    pages = Pages(
        site,
        ["board.js"],
        site="leaderboard",
        links={
            f"{folder.INDEX}#studies": "Studies",
            f"{folder.INDEX}#methods": "Methods",
            f"{folder.INDEX}#datasets": "Data sets",
        },
        files=[CELLS],
        board_page=board_page,
        dataset_page=dataset_page,
        method_page=method_page,
        run_page=run_page,
        coverage=coverage,
        dataset_title=dataset_title,
        with_std=with_std,
    )
    (site / "data").mkdir()
    cells = pd.concat([shown_cells(section.about, results) for section in sections])
    write_csv(site / CELLS, cells.loc[cells["primary"], WRITTEN])
    for section in sections:
        for dataset, board in section.boards.items():
            tasks = rows_by(board, "heading", "scenario", "clients", "point", "tuning")
            address, title = board_page(section.study, dataset), dataset_title(dataset)
            pages.write(
                address, "board.html.j2", study=section.about, dataset=dataset, title=title, tasks=tasks
            )
    rows = [row for section in sections for board in section.boards.values() for row in board]
    titles = _write_methods(pages, results, sections, rows, methods)
    datasets = {*results.runs["dataset"], *(row["dataset"] for row in rows)}
    for name in datasets:
        boards = [(one.about, one.boards[name]) for one in sections if name in one.boards]
        kind = DATASETS.all().get(name)
        pages.write(dataset_page(name), "dataset.html.j2", name=name, kind=kind, boards=boards)
    run_shards.write(source, site / "data", titles, _boards_by_run(rows))
    pages.write("run.html", "run.html.j2")
    shown = [section for section in sections if section.measured]
    shown[:1] = [section._replace(sentences=[]) for section in shown[:1]]  # the page begins with these
    pages.write(
        folder.INDEX,
        "leaderboard.html.j2",
        headline=sections[0].sentences,
        sections=shown,
        measured=sum(section.measured for section in sections),
        methods=titles,
        datasets=sorted(datasets, key=lambda name: dataset_title(name).lower()),
        states=sorted(Counter(results.runs["state"]).items()),
        runs=len(results.runs),
    )


def _write_methods(
    pages: Pages,
    results: Results,
    sections: Sequence[Section],
    rows: Sequence[Row],
    methods: Mapping[str, type[Method]],
) -> dict[str, str]:
    """The pages of all methods; their titles by name.

    A method has the title that a ranking gives it, else that of its class, else that of its row in a table.
    """
    titles = {row["method"]: row["title"] for row in reversed(rows) if row["usual"]}
    titles |= {name: cls.title for name, cls in methods.items()}
    for section in reversed(sections):
        if section.ranking:
            ranks = section.ranking.ranks
            titles |= dict(zip(ranks["method"], ranks["title"], strict=True))
    rows_by_method = rows_by(rows, "method")
    names = sorted({*methods, *results.runs["method"], *rows_by_method})
    descriptions = {name: about(name, methods, titles.get(name, "")) for name in names}
    for name, description in descriptions.items():
        pages.write(
            method_page(name),
            "method.html.j2",
            method=description,
            base=descriptions.get(description.preset_of),
            rows=rows_by_method.get(name, []),
        )
    return {name: description.title for name, description in descriptions.items()}


def _boards_by_run(rows: Iterable[Row]) -> dict[str, list[dict[str, str]]]:
    """Spec hash -> the rows that a run stands in, main tables first."""
    boards: dict[str, list[dict[str, str]]] = defaultdict(list)
    for row in sorted(rows, key=lambda row: not row["usual"]):
        board = {
            "address": f"{row['board']}#{row['anchor']}",
            "title": f"{row['study_title']}: {row['where']}",
            "stage": row["stage"],
            "rule": row["rule"],
        }
        for run in row["runs"]:
            boards[run.spec_hash].append(board)
    return boards
