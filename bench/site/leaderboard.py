"""The folder of the leaderboard: a front page, and pages of boards, methods, data sets and single runs.

A board has the rows of a study's tables on one data set, with measured and published values.
"""

from __future__ import annotations

import inspect
import sys
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from markdown_it import MarkdownIt
from markupsafe import Markup

from bench.dataset import DATASETS
from bench.engine.method import Method
from bench.frames.graded_cells import WRITTEN, Results, collect
from bench.frames.ranking import Ranking, rank
from bench.frames.stored_runs import DEFAULT, TUNED, parts_of
from bench.frames.verdicts import STATES
from bench.hyper import hyper_parameters
from bench.metric_names import ACCURACY
from bench.paths import replacing_folder, write_csv
from bench.report import score
from bench.site import folder, run_shards
from bench.site.folder import board_page, dataset_page, method_page
from bench.site.templating import Pages, records
from bench.statistics.summary import LEAST_RUNS
from bench.store.tables import Tables
from bench.studies.study import Study
from bench.studies.wording import with_std

Row = dict[str, Any]
"""A row of a frame: column name -> value, or None for a missing number."""

NOT_HERE = "This method is not installed here: nothing is known of it but its runs."

MARKDOWN = MarkdownIt("zero", {"html": False}).enable(
    ["list", "backticks", "code", "fence", "blockquote", "emphasis"]
)
"""Renders docstrings with a little Markdown: no raw HTML, links or headings."""


def build(
    source: Tables, studies: Mapping[str, type[Study]], methods: Mapping[str, type[Method]], out: Path
) -> int:
    """Write the site and replace all of ``out``; unchanged results give the same bytes. Return the number of
    runs.

    Raises:
        RequestError: there are no runs, ``out`` holds files not of a site, or ``out`` cannot be written.
    """
    folder.check(out)
    all_studies = [study() for study in studies.values()]
    results = collect(source, all_studies)
    suite = {name for name, cls in methods.items() if cls.__module__.startswith("bench.methods.")}
    sections = [_section(study, results, suite) for study in all_studies]
    # Studies with a shared protocol come first, then those with most numbers. Studies without any come last.
    sections.sort(key=lambda one: (not one["measured"], not one["about"].shared_protocol, -one["measured"]))
    rows = [row for section in sections for board in section["boards"].values() for row in board]
    with replacing_folder(out) as site:
        pages = Pages(site, ["board.js"], **VALUES)
        for section in sections:
            for dataset, board in section["boards"].items():
                tasks = rows_by(board, "heading", "scenario", "clients", "point", "tuning")
                address, study = board_page(section["study"], dataset), section["about"]
                pages.write(address, "board.html.j2", study=study, dataset=dataset, tasks=tasks)
        rows_by_method = rows_by(rows, "method")
        titles = {name: name for name in sorted({*methods, *results.runs["method"], *rows_by_method})}
        titles |= {name: cls.title for name, cls in methods.items()}
        own_rows = [row for row in rows if row["usual"] and row["line_object"].is_own]
        titles |= {row["method"]: row["title"] for row in reversed(own_rows)}
        for name in titles:
            method = methods.get(name)
            pages.write(
                method_page(name),
                "method.html.j2",
                name=name,
                titles=titles,
                method=method,
                base=base_of(method, methods),
                hyper=hyper_parameters(method.Hyper) if method else (),
                summary=summary(method),
                description=description(method),
                rows=rows_by_method.get(name, ()),
            )
        datasets = {*results.runs["dataset"], *(row["dataset"] for row in rows)}
        for name in datasets:
            boards = [(one["about"], one["boards"][name]) for one in sections if name in one["boards"]]
            kind = DATASETS.all().get(name)
            pages.write(dataset_page(name), "dataset.html.j2", name=name, kind=kind, boards=boards)
        (site / "data").mkdir()
        cells = pd.concat([shown_cells(section["about"], results) for section in sections])
        write_csv(site / "data" / "cells.csv", cells.loc[cells["primary"], WRITTEN])
        run_shards.write(source, site / "data", titles, _boards_by_run(rows))
        pages.write("run.html", "run.html.j2")
        shown = [section for section in sections if section["measured"]]
        shown[:1] = [{**section, "sentences": []} for section in shown[:1]]  # the headline shows them already
        pages.write(
            folder.INDEX,
            "leaderboard.html.j2",
            headline=sections[0]["sentences"],
            sections=shown,
            measured=sum(section["measured"] for section in sections),
            methods=titles,
            datasets=sorted(datasets, key=lambda name: dataset_title(name).lower()),
            states=sorted(Counter(results.runs["state"]).items()),
            runs=len(results.runs),
        )
        folder.seal(site)
    return len(results.runs)


