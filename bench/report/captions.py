"""Captions and notes: what a table measures, how and where its runs were made, why cells are missing, and
whose runs they are.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
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
from bench.studies.measures import Measure
from bench.studies.settings import PER_SEED, Column, Settings
from bench.studies.study import Study
from bench.studies.wording import AVERAGES, RULES, STAGES, enumeration, ranges, reading_text

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

FEW = 3
"""Up to so many measures stand in a caption, and up to so many columns or partitions are named."""

OWN_RUNS = "runs of your own, beside those that come with the suite"

Protocol = tuple[int, int, str, str]
"""Rounds, local epochs, split and partition seed."""


def caption_of(shown: DocumentCells) -> tuple[str, ...]:
    """What is measured and how it is selected, and what is marked."""
    measures = [measure for measure in shown.measures if not measure.is_extra]
    text = _meanings(measures) if len(measures) <= FEW else "what each column is stands in the notes"
    text = f"{text[:1].upper()}{text[1:]}"
    if any(measure.by_reading for measure in measures):
        reading = measures[0].reading or shown.study.primary
        text += f"; {STAGES[reading.stage]}, {RULES[reading.rule]}"
    text += f"; {AVERAGES[shown.study.average]}, ± standard deviation over seeds."
    return (text, PLACES) if any(measure.ranked for measure in measures) else (text,)


def fine_print_of(shown: DocumentCells) -> tuple[str, ...]:
    """Measures, remarks and the verdicts' rule."""
    experiment = shown.experiment
    measures = [measure for measure in shown.measures if not measure.is_extra]
    lines = [OTHER_ROWS] if any(measure.ranked for measure in measures) else []
    lines += [f"{_meanings(measures)}."] if len(measures) > FEW else []
    lines += (*shown.study.remarks, *experiment.remarks) if experiment.competes else experiment.remarks
    if any(comparison.targets for comparison in experiment.comparisons):
        margins = sorted(shown.cells.loc[shown.cells["primary"], "margin"].dropna().unique())
        lines.append(f"{LEGEND} Margin: {_either(margins)} points." if margins else LEGEND)
    return tuple(lines)


def _meanings(measures: Sequence[Measure]) -> str:
    """What a table's measures are."""
    if len(measures) == 1:
        return measures[0].meaning
    return "; ".join(f"{measure.title}: {measure.meaning}" for measure in measures)


def with_runs(document: Document, results: Results) -> Document:
    """The document, whose caption also says how the runs behind its cells were made, and whose fine print
    says where.
    """
    study, runs = document.study, _runs_of(document.cells, results)
    if runs.empty:
        return replace(document, caption=(*document.caption, "Nothing of this table has been run yet."))
    trained = runs[runs["usual"] & (runs["method"] != study.control)]
    tuned = runs[runs["search"].notna() & runs["setting"].str.startswith("tuned")]
    tuned = tuned.assign(mark=tuned["setting"].str.split(";").str[0])
    clashes = _clashes(study, runs)

    read_as = f"Test accuracy in percent, {AVERAGES[study.average]}; {reading_text(study.primary)}."
    protocol = protocol_text(set(trained["protocol"])) if len(trained) else "nothing is trained"
    searches = f", but for {tuned['mark'].nunique()} marked searches" if len(tuned) else ""
    caption = [read_as] if document.is_statistic else []
    caption += document.caption
    caption += [
        f"Protocol: {protocol}. Seeds: {ranges(runs['seed'])}. Default settings, not tuned{searches}."
    ]
    caption += ["Some runs are on other clients: see the notes."] if clashes else []

    environments = results.source.table("environments").sort_values("id").set_index("id")["description"]
    used = environments[environments.index.isin(runs["environment_id"])]
    imported = runs[runs["bundle"] != ""].drop_duplicates("run")
    bundles = parts_of(imported, ["bundle", "bundle_state"])
    origins = [
        ("Protocol", _protocols(study, trained)),
        *_searches(tuned, results),
        ("Not the same clients, and not to be compared", clashes),
        ("Partitions", _partitions(study, runs)),
        ("Environment", "; ".join(sorted({describe(json.loads(text)) for text in used} - {""}))),
        ("Imported", ", ".join(f"{name} ({len(part)} runs, {state})" for (name, state), part in bundles)),
    ]
    fine_print = [f"{head}: {text}." for head, text in origins if text]
    return replace(document, caption=tuple(caption), fine_print=(*document.fine_print, *fine_print))


