"""Captions and notes of a table: its measures, the protocol and origin of its runs, and the reasons for
missing cells.
"""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from bench.engine import NUMERICS
from bench.engine.methods import METHODS
from bench.frames.graded_cells import DocumentCells, Results
from bench.frames.stored_runs import WHERE, rows_of
from bench.frames.verdicts import EQUIVALENCE_LEVEL, FLOOR, LEAST_RUNS
from bench.grids.grid import PARTITION_SEED
from bench.report.document import Document
from bench.studies.settings import PER_SEED, Column, Settings
from bench.studies.wording import AVERAGES, RULES, STAGES, ranges

LEGEND = (
    f"A verdict is 'reproduced' where the {100 * EQUIVALENCE_LEVEL:g} % interval of measured minus published "
    f"mean lies within the margin (at least {LEAST_RUNS} runs), else 'compatible' where the difference is at "
    f"most {FLOOR:g} point or what runs and another draw of clients explain, 'uninformative' where that "
    "interval also holds the majority class, else 'above' or 'below'."
)

PLACES = (
    "Best (bold) and second best (underlined) are those of the methods in their usual settings; (n=2) marks "
    "a cell with more or fewer seeds than most of its column, which has no place."
)

OWN_RUNS = "Runs of your own, beside those that come with the suite"


def words_of(shown: DocumentCells) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The caption and the fine print of an experiment. The caption names measures, selection and marks. The
    fine print has remarks and the rule of the verdicts.
    """
    study, experiment = shown.study, shown.experiment
    cells = shown.cells[shown.cells["primary"]].sort_values("position")
    measures = [shown.results.measures[number] for number in cells["measure_number"].unique()]
    text = ", ".join(measure.title for measure in measures)
    fine_print = [f"{measure.title}: {measure.meaning}." for measure in measures]
    if len(measures) == 1:
        text, fine_print = f"{measures[0].meaning[:1].upper()}{measures[0].meaning[1:]}", []
    if any(measure.ranked for measure in measures):
        reading = measures[0].reading or study.primary
        text += f"; {STAGES[reading.stage]}, {RULES[reading.rule]}"
    caption = [f"{text}; {AVERAGES[study.average]}, ± standard deviation over seeds."]
    fine_print += [*(study.remarks if experiment.competes else ()), *experiment.remarks]
    if any(measure.ranked for measure in measures):
        caption.append(PLACES)
    if any(experiment.comparisons.values()):
        fine_print.append(f"{LEGEND} Margin: {study.margin:g} points.")
    return tuple(caption), tuple(fine_print)


def with_runs(document: Document, results: Results) -> Document:
    """Add the protocol and seeds of the runs to the document's caption. Add remarks on their clients, origin
    and version to its fine print.
    """
    study = document.study
    places = document.cells[["place", "usual"]].drop_duplicates("place")
    settings = places["place"].map(results.settings)
    places = places.assign(
        protocol=settings.map(protocol_text),
        split=settings.map(lambda each: tuple(each.get("protocol.split", ()))),
        draw=settings.map(lambda each: each.get(PARTITION_SEED)),
    )
    runs = places.merge(results.done_of(places), on="place")
    if runs.empty:
        return replace(document, caption=(*document.caption, "Nothing of this table has been run yet."))
    runs = runs.assign(
        draw=runs["draw"].mask(runs["draw"] == PER_SEED, runs["seed"]).astype(str),
        title=runs["method"].map(study.title_of),
        data_title=runs["dataset"].map(study.title_of),
    )
    trained = runs[runs["usual"] & (runs["method"] != study.control)]
    datasets = trained.groupby("protocol")["data_title"].agg(_listed)
    protocol = "; ".join(f"{names}: {text}" for text, names in datasets.items()) or "nothing is trained"
    caption = (
        *document.caption,
        f"Protocol: {protocol}. Seeds: {ranges(runs['seed'])}. Not tuned, but for rows that say so.",
    )

    partitions = runs.groupby([*WHERE, "split", "draw"])["partition_hash"].nunique()
    clashes = [
        f"{study.column_title(Column(*where))}, partition seed {draw}"
        for *where, _, draw in partitions.index[partitions > 1]
    ]
    is_own = (runs["origin"] == "") & (runs["bundle"] == "")
    versions = {name: kind.numerics for name, kind in METHODS.all().items()}
    is_older = runs["method_numerics"] < runs["method"].map(versions)
    bundles = runs[runs["bundle"] != ""].drop_duplicates("run")
    remarks = {
        "Not the same clients, and not to be compared": "; ".join(clashes),
        OWN_RUNS: "" if is_own.all() else _listed(runs.loc[is_own, "title"]),
        "Older numbers, which a sweep makes again": _listed(
            runs.loc[is_older | (runs["engine_numerics"] < NUMERICS), "title"]
        ),
        "Imported": _listed(bundles["bundle"] + " (" + bundles["bundle_state"] + ")"),
    }
    fine_print = [f"{head}: {text}." for head, text in remarks.items() if text]
    return replace(document, caption=caption, fine_print=(*document.fine_print, *fine_print))


def _listed(names: pd.Series[str]) -> str:
    return ", ".join(sorted(set(names)))


def protocol_text(settings: Settings) -> str:
    """``100 rounds, 3 local epochs, split 40/30/30, partition seed 123``."""
    rounds, epochs = settings.get("protocol.rounds", 0), settings.get("protocol.local_epochs", 0)
    split = "/".join(f"{share:g}" for share in settings.get("protocol.split", ()))
    seed = settings.get(PARTITION_SEED)
    return f"{count(rounds, 'round')}, {count(epochs, 'local epoch')}, split {split}, partition seed {seed}"


def count(number: int, noun: str) -> str:
    """``1 seed``, ``2 seeds``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def notes(shown: DocumentCells) -> tuple[str, ...]:
    """Notes on cells that are missing or not comparable. Each note gives a reason, then lines and places.
    A column without any run is named once.
    """
    cells = shown.cells[shown.cells["primary"] & (shown.cells["comparison_number"] == 0)]
    cells = cells.sort_values(["line_number", "column_number", "point_number"], kind="stable")
    where = cells["data_title"] + ", " + cells["federation"]
    why = cells["reason"]
    state = cells["verdict"] + (" (" + why + ")").where(why != "", "")
    cells = cells.assign(
        where=where + (", " + cells["point"]).where(cells["point"] != "", ""),
        note=why.where(cells["n"] > 0, state).where(cells["is_run_column"], "nothing run yet"),
        line=cells["line"].where(cells["is_run_column"], "all lines"),
    )
    cells = cells[cells["note"] != ""].drop_duplicates(["note", "line", "where"])
    by_line = cells.groupby(["note", "line"], sort=False, as_index=False).agg({"where": "; ".join})
    rows = by_line.groupby(["note", "where"], sort=False, as_index=False).agg({"line": ", ".join})
    return tuple(f"{row.note}: {row.line} ({row.where})" for row in rows_of(rows))