def _section(study: Study, results: Results, suite: set[str]) -> dict[str, Any]:
    """A study on the front page: ``sentences`` on the results, ``boards`` (data set -> rows), ``counts`` of
    verdicts by paper, and the number of ``measured`` rows of main tables in usual settings.
    """
    ranking = rank(study, results, guests=guests(study, results, suite))
    verdicts = score.verdict_counts(study, score.judged_once(study, results.cells))
    counts = verdicts.rename(index=study.paper_title)
    counts[STATES["not_run"]] += counts.pop(score.NO_TABLE)  # values without a table are not run either
    boards = rows_by(board_rows(study, results, ranking), "dataset")
    return {
        "about": study,
        "study": study.name,
        "title": study.title,
        "sentences": score.headline(ranking, verdicts),
        "ranking": ranking,
        "boards": boards,
        "counts": counts.loc[:, counts.any()],
        "measured": sum(coverage(board)[0] for board in boards.values()),
    }


def _boards_by_run(rows: Iterable[Row]) -> dict[str, list[dict[str, str]]]:
    """Spec hash -> board rows that use the run, main tables first."""
    boards = defaultdict(list)
    for row in sorted(rows, key=lambda row: not row["usual"]):
        address, title = f"{row['board']}#{row['anchor']}", f"{row['study_title']}: {row['where']}"
        board = {"address": address, "title": title, "stage": row["stage"], "rule": row["rule"]}
        for run in row["links"]:
            boards[run["spec_hash"]].append(board)
    return boards


def shown_cells(study: Study, results: Results) -> pd.DataFrame:
    """The cells of a study's main tables and of experiments with runs, joined with columns of the places."""
    places = results.places.set_index("place")
    cells = results.cells[results.cells["study"] == study.name]
    cells = cells.join(places[["column_number", "inner", "line_object", "reads", "main"]], on="place")
    has_runs = (cells["runs"] > 0).groupby(cells["document"]).transform("any")
    return cells[cells["main"] | has_runs]


def board_rows(study: Study, results: Results, ranking: Ranking | None) -> list[Row]:
    """The rows of a study's boards. A row has the published value of its table's first comparison, and the
    table's first measure of accuracy.

    Main tables come first, then experiments. In a table, rows are sorted by column, point, settings (default,
    tuned, others) and measured mean, the best first. Cells without numbers come last. New columns:

    usual           whether the table compares methods and the cell has usual settings
    title, heading  title of the line, title of the table
    group           number of the group of ties
    links           seed, spec_hash and state of each run
    board, anchor   address of the page, and the row's anchor on it
    """
    cells = shown_cells(study, results)
    documents = {document.name: document for document in study.experiments}
    has_runs = (cells["runs"] > 0).groupby([cells["document"], cells["column_number"]]).transform("any")
    is_accuracy = cells["measure_number"].map(lambda number: results.measures[number].metric == ACCURACY)
    rows = cells[(cells["main"] | has_runs) & is_accuracy & (cells["comparison_number"] == 0)]
    rows = rows[rows["position"] == rows.groupby("document")["position"].transform("min")]
    rows = rows.assign(
        study_title=study.title,
        usual=rows["usual"] & rows["document"].map(lambda name: documents[name].competes),
        title=rows["line_object"].map(lambda line: line.title).where(rows["main"], rows["line"]),
        heading=rows["table"].where(rows["main"], rows["document"].map(lambda name: documents[name].title)),
        document_number=rows["document"].map(list(documents).index),
        kind=rows["tuning"].map({DEFAULT: 0, TUNED: 1}).fillna(2),
        inner=rows["inner"].where(~rows["main"], 0),  # a main table has no points
        is_empty=rows["n"] == 0,
        loss=-rows["mean"],
    )
    order = ["document_number", "column_number", "inner", "kind", "is_empty", "loss"]
    rows = rows.sort_values(order, kind="stable", ignore_index=True)
    groups = ranking.cells.set_index("place")["group"].dropna().to_dict() if ranking else {}
    members = results.members[results.members["place"].isin(rows["place"])]
    members = members.sort_values(["seed", "spec_hash"])
    links = rows_by(records(members[["place", "seed", "spec_hash", "state"]]), "place")
    pages = rows["dataset"].map(lambda dataset: board_page(study.name, dataset))
    numbers = (rows.groupby("dataset").cumcount() + 1).astype(str)
    rows = rows.assign(
        group=pd.array([groups.get(place) for place in rows["place"]], "Int64"),
        links=rows["place"].map(lambda place: links[place]),
        board=pages,
        anchor=pages.map(lambda page: Path(page).stem) + "-" + numbers,
        where=rows["dataset"].map(dataset_title) + " · " + rows["heading"],
    )
    return records(with_pictures(rows))