def _runs_of(cells: pd.DataFrame, results: Results) -> pd.DataFrame:
    """The runs with numbers behind cells: a row a run and place, in the order of the cells.

    New columns: usual (of a line that the study has), protocol, split, draw (the seed by which the partition
    was drawn).
    """
    places = cells[["place", "usual"]].drop_duplicates("place")
    runs = places.merge(results.members[results.members["is_done"]], on="place")
    by_place = {place: protocol_of(results.settings[place]) for place in runs["place"].unique()}
    protocols = [by_place[place] for place in runs["place"]]
    seeds = zip(protocols, runs["seed"].astype(str), strict=True)
    return runs.assign(
        protocol=pd.Series(protocols, runs.index, dtype=object),
        split=[protocol[2] for protocol in protocols],
        draw=[seed if protocol[3] == PER_SEED else protocol[3] for protocol, seed in seeds],
    )


def protocol_of(settings: Settings) -> Protocol:
    """The protocol in a run's settings."""
    split = "/".join(f"{share:g}" for share in settings.get("protocol.split", ()))
    rounds, epochs = settings.get("protocol.rounds", 0), settings.get("protocol.local_epochs", 0)
    return int(rounds), int(epochs), split, str(settings.get(PARTITION_SEED))


def protocol_text(protocols: Collection[Protocol]) -> str:
    """What the protocols share, and the values of what they do not: ``100 rounds, 3 local epochs, split
    40/30/30, partition seed 123``.
    """
    rounds, epochs, splits, partition_seeds = (sorted(set(part)) for part in zip(*protocols, strict=True))
    return (
        f"{_either(rounds)} round{'' if rounds == [1] else 's'}, "
        f"{_either(epochs)} local epoch{'' if epochs == [1] else 's'}, "
        f"split {_either(splits)}, partition seed {_either(partition_seeds)}"
    )


def _either(values: Sequence[float | str]) -> str:
    """``1, 2 or 3``."""
    return enumeration([value if isinstance(value, str) else f"{value:g}" for value in values], "or")


def _protocols(study: Study, trained: pd.DataFrame) -> str:
    """The protocols of runs that train, each with its data sets."""
    datasets = trained.drop_duplicates(["dataset", "protocol"]).sort_values("dataset", kind="stable")
    titles: dict[Protocol, list[str]] = {}
    for dataset, protocol in zip(datasets["dataset"], datasets["protocol"], strict=True):
        titles.setdefault(protocol, []).append(study.title_of(dataset))
    return "; ".join(f"{', '.join(names)}: {protocol_text([one])}" for one, names in titles.items())


def _searches(tuned: pd.DataFrame, results: Results) -> list[tuple[str, str]]:
    """The marks of searches with their budgets, and whether they were on other clients."""
    found = set()
    for (mark, number), part in parts_of(tuned, ["mark", "search"]):
        record = results.searches[int(number)].record
        text = (
            f"{record.budget.trials} trials and {record.budget.client_epochs:,.0f} client epochs at most, by "
            f"validation accuracy of seeds {', '.join(map(str, record.seeds))}"
        )
        if (part["partition_hash"] != record.clients).any():
            text += (
                f", searched on the clients {record.clients[:8]} (partition "
                f"{record.spec.protocol.partition_seed}), reported on others, whose test items the search "
                "may have trained or validated on"
            )
        found.add((f"Tuned ('{mark}')", text))
    return sorted(found)


def _partitions(study: Study, runs: pd.DataFrame) -> str:
    """Beginnings of the partitions' hashes by column, or how many they are."""
    texts = []
    for where, hashes in parts_of(runs[runs["partition_hash"] != ""], WHERE):
        names = sorted(hashes["partition_hash"].str[:8].unique())
        text = ", ".join(names) if len(names) <= FEW else f"{len(names)} partitions"
        texts.append(f"{study.column_title(Column(*where))}: {text}")
    return "; ".join(texts)


def _clashes(study: Study, runs: pd.DataFrame) -> str:
    """Columns whose runs of one partition seed and split are on different clients."""
    several = runs.groupby([*WHERE, "split", "draw"])["partition_hash"].transform("nunique") > 1
    texts = []
    for (*where, _, seed), part in parts_of(runs[several], [*WHERE, "split", "draw"]):
        names = ", ".join(sorted(part["partition_hash"].str[:8].unique()))
        texts.append(f"{study.column_title(Column(*where))}, partition seed {seed}: {names}")
    return "; ".join(texts)


