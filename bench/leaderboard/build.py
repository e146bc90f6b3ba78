"""From a source of results to a folder of pages."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from bench import __version__
from bench.csv_files import write_csv
from bench.engine.method import Method
from bench.frames.graded_cells import COLUMNS, WRITTEN
from bench.leaderboard import datasets, exports, folder, run_shards
from bench.leaderboard.boards import (
    OTHER_METRICS,
    Boards,
    Row,
    StudyBoards,
    boards,
    coverage,
    dataset_title,
)
from bench.leaderboard.folder import board_page, dataset_page, method_page, pairs_file
from bench.leaderboard.methods import MethodDescription, about, other_runs
from bench.leaderboard.pictures import Scale, scale, usual_ends
from bench.metric_names import TITLES
from bench.pages import templating
from bench.pages.grades import GRADES
from bench.report.dataset_documents import LEGEND as LEGEND_OF_STATISTICS
from bench.report.ranking import pairs_record
from bench.report.score import agreement_by_paper, headline
from bench.studies.source import Source
from bench.studies.study import Study
from bench.studies.wording import signed, with_std

FOLDERS = ("assets", "board", "data", "dataset", "method")


@dataclass(frozen=True)
class Site:
    """What was built: the number of runs, files and bytes."""

    runs: int
    files: int
    bytes: int


def build(
    source: Source,
    studies: Mapping[str, type[Study]],
    methods: Mapping[str, type[Method]],
    out: Path,
) -> Site:
    """Write the site into ``out``, which is replaced whole; unchanged results give the same bytes.

    Raises:
        RequestError: no runs, or ``out`` is something else than a site or cannot be written.
    """
    folder.check(out)
    suite = {name for name, cls in methods.items() if cls.__module__.startswith("bench.methods.")}
    all_boards = boards(source, studies, suite)
    with folder.replacement(out) as site:
        writer = _Writer(source, all_boards, methods, site)
        writer.write()
        sizes = [path.stat().st_size for path in site.rglob("*") if path.is_file()]
    return Site(writer.runs, len(sizes), sum(sizes))


class _Writer:
    """Writes the pages of one site."""

    def __init__(
        self, source: Source, all_boards: Boards, methods: Mapping[str, type[Method]], site: Path
    ) -> None:
        self._source, self._boards, self._methods, self._site = source, all_boards, methods, site
        self._rows: dict[str, list[Row]] = defaultdict(list)
        self._about: dict[str, MethodDescription] = {}
        self._titles = all_boards.method_titles
        self._headlines = [
            tuple(filter(None, (*headline(study.ranking, study.scores), agreement_by_paper(study.scores))))
            for study in all_boards.studies
        ]
        self._pages = templating.environment("bench.leaderboard")
        self._pages.globals.update(
            {name: value for name, value in vars(folder).items() if name.endswith(("_page", "_file"))},
            verdicts=verdicts,
            dataset_title=dataset_title,
            legend=LEGEND_OF_STATISTICS,
            with_std=with_std,
            signed=signed,
            version=__version__,
        )
        self.runs = 0

    def write(self) -> None:
        """Write all files."""
        for name in FOLDERS:
            (self._site / name).mkdir()
        templating.write_assets(self._site / "assets")
        templating.write_assets(self._site / "assets", "bench.leaderboard")
        for study in self._boards.studies:
            for dataset, values in study.boards.items():
                self._write_board(study, dataset, values)
        titles = self._write_methods()
        descriptions = self._write_datasets()
        shards, self.runs = run_shards.write(self._source, self._site / "data", titles, self._boards_by_run())
        exports.write(self._site / "data", self._boards, self.runs)
        self._page("run.html", "run.html", shards=",".join(shards))
        self._page(
            "index.html",
            "index.html",
            studies=self._boards.studies,
            headlines=self._headlines,
            coverage=coverage,
            methods=self._about.values(),
            datasets=descriptions,
            states=sorted(Counter(self._boards.results.runs["state"]).items()),
            runs=self.runs,
            elsewhere=self._boards.runs_outside_tables,
        )

    def _page(self, address: str, template: str, **values: Any) -> None:
        """Fill a template; ``root`` leads it back to the site's root."""
        text = self._pages.get_template(template).render(root="../" * address.count("/"), **values)
        (self._site / address).write_text(text, encoding="utf-8", newline="\n")

    def _write_board(self, study: StudyBoards, dataset: str, values: Sequence[Row]) -> None:
        """A board; its rows have an anchor there, and the same one on their methods' pages."""
        address, title = board_page(study.study.name, dataset), dataset_title(dataset)
        name = Path(address).stem
        rows = [
            {
                **row,
                "anchor": f"{name}-{number}",
                "board": address,
                "place": f"{title} · {row['heading']}",
                "study_title": study.study.title,
            }
            for number, row in enumerate(values, 1)
        ]
        for row in rows:
            self._rows[row["method"]].append(row)
            self._describe(row["method"], row["title"] if row["usual"] else "")
        metrics = [metric for metric in OTHER_METRICS if any(metric in row["by_metric"] for row in values)]
        types: dict[str, str] = {column: COLUMNS[column] for column in WRITTEN} | {
            "group": "Int64",
            "trust": "string",
        }
        types |= dict.fromkeys(metrics, "float64")
        table = pd.DataFrame([row | row["by_metric"] for row in values], columns=list(types)).astype(types)
        write_csv(self._site / "data" / f"{name}.csv", table)
        self._page(
            address,
            "board.html",
            study=study.study,
            dataset=dataset,
            title=title,
            name=name,
            rows=rows,
            parts=_parts(rows),
            waiting=study.waiting_methods,
            metrics=metrics,
            titles=TITLES,
        )

    def _write_methods(self) -> dict[str, str]:
        """The pages of all methods and the tests of all pairs; the methods' titles by name."""
        rankings = [study.ranking for study in self._boards.studies if study.ranking]
        for ranking in rankings:
            write_csv(self._site / pairs_file(ranking.study.name), pairs_record(ranking))
        runs = self._boards.results.runs
        shown_hashes = {run.spec_hash for rows in self._rows.values() for row in rows for run in row["runs"]}
        unshown_runs = other_runs(runs, shown_hashes)
        for name in sorted({*self._methods, *self._rows, *runs["method"]}):
            self._describe(name)
        for name, description in sorted(self._about.items()):
            self._page(
                method_page(name),
                "method.html",
                method=description,
                preset=self._about.get(description.preset_of),
                rows=self._rows[name],
                beside=unshown_runs.get(name, []),
                studies=[ranking.study for ranking in rankings if name in set(ranking.ranks["method"])],
            )
        return {name: description.title for name, description in sorted(self._about.items())}

    def _boards_by_run(self) -> dict[str, list[dict[str, str]]]:
        """Spec hash -> the rows that a run stands in, main tables first."""
        boards: dict[str, list[dict[str, str]]] = defaultdict(list)
        rows = [row for rows in self._rows.values() for row in rows]
        for row in sorted(rows, key=lambda row: not row["usual"]):
            board = {
                "address": f"{row['board']}#{row['anchor']}",
                "title": f"{row['study_title']}: {row['place']}",
            }
            for run in row["runs"]:
                boards[run.spec_hash].append({**board, "stage": row["stage"], "rule": row["rule"]})
        return boards

    def _describe(self, name: str, title: str = "") -> None:
        """Know a method; one that has no title anywhere else goes by that of its row in a table."""
        if name not in self._about or (title and self._about[name].title == name):
            self._about[name] = about(name, self._methods, self._titles.get(name, ""), title)

    def _write_datasets(self) -> list[datasets.DatasetDescription]:
        """The pages of all data sets that a board or a run has."""
        studies = self._boards.studies
        names = {name for study in studies for name in study.boards} | {*self._boards.results.runs["dataset"]}
        pages = [datasets.about(name, studies) for name in sorted(names)]
        for page in pages:
            boards = [study for study in studies if page.name in study.boards]
            self._page(dataset_page(page.name), "dataset.html", about=page, studies=boards, coverage=coverage)
        return pages


