"""Captions and notes: what a reader must know of a table: what it measures, and how, on which clients and
where its runs were made, why cells are missing, and whose runs they are.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from bench.engine import NUMERICS
from bench.engine.methods import METHODS
from bench.frames.graded_cells import Results
from bench.frames.stored_runs import WHERE, parts_of, rows_of
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

IN_CAPTION = 3
"""Measures that a caption names; more stand in the fine print."""

NAMED = 3
"""Up to so many columns or partitions are named; more are counted."""

OWN_RUNS = "runs of your own, beside those that come with the suite"

Protocol = tuple[int, int, str, str]
"""Rounds, local epochs, split and partition seed."""


def statistic(
    study: Study,
    name: str,
    title: str,
    summary: str,
    cells: pd.DataFrame,
    results: Results,
    caption: Iterable[str],
    fine_print: Iterable[str],
    **rest: Any,
) -> Document:
    """The document of a statistic over cells, whose caption and fine print also say how they were run."""
    read_as = f"Test accuracy in percent, {AVERAGES[study.average]}; {reading_text(study.primary)}."
    runs = runs_of(cells, results)
    return Document(
        study,
        name,
        title,
        summary=summary,
        caption=(read_as, *caption, *_conditions(study, runs)),
        fine_print=(*fine_print, *_origins(study, runs, results)),
        cells=cells,
        **rest,
    )


def caption_of(shown: DocumentCells) -> tuple[str, ...]:
    """What is measured and how it is selected, what is marked, protocol, seeds and tuning."""
    study = shown.study
    measures = [measure for measure in shown.measures if not measure.is_extra]
    text = _meanings(measures) if len(measures) <= IN_CAPTION else "what each column is stands in the notes"
    text = f"{text[:1].upper()}{text[1:]}"
    if any(measure.by_reading for measure in measures):
        reading = measures[0].reading or study.primary
        text += f"; {STAGES[reading.stage]}, {RULES[reading.rule]}"
    text += f"; {AVERAGES[study.average]}, ± standard deviation over seeds."
    places = [PLACES] if any(measure.ranked for measure in measures) else []
    return (text, *places, *_conditions(study, runs_of(shown.cells, shown.results)))


def fine_print_of(shown: DocumentCells) -> tuple[str, ...]:
    """Measures, remarks and the verdicts' rule, and where the runs are from."""
    study, experiment = shown.study, shown.experiment
    measures = [measure for measure in shown.measures if not measure.is_extra]
    lines = [OTHER_ROWS] if any(measure.ranked for measure in shown.measures) else []
    lines += [f"{_meanings(measures)}."] if len(measures) > IN_CAPTION else []
    lines += (*study.remarks, *experiment.remarks) if experiment.competes else experiment.remarks
    if any(comparison.targets for comparison in experiment.comparisons):
        margins = sorted(shown.cells.loc[shown.cells["primary"], "margin"].dropna().unique())
        lines.append(f"{LEGEND} Margin: {_either(margins)} points." if margins else LEGEND)
    return (*lines, *_origins(study, runs_of(shown.cells, shown.results), shown.results))


def _meanings(measures: Sequence[Measure]) -> str:
    """What a table's measures are."""
    if len(measures) == 1:
        return measures[0].meaning
    return "; ".join(f"{measure.title}: {measure.meaning}" for measure in measures)


def runs_of(cells: pd.DataFrame, results: Results) -> pd.DataFrame:
    """The runs with numbers behind cells: a row a run and place, in the order of the cells.

    New columns: usual (of a line that the study has), protocol, split, draw (the seed by which the partition
    was drawn).
    """
    places = cells[["place", "usual"]].drop_duplicates("place")
    runs = places.merge(results.members[results.members["is_done"]], on="place")
    protocols = [protocol_of(results.settings[place]) for place in runs["place"]]
    seeds = zip(protocols, runs["seed"].astype(str), strict=True)
    return runs.assign(
        protocol=pd.Series(protocols, runs.index, dtype=object),
        split=[protocol[2] for protocol in protocols],
        draw=[seed if protocol[3] == PER_SEED else protocol[3] for protocol, seed in seeds],
    )


