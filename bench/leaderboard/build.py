"""From a source of results to a folder of pages."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from bench import __version__
from bench.engine.method import Method
from bench.leaderboard import charts, datasets, exports, folder, pictures, run_shards
from bench.leaderboard.boards import (
    OTHER_METRICS,
    Boards,
    Difference,
    Row,
    StudyBoards,
    boards,
    coverage,
    dataset_title,
)
from bench.leaderboard.folder import board_page, dataset_page, method_page, pair_page
from bench.leaderboard.methods import MethodDescription, about, other_runs
from bench.leaderboard.pictures import Scale, scale, usual_ends
from bench.metric_names import ACCURACY, Metric
from bench.pages import templating
from bench.pages.grades import GRADES
from bench.report.captions import LEGEND
from bench.report.dataset_documents import LEGEND as LEGEND_OF_STATISTICS
from bench.report.findings import agreement_by_paper
from bench.report.ranking_views import pairs_record
from bench.statistics.paired import ALPHA, REGION
from bench.statistics.summary import DRAWS, LEAST, LEVEL
from bench.studies import frame
from bench.studies.metric import TITLES, check_kept
from bench.studies.source import Source
from bench.studies.study import Study
from bench.studies.wording import AVERAGES, RULES, STAGES, signed, with_std

FOLDERS = ("assets", "board", "data", "dataset", "method", "pair")


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
    release: str = "",
    today: date | None = None,
    url: str = "",
    metric: Metric = ACCURACY,
) -> Site:
    """Write the site into ``out``, which is replaced whole, but for its change log and its frozen copies;
    unchanged results give the same bytes. ``release`` names a frozen copy of this one, ``today`` is the day
    that changes are noted under, ``url`` the address that the folder is published at, if that is known. By
    another ``metric`` than accuracy nothing stands beside published values, which are accuracies.

    Raises:
        RequestError: no runs, none with the metric, ``out`` is something else than a site by this metric or
            cannot be written, or there is such a release.
    """
    folder.check(out, metric)
    folder.check_release(out, release)
    suite = {name for name, cls in methods.items() if cls.__module__.startswith("bench.methods.")}
    all_boards = boards(source, studies, suite, metric)
    with folder.replacement(out, metric) as site:
        writer = _Writer(source, all_boards, methods, site, url and url.rstrip("/") + "/")
        writer.write(out, release, today or date.today())
        sizes = [path.stat().st_size for path in site.rglob("*") if path.is_file()]
    return Site(writer.runs, len(sizes), sum(sizes))


class _Writer:
    """Writes the pages of one site."""

    def __init__(
        self, source: Source, all_boards: Boards, methods: Mapping[str, type[Method]], site: Path, url: str
    ) -> None:
        self._source, self._boards, self._methods, self._site = source, all_boards, methods, site
        self._rows: dict[str, list[Row]] = defaultdict(list)
        self._about: dict[str, MethodDescription] = {}
        self._titles = all_boards.method_titles
        results = all_boards.results
        is_by_accuracy = results.metric == ACCURACY
        subject = "published against measured" if is_by_accuracy else f"by {TITLES[results.metric]}"
        self._title = f"Personalised federated learning, {subject}"
        self._headlines = [
            tuple(filter(None, (*study.findings.headline, agreement_by_paper(study.findings.scores))))
            for study in all_boards.studies
        ]
        self._pages = templating.environment("bench.leaderboard")
        self._pages.globals.update(
            {name: value for name, value in vars(folder).items() if name.endswith("_page")},
            verdicts=verdicts,
            dataset_title=dataset_title,
            legend=LEGEND_OF_STATISTICS,
            about=self._about,
            url=url,
            with_std=with_std,
            signed=signed,
            version=__version__,
            by_accuracy=is_by_accuracy,
            quantity=TITLES[results.metric],
            site_title=self._title,
            finding=self._headlines[0][0],
            card=pictures,
            gap=check_kept(results.metric, *results.metric_coverage()) if not is_by_accuracy else "",
        )
        self._pages.filters["signed_list"] = lambda values: ", ".join(map(signed, values.tolist()))
        self.runs = 0

    def write(self, old_site: Path, release: str, today: date) -> None:
        """All files; ``old_site`` is the site that this one replaces."""
        for name in FOLDERS:
            (self._site / name).mkdir()
        library = charts.library()
        (self._site / "assets" / library.file).write_text(library.text, encoding="utf-8", newline="\n")
        templating.write_assets(self._site / "assets")
        templating.write_assets(self._site / "assets", "bench.leaderboard")
        ranking, card = self._boards.studies[0].ranking, self._site / "assets" / pictures.CARD
        pictures.draw_card(card, self._title, self._headlines[0][0], ranking)
        self._pages.globals["vega"] = library.file
        for study in self._boards.studies:
            for dataset, values in study.boards.items():
                self._write_board(study, dataset, values)
        method_pairs = self._write_pairs()
        titles = self._write_methods(method_pairs)
        descriptions = self._write_datasets()
        shards, self.runs = run_shards.write(self._source, self._site / "data", titles, self._boards_by_run())
        table = frame.frame(cell for study in self._boards.studies for cell in study.cells)
        exports.write(self._site / "data", self._boards, table, self.runs)
        log = exports.log(old_site, table, today)
        exports.write_log(self._site / exports.LOG, log)
        self._page("run.html", "run.html", shards=",".join(shards))
        self._page("about.html", "about.html", library=library, definitions=_definitions())
        self._page("feed.xml", "feed.xml", changes=log)
        index = partial(
            self._page,
            template="index.html",
            studies=self._boards.studies,
            headlines=self._headlines,
            coverage=coverage,
            methods=self._about.values(),
            datasets=descriptions,
            states=sorted(Counter(self._boards.results.runs["state"]).items()),
            runs=self.runs,
            changes=log,
            elsewhere=self._boards.runs_outside_tables,
        )
        folder.freeze(self._site, old_site, release)
        if release:
            index(f"{folder.RELEASES}/{release}/index.html", root="", frozen=release, releases=[])
        index("index.html", frozen="", releases=folder.releases(self._site))

    def _page(self, address: str, template: str, **values: Any) -> None:
        """Fill a template; ``root`` leads it back to the site's root."""
        values = {"root": "../" * address.count("/"), "page": address, **values}
        text = self._pages.get_template(template).render(values)
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
        types: dict[str, str] = frame.TYPES | {"group": "Int64", "trust": "string"}
        types |= dict.fromkeys(metrics, "float64")
        table = pd.DataFrame([row | row["by_metric"] for row in values], columns=list(types)).astype(types)
        frame.write(self._site / "data" / f"{name}.csv", table)
        self._page(
            address,
            "board.html",
            study=study.study,
            dataset=dataset,
            title=title,
            name=name,
            rows=rows,
            parts=_parts(rows),
            charts=charts.write(study, dataset, self._site / "data", name),
            waiting=study.waiting_methods,
            metrics=metrics,
            titles=TITLES,
            best={_task(row): row["method"] for row in reversed(values) if row["group"] == 1},
            task=_task,
        )

    def _write_pairs(self) -> dict[str, list[tuple[Study, str, int]]]:
        """The pages of all pairs; method -> study, the other method and number of tasks of its pairs."""
        by_method: dict[str, list[tuple[Study, str, int]]] = defaultdict(list)
        for study in self._boards.studies:
            for (first, second), differences in study.pairs.items():
                for name, other in ((first, second), (second, first)):
                    self._describe(name)
                    by_method[name].append((study.study, other, len(differences)))
                self._page(
                    pair_page(study.study.name, first, second),
                    "pair.html",
                    study=study.study,
                    differences=differences,
                    first=self._about[first],
                    second=self._about[second],
                    axis=_axis_of(differences),
                    overall=study.overall.get((first, second), ()),
                )
            if study.ranking:
                file = self._site / "data" / f"{folder.file_name(f'{study.study.name}-pairs')}.csv"
                frame.write(file, pairs_record(study.ranking))
        return by_method

    def _write_methods(self, by_method: Mapping[str, list[tuple[Study, str, int]]]) -> dict[str, str]:
        """The pages of all methods; their titles by name."""
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
                pairs=by_method.get(name, []),
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
        pages = [datasets.about(name, studies, self._source) for name in sorted(names)]
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


def _axis_of(differences: Sequence[Difference]) -> Scale:
    """As far to either side of zero as means and intervals go, a point at least."""
    ends = [abs(end) for one in differences for end in one.test.interval or (one.test.difference or 0.0,)]
    reach = max(1.0, 1.05 * max(ends))
    return Scale(-reach, reach)


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


def _definitions() -> dict[str, Any]:
    """The constants that the numbers of the site are computed with, by name."""
    return {
        "level": f"{100 * LEVEL:g} %",
        "stages": STAGES,
        "rules": RULES,
        "averages": AVERAGES,
        "alpha": ALPHA,
        "region": REGION,
        "least": LEAST,
        "draws": DRAWS,
        "legend": LEGEND,
    }