def describe(environment: Mapping[str, Any]) -> str:
    """The hardware and main versions of an environment on one line."""
    threads, packages = environment.get("threads"), environment.get("packages", {})
    parts = [
        environment.get("accelerator"),
        environment.get("processor"),
        f"{threads} thread{'' if threads == 1 else 's'}" if threads else "",
        f"Python {environment['python']}" if environment.get("python") else "",
        f"torch {packages['torch']}" if packages.get("torch") else "",
    ]
    return ", ".join(part for part in parts if part)


def notes(shown: DocumentCells) -> tuple[str, ...]:
    """Why cells are missing or not comparable, which runs are of older code or the user's own: one note a
    reason, with its lines and their columns, or how many they are. Columns of which nothing was run are named
    once.
    """
    cells = shown.cells.assign(column=shown.cells["data_title"] + ", " + shown.cells["federation"])
    count = cells.loc[cells["is_run_column"], "column"].nunique() * len(shown.experiment.points)

    def named(columns: pd.Series[str]) -> str:
        names = columns.unique()
        return "; ".join(names) if len(names) <= FEW else f"{len(names)} of {count} columns"

    remarks = _remarks(cells[cells["primary"]], shown.results.members)
    places = remarks["column"] + remarks["point"].map(lambda point: f", {point}" if point else "")
    columns = places.groupby([remarks["head"], remarks["line"]], sort=False).agg(named).rename("columns")
    texts = []
    for head, part in parts_of(columns.reset_index(), "head"):
        lines = part.groupby("columns", sort=False)["line"].agg(", ".join)
        texts.append(f"{head}: " + "; ".join(f"{titles} ({place})" for place, titles in lines.items()))
    idle = cells[~cells["is_run_column"]].sort_values("column_number")["column"].unique()
    return (*texts, f"nothing run yet: {'; '.join(idle)}") if len(idle) else tuple(texts)


def _remarks(cells: pd.DataFrame, members: pd.DataFrame) -> pd.DataFrame:
    """What is to be said of cells besides their numbers: a row a remark, with its ``head``, in the order of
    lines, columns and points.
    """
    cells = cells[(cells["comparison_number"] == 0) & cells["is_run_column"]]
    members = members[members["place"].isin(cells["place"])]
    reasons = cells["no_grade"].map(lambda reason: f" ({reason})" if reason else "")
    older_numbers, own_runs = _older_numbers(members), _own_runs(members)
    heads = [
        (cells["verdict"] + reasons).where((reasons != "") | (cells["n"] == 0), "").tolist(),
        cells["missing"].tolist(),
        [older_numbers.get(place, "") for place in cells["place"]],
        [own_runs.get(place, "") for place in cells["place"]],
    ]
    remarks = pd.concat([cells.assign(head=pd.Series(head, cells.index, dtype=object)) for head in heads])
    order = ["line_number", "column_number", "point_number"]
    return remarks[remarks["head"] != ""].sort_values(order, kind="stable")


def _older_numbers(members: pd.DataFrame) -> dict[int, str]:
    """Place -> the older numbers of the code that made its runs; nothing of a method that is not at hand."""
    texts = {}
    made_by = members.loc[members["is_done"], ["place", "method", "method_numerics", "engine_numerics"]]
    for place, method, method_version, engine_version in made_by.drop_duplicates().itertuples(index=False):
        kind = METHODS.all().get(method)
        versions = (
            ("method", method_version, kind.numerics if kind else 0),
            ("engine", engine_version, NUMERICS),
        )
        parts = [f"{name} numerics {version}, now {now}" for name, version, now in versions if version < now]
        if parts:
            texts[place] = f"older numbers ({' and '.join(parts)}; a sweep makes them again)"
    return texts


def _own_runs(members: pd.DataFrame) -> dict[int, str]:
    """Place -> which of its runs are the user's, neither shipped nor imported; nothing where all are."""
    is_own = (members["origin"] == "") & (members["bundle"] == "")
    own = members[is_own] if not is_own.all() else members[:0]
    return {place: f"{OWN_RUNS} (seeds {ranges(part['seed'])})" for place, part in parts_of(own, "place")}