def _conditions(study: Study, runs: pd.DataFrame) -> tuple[str, ...]:
    """Protocol, seeds and tuning of runs, and whether some of them are on other clients."""
    if runs.empty:
        return ("Nothing of this table has been run yet.",)
    protocols = set(_trained(study, runs)["protocol"])
    text = protocol_text(protocols) if protocols else "nothing is trained"
    count = len(_tuned(runs)["setting"].unique())
    searches = f"marked searches ({count}); all else " if count else ""
    return (
        f"Protocol: {text}. Seeds: {ranges(runs['seed'])}. "
        f"Tuning: {searches}none (default settings, not tuned).",
        *(["Some runs are on other clients: see the notes."] if _clashes(study, runs) else []),
    )


def _trained(study: Study, runs: pd.DataFrame) -> pd.DataFrame:
    """The runs of the study's own lines that train."""
    return runs[runs["usual"] & (runs["method"] != study.control)]


def _tuned(runs: pd.DataFrame) -> pd.DataFrame:
    """The runs in settings that a search found; setting is the mark of their line."""
    tuned = runs[runs["search"].notna() & runs["setting"].str.startswith("tuned")]
    return tuned.assign(setting=tuned["setting"].str.split(";").str[0])


def _origins(study: Study, runs: pd.DataFrame, results: Results) -> list[str]:
    """Protocols by data set, searches, clients that differ, partitions, environments and bundles."""
    used = results.source.table("environments").sort_values("id")
    used = used[used["id"].isin(runs["environment_id"])]
    environments = sorted({describe(json.loads(text)) for text in used["description"]} - {""})
    imported = runs[runs["bundle"] != ""].drop_duplicates("run")
    bundles = [
        f"{name} ({len(part)} runs, {state})"
        for (name, state), part in parts_of(imported, ["bundle", "bundle_state"])
    ]
    parts = [
        ("Protocol", _protocols(study, runs)),
        *_searches(runs, results),
        ("Not the same clients, and not to be compared", _clashes(study, runs)),
        ("Partitions", _partitions(study, runs)),
        ("Environment", "; ".join(environments)),
        ("Imported", ", ".join(bundles)),
    ]
    return [f"{head}: {text}." for head, text in parts if text]


def _searches(runs: pd.DataFrame, results: Results) -> list[tuple[str, str]]:
    """The marks of searches with their budgets, and whether they were on other clients."""
    found = set()
    for (mark, number), part in parts_of(_tuned(runs), ["setting", "search"]):
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


def _protocols(study: Study, runs: pd.DataFrame) -> str:
    """The protocols of the runs that train, each with its data sets."""
    datasets: dict[Protocol, list[str]] = {}
    trained = _trained(study, runs).drop_duplicates(["dataset", "protocol"])
    for row in rows_of(trained.sort_values("dataset", kind="stable")):
        datasets.setdefault(row.protocol, []).append(study.title_of(row.dataset))
    return "; ".join(f"{', '.join(titles)}: {protocol_text([one])}" for one, titles in datasets.items())


def _partitions(study: Study, runs: pd.DataFrame) -> str:
    """Beginnings of the partitions' hashes by column, or how many they are."""
    texts = []
    for where, part in parts_of(runs[runs["partition_hash"] != ""], WHERE):
        hashes = sorted(part["partition_hash"].str[:8].unique())
        text = ", ".join(hashes) if len(hashes) <= NAMED else f"{len(hashes)} partitions"
        texts.append(f"{study.column_title(Column(*where))}: {text}")
    return "; ".join(texts)