class TaskRows(NamedTuple):
    """A ranking of a board: the rows of one task in one kind of settings. Tasks share an axis of accuracy
    and one of differences.
    """

    axis: Scale
    differences: Scale
    rows: list[Row]


def _task(row: Row) -> tuple[Any, ...]:
    return row["heading"], row["scenario"], row["clients"], row["point"]


def _parts(rows: Sequence[Row]) -> list[TaskRows]:
    """The rankings of a board, whose axes leave out what lies far from most of a task's values."""
    parts = []
    for _, task in groupby(rows, _task):
        task_rows = list(task)

        def usual(centres: Sequence[str], *others: str, rows: Sequence[Row] = task_rows) -> list[float]:
            values, ends = (
                [row[name] for row in rows for name in names if row[name] is not None]
                for names in (centres, (*centres, *others))
            )
            return usual_ends(values, ends)

        axis = scale(usual(("mean", "published_mean"), "drawn_low", "drawn_high"), min_width=2.0)
        gaps = usual(("difference",), "low_difference", "high_difference")
        reach = max([1.0, *map(abs, gaps)])
        parts += [
            TaskRows(axis, Scale(-reach, reach), list(part))
            for _, part in groupby(task_rows, lambda row: row["tuning"])
        ]
    return parts


def verdicts(groups: Iterable[Iterable[str]]) -> list[str]:
    """All verdicts in some groups: grades first, best first, then states by name."""
    names = {name for group in groups for name in group}
    return [*filter(names.__contains__, GRADES), *sorted(names.difference(GRADES))]