def with_pictures(rows: pd.DataFrame) -> pd.DataFrame:
    """Add the ends of the axis that a task's rows share (``axis_low``, ``axis_high``) and the positions of
    numbers in percent of the axis (``at_...``). A number beyond an end is placed at the end.

    The axis spans all means within 1.5 interquartile ranges of the quartiles, and one point more at each end.
    """
    rows = rows.assign(axis_low=0.0, axis_high=100.0)
    for _, task in rows.groupby(["heading", "scenario", "clients", "point"]):
        means = pd.concat([task["mean"], task["published_mean"]]).dropna()
        if len(means):
            lower, upper = means.quantile([0.25, 0.75])
            reach = 1.5 * max(upper - lower, 1.0)
            usual_means = means[means.between(lower - reach, upper + reach)]
            rows.loc[task.index, "axis_low"] = usual_means.min() - 1
            rows.loc[task.index, "axis_high"] = usual_means.max() + 1
    low, high = (rows[end].where(rows["n"] >= LEAST_RUNS) for end in ("low", "high"))
    std = rows["published_std"].fillna(0.0)
    for name, numbers in {
        "at_mean": rows["mean"],
        "at_low": low,
        "at_high": high,
        "at_published": rows["published_mean"],
        "at_published_low": rows["published_mean"] - std,
        "at_published_high": rows["published_mean"] + std,
    }.items():
        share = (numbers - rows["axis_low"]) / (rows["axis_high"] - rows["axis_low"])
        rows[name] = (100 * share.clip(0, 1)).round(1)
    return rows


def rows_by(rows: Iterable[Row], *names: str) -> dict[Any, list[Row]]:
    """Value of a column -> rows. For several columns the key is a tuple of values."""
    found = defaultdict(list)
    for row in rows:
        values = tuple(row[name] for name in names)
        found[values if len(names) > 1 else values[0]].append(row)
    return found


def dataset_title(name: str) -> str:
    """The title of a data set, the same on every page; its name if it is not installed."""
    kind = DATASETS.all().get(name)
    return kind.title if kind else name


def coverage(rows: Sequence[Row]) -> tuple[int, int, list[tuple[str, int]]]:
    """Count a board's rows in main tables and usual settings: rows with numbers, all rows, and rows without
    numbers by state.
    """
    usual_rows = [row for row in rows if row["usual"]]
    missing = Counter(row["verdict"] for row in usual_rows if not row["n"])
    return len(usual_rows) - missing.total(), len(usual_rows), sorted(missing.items())


def guests(study: Study, results: Results, suite: Collection[str]) -> set[str]:
    """The competing methods that are neither lines of the study nor part of the suite.

    Every bundle of such a method must be verified, and at least one of the repeated runs must be of this
    method. Otherwise runs of other methods alone would have verified it.
    """
    competing = {experiment.name for experiment in study.experiments if experiment.competes}
    own_methods = {*suite, *(line.method for line in study.lines)}
    cells = results.cells[(results.cells["study"] == study.name) & results.cells["document"].isin(competing)]
    members = results.members
    others = members[members["place"].isin(cells["place"]) & ~members["method"].isin(own_methods)]
    waiting = {
        method
        for (method, bundle), runs in parts_of(others, ["method", "bundle"])
        if bundle and not ((runs["bundle_state"] == "verified").all() and runs["bundle_sampled"].any())
    }
    return {*others["method"]} - waiting


def _docstrings(kind: type[Method]) -> list[str]:
    module = sys.modules.get(kind.__module__)
    return [inspect.cleandoc(part.__doc__) for part in (kind, module) if part and part.__doc__]


def description(kind: type[Method] | None) -> Markup:
    """The docstrings of a method's class and module as HTML."""
    if kind is None:
        return Markup("<p>{}</p>").format(NOT_HERE)
    return Markup("".join(map(MARKDOWN.render, _docstrings(kind))))


def summary(kind: type[Method] | None) -> str:
    """The first paragraph of a method's docstrings in one line."""
    if kind is None:
        return NOT_HERE
    docstrings = _docstrings(kind)
    return " ".join(docstrings[0].split("\n\n")[0].split()) if docstrings else kind.title


def base_of(kind: type[Method] | None, methods: Mapping[str, type[Method]]) -> type[Method] | None:
    """The nearest base class of ``kind`` that is among ``methods``; None if there is none."""
    bases = kind.__mro__[1:] if kind else ()
    return next((base for base in bases if methods.get(vars(base).get("name", "")) is base), None)


LINKS = {"studies": "Studies", "methods": "Methods", "datasets": "Data sets"}
VALUES = {
    "site": "leaderboard",
    "links": {f"{folder.INDEX}#{place}": title for place, title in LINKS.items()},
    "files": ["data/cells.csv"],
    "board_page": board_page,
    "dataset_page": dataset_page,
    "method_page": method_page,
    "run_page": folder.run_page,
    "coverage": coverage,
    "dataset_title": dataset_title,
    "with_std": with_std,
}
"""Values that every template of the leaderboard gets."""