def _clashes(study: Study, runs: pd.DataFrame) -> str:
    """Columns whose runs of one partition seed and split are on different clients."""
    texts = []
    for (*where, _, seed), part in parts_of(runs, [*WHERE, "split", "draw"]):
        hashes = sorted(part["partition_hash"].str[:8].unique())
        if len(hashes) > 1:
            texts.append(f"{study.column_title(Column(*where))}, partition seed {seed}: {', '.join(hashes)}")
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
    columns = [Column(*where) for where in shown.cells[WHERE].itertuples(index=False, name=None)]
    titles = [f"{shown.study.title_of(column.dataset)}, {shown.place_of(column)}" for column in columns]
    cells = shown.cells.assign(column=titles)
    remarks = _remarks(cells[cells["primary"]], shown.results.members)
    points = remarks["point"].map(lambda point: f", {point}" if point else "")
    remarks = remarks.assign(where=remarks["column"] + points)
    is_run = cells["is_run_column"]
    count = cells.loc[is_run, "column"].nunique() * len(shown.experiment.points)
    lines = [f"{head}: {_where(part, count)}" for head, part in parts_of(remarks, "head")]
    idle = cells[~is_run].sort_values("column_number")["column"].unique()
    if len(idle):
        lines.append(f"nothing run yet: {'; '.join(idle)}")
    return tuple(lines)


def _remarks(cells: pd.DataFrame, members: pd.DataFrame) -> pd.DataFrame:
    """What is to be said of cells besides their numbers: a row a remark, with its ``head``, in the order of
    lines, columns and points.
    """
    cells = cells[(cells["comparison_number"] == 0) & cells["is_run_column"]]
    members = members[members["place"].isin(cells["place"])]
    reasons = cells["no_grade"].map(lambda reason: f" ({reason})" if reason else "")
    has_reason = (reasons != "") | (cells["n"] == 0)
    older_numbers, own_runs = _older_numbers(members), _own_runs(members)
    heads = [
        (cells["verdict"] + reasons).where(has_reason, "").tolist(),
        cells["missing"].tolist(),
        [older_numbers.get(place, "") for place in cells["place"]],
        [own_runs.get(place, "") for place in cells["place"]],
    ]
    remarks = pd.concat([cells.assign(head=pd.Series(head, cells.index, dtype=object)) for head in heads])
    order = ["line_number", "column_number", "point_number"]
    return remarks[remarks["head"] != ""].sort_values(order, kind="stable")


def _where(remarks: pd.DataFrame, column_count: int) -> str:
    """The lines of a remark with the columns that they have in common."""
    lines_by_columns: dict[str, list[str]] = {}
    for title, part in remarks.groupby("line", sort=False):
        columns = part["where"].unique()
        is_short = len(columns) <= NAMED
        place = "; ".join(columns) if is_short else f"{len(columns)} of {column_count} columns"
        lines_by_columns.setdefault(place, []).append(str(title))
    return "; ".join(f"{', '.join(titles)} ({place})" for place, titles in lines_by_columns.items())


def _older_numbers(members: pd.DataFrame) -> dict[int, str]:
    """Place -> the older numbers of the code that made its runs; nothing of a method that is not at hand."""
    kinds, texts = METHODS.all(), {}
    for row in rows_of(members[members["is_done"]]):
        current = kinds[row.method].numerics if row.method in kinds else 0
        versions = (("method", row.method_numerics, current), ("engine", row.engine_numerics, NUMERICS))
        parts = [f"{name} numerics {version}, now {now}" for name, version, now in versions if version < now]
        if parts:
            texts[row.place] = f"older numbers ({' and '.join(parts)}; a sweep makes them again)"
    return texts


def _own_runs(members: pd.DataFrame) -> dict[int, str]:
    """Place -> which of its runs are the user's, neither shipped nor imported; nothing where all are."""
    is_own = (members["origin"] == "") & (members["bundle"] == "")
    own = members[is_own] if not is_own.all() else members[:0]
    return {place: f"{OWN_RUNS} (seeds {ranges(part['seed'])})" for place, part in parts_of(own, "place")}
