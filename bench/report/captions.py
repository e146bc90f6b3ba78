"""Captions and notes: what a table measures, how and where its runs were made, why cells are missing, and
whose runs they are.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from bench.engine import NUMERICS
from bench.engine.methods import METHODS
from bench.frames.graded_cells import Results
from bench.frames.stored_runs import WHERE, parts_of
from bench.frames.verdicts import EQUIVALENCE_LEVEL, FLOOR, LEAST_RUNS
from bench.grids.grid import PARTITION_SEED
from bench.report.document import Document, DocumentCells
from bench.studies.settings import PER_SEED, Column, Settings
from bench.studies.study import Study
from bench.studies.wording import AVERAGES, RULES, STAGES, ranges, reading_text

LEGEND = (
    f"A verdict is 'reproduced' where the {100 * EQUIVALENCE_LEVEL:g} % interval of measured minus published "
    f"mean lies within the margin (at least {LEAST_RUNS} runs), else 'compatible' where the difference is at "
    f"most {FLOOR:g} point or what runs and another draw of clients explain, 'uninformative' where that "
    "interval also holds the majority class, else 'above' or 'below'."
)

PLACES = (
    "Best (bold) and second best (underlined) are those of the methods in their usual settings, with the "
    "seeds that most cells of their column hold."
)

OTHER_ROWS = (
    "(n=2) marks a cell with other seeds than most of its column. Rows in brackets have other settings, "
    "which they name."
)

MOST_MEANINGS = 4
"""Measures up to which a caption says what each of them is; else the fine print does."""

OWN_RUNS = "runs of your own, beside those that come with the suite"

Protocol = tuple[int, int, str, str]
"""Rounds, local epochs, split and partition seed."""


def words_of(shown: DocumentCells) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The caption (what is measured, how it is selected, what is marked) and the fine print (remarks, and the
    rule of the verdicts) of an experiment.
    """
    study, experiment = shown.study, shown.experiment
    measures = [measure for measure in shown.measures if not measure.is_extra]
    meanings = [f"{measure.title}: {measure.meaning}" for measure in measures]
    text = measures[0].meaning if len(measures) == 1 else "; ".join(meanings)
    if len(measures) > MOST_MEANINGS:
        text = ", ".join(measure.title for measure in measures)
    text = f"{text[:1].upper()}{text[1:]}"
    is_ranked = any(measure.ranked for measure in measures)
    if is_ranked:
        reading = measures[0].reading or study.primary
        text += f"; {STAGES[reading.stage]}, {RULES[reading.rule]}"
    caption = [f"{text}; {AVERAGES[study.average]}, ± standard deviation over seeds."]
    fine_print = [f"{meaning}." for meaning in meanings] if len(measures) > MOST_MEANINGS else []
    fine_print += [*(study.remarks if experiment.competes else ()), *experiment.remarks]
    if is_ranked:
        caption.append(PLACES)
        fine_print.insert(0, OTHER_ROWS)
    if any(comparison.targets for comparison in experiment.comparisons):
        fine_print.append(f"{LEGEND} Margin: {study.margin:g} points.")
    return tuple(caption), tuple(fine_print)


def with_runs(document: Document, results: Results) -> Document:
    """The document, whose caption also says how the runs behind its cells were made, and whose fine print
    says where.
    """
    study = document.study
    places = document.cells[["place", "usual"]].drop_duplicates("place")
    runs = places.merge(results.members[results.members["is_done"]], on="place")
    if runs.empty:
        return replace(document, caption=(*document.caption, "Nothing of this table has been run yet."))
    protocols = {place: protocol_of(results.settings[place]) for place in runs["place"].unique()}
    runs["protocol"] = runs["place"].map(protocols)
    trained = runs[runs["usual"] & (runs["method"] != study.control)]
    by_protocol: dict[Protocol, str] = {
        protocol: ", ".join(map(study.title_of, sorted(part["dataset"].unique())))
        for protocol, part in parts_of(trained, "protocol")
    }
    texts = [f"{names}: {protocol_text(one)}" for one, names in by_protocol.items()]
    protocol = "nothing is trained"
    if len(by_protocol) == 1:
        (protocol,) = map(protocol_text, by_protocol)
    elif by_protocol:
        protocol = "by data set, see the notes"
    searches = ", but for rows that say so" if runs["setting"].str.startswith("tuned").any() else ""
    clashes = _clashes(study, runs)

    read_as = f"Test accuracy in percent, {AVERAGES[study.average]}; {reading_text(study.primary)}."
    caption = [read_as] if document.is_statistic else []
    caption += document.caption
    caption.append(
        f"Protocol: {protocol}. Seeds: {ranges(runs['seed'])}. Default settings, not tuned{searches}."
    )
    if clashes:
        caption.append("Some runs are on other clients: see the notes.")

    environments = results.source.table("environments").sort_values("id").set_index("id")["description"]
    used = environments[environments.index.isin(runs["environment_id"])]
    imported = runs[runs["bundle"] != ""].drop_duplicates("run")
    bundles = parts_of(imported, ["bundle", "bundle_state"])
    origins = [
        ("Protocol", "; ".join(texts)),
        ("Not the same clients, and not to be compared", "; ".join(clashes)),
        ("Environment", "; ".join(sorted({describe(json.loads(text)) for text in used} - {""}))),
        ("Imported", ", ".join(f"{name} ({len(part)} runs, {state})" for (name, state), part in bundles)),
    ]
    fine_print = [f"{head}: {text}." for head, text in origins if text]
    return replace(document, caption=tuple(caption), fine_print=(*document.fine_print, *fine_print))


def protocol_of(settings: Settings) -> Protocol:
    """The protocol in a run's settings."""
    split = "/".join(f"{share:g}" for share in settings.get("protocol.split", ()))
    rounds, epochs = settings.get("protocol.rounds", 0), settings.get("protocol.local_epochs", 0)
    return int(rounds), int(epochs), split, str(settings.get(PARTITION_SEED))


def protocol_text(protocol: Protocol) -> str:
    """``100 rounds, 3 local epochs, split 40/30/30, partition seed 123``."""
    rounds, epochs, split, seed = protocol
    return f"{count(rounds, 'round')}, {count(epochs, 'local epoch')}, split {split}, partition seed {seed}"


def count(number: int, noun: str) -> str:
    """``1 seed``, ``2 seeds``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _clashes(study: Study, runs: pd.DataFrame) -> list[str]:
    """Columns whose runs of one partition seed and split are on different clients."""
    drawn = runs.assign(
        split=runs["protocol"].str[2],
        draw=runs["protocol"].str[3].mask(runs["protocol"].str[3] == PER_SEED, runs["seed"].astype(str)),
    )
    texts = []
    for (*where, _, seed), part in parts_of(drawn, [*WHERE, "split", "draw"]):
        names = sorted(part["partition_hash"].str[:8].unique())
        if len(names) > 1:
            texts.append(f"{study.column_title(Column(*where))}, partition seed {seed}: {', '.join(names)}")
    return texts


def describe(environment: Mapping[str, Any]) -> str:
    """The hardware and main versions of an environment on one line."""
    threads, packages = environment.get("threads"), environment.get("packages", {})
    parts = [
        environment.get("accelerator"),
        environment.get("processor"),
        count(threads, "thread") if threads else "",
        f"Python {environment['python']}" if environment.get("python") else "",
        f"torch {packages['torch']}" if packages.get("torch") else "",
    ]
    return ", ".join(part for part in parts if part)


def notes(shown: DocumentCells) -> tuple[str, ...]:
    """Why cells are missing or not comparable, which runs are of older code or the user's own: a note for
    every reason and its lines, with their places. Columns of which nothing was run are named once.
    """
    federations = shown.cells["data_title"] + ", " + shown.cells["federation"]
    shown_cells = shown.cells.assign(where=federations)
    is_first = shown_cells["primary"] & (shown_cells["comparison_number"] == 0)
    cells = shown_cells[is_first & shown_cells["is_run_column"]]
    points = ", " + cells["point"]
    cells = cells.assign(where=cells["where"] + points.where(cells["point"] != "", ""))
    cells = cells.sort_values(["line_number", "column_number", "point_number"], kind="stable")

    members = shown.results.members
    members = members[members["place"].isin(cells["place"])]
    explained = cells["verdict"] + (" (" + cells["no_grade"] + ")").where(cells["no_grade"] != "", "")
    reasons = [
        explained.where((cells["no_grade"] != "") | (cells["n"] == 0), ""),
        cells["missing"],
        *(
            pd.Series([texts.get(place, "") for place in cells["place"]], cells.index, dtype=object)
            for texts in (_older_numbers(members), _own_runs(members))
        ),
    ]
    remarks = pd.concat([cells.assign(reason=reason) for reason in reasons])
    remarks = remarks[remarks["reason"] != ""]
    by_line = remarks.groupby(["reason", "line"], sort=False)["where"].agg(
        lambda places: "; ".join(dict.fromkeys(places))
    )
    by_place = by_line.reset_index().groupby(["reason", "where"], sort=False)["line"].agg(", ".join)
    rows = by_place.reset_index().to_dict("records")
    texts = [f"{row['reason']}: {row['line']} ({row['where']})" for row in rows]
    idle = shown_cells[~shown_cells["is_run_column"]].sort_values("column_number")["where"].unique()
    return (*texts, f"nothing run yet: {'; '.join(idle)}") if len(idle) else tuple(texts)


def _older_numbers(members: pd.DataFrame) -> dict[int, str]:
    """Place -> the older numbers of the code that made its runs; nothing of a method that is not at hand."""
    texts = {}
    kinds = METHODS.all()
    made_by = members.loc[members["is_done"], ["place", "method", "method_numerics", "engine_numerics"]]
    for place, method, method_version, engine_version in made_by.drop_duplicates().itertuples(index=False):
        method_now = kinds[method].numerics if method in kinds else 0
        versions = (("method", method_version, method_now), ("engine", engine_version, NUMERICS))
        parts = [f"{name} numerics {version}, now {now}" for name, version, now in versions if version < now]
        if parts:
            texts[place] = f"older numbers ({' and '.join(parts)}; a sweep makes them again)"
    return texts


def _own_runs(members: pd.DataFrame) -> dict[int, str]:
    """Place -> which of its runs are the user's, neither shipped nor imported; nothing where all are."""
    is_own = (members["origin"] == "") & (members["bundle"] == "")
    own = members[is_own] if not is_own.all() else members[:0]
    return {place: f"{OWN_RUNS} (seeds {ranges(part['seed'])})" for place, part in parts_of(own, "place")}
