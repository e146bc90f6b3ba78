"""Captions and notes: what a reader must know of a table: what it measures, and how, on which clients and
where its runs were made, why cells are missing, and whose runs they are.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from bench.engine import NUMERICS
from bench.engine.methods import METHODS
from bench.frames.graded_cells import Results
from bench.frames.stored_runs import WHERE, mark, parts_of, rows_of
from bench.frames.verdicts import EQUIVALENCE_LEVEL, FLOOR, LEAST_RUNS
from bench.grids.grid import PARTITION_SEED
from bench.report.document import Document, DocumentCells
from bench.studies.measures import Measure
from bench.studies.settings import PER_SEED, Column, Settings
from bench.studies.study import Study
from bench.studies.wording import AVERAGES, RULES, STAGES, enumeration, ranges, reading_text
from bench.tune.record import Record

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

LISTED = 5
"""Partitions of a column that a caption lists."""

IN_CAPTION = 3
"""Measures that a caption names; more stand in the fine print."""

SIDE_BY_SIDE = 5
"""Values of a part of the protocol that a caption names; of more it names the first and the last."""

OWN_RUNS = "runs of your own, beside those that come with the suite"

NAMED = 3
"""Up to so many columns a note names."""

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
    default_searches: bool = False,
    **rest: Any,
) -> Document:
    """The document of a statistic over cells, whose caption and fine print also say how they were run.

    ``default_searches``: those that the default configuration won count as searches, too.
    """
    read_as = f"Test accuracy in percent, {AVERAGES[study.average]}; {reading_text(study.primary)}."
    runs = runs_of(cells, results, default_searches)
    clashes = clashes_of(study, runs)
    return Document(
        study,
        name,
        title,
        summary=summary,
        caption=(read_as, *caption, *conditions(runs, clashes)),
        fine_print=(*fine_print, *origins(study, runs, clashes, results)),
        cells=cells,
        **rest,
    )


def caption_and_fine_print(shown: DocumentCells) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """A table's caption, and what else is to be known of it.

    The caption says what is measured and how it is selected, what is marked, protocol, seeds and tuning.
    """
    runs = runs_of(shown.cells, shown.results)
    clashes = clashes_of(shown.study, runs)
    fine_print = (*_fine_print(shown), *origins(shown.study, runs, clashes, shown.results))
    return (*_caption(shown), *conditions(runs, clashes)), fine_print


def _caption(shown: DocumentCells) -> tuple[str, ...]:
    """What is measured and how it is selected, and what is marked."""
    study = shown.study
    measures = [measure for measure in shown.measures if not measure.is_extra]
    reading = measures[0].reading or study.primary
    by_reading = any(measure.by_reading for measure in measures)
    note = f"; {STAGES[reading.stage]}, {RULES[reading.rule]}" if by_reading else ""
    text = _meanings(measures) if len(measures) <= IN_CAPTION else "what each column is stands in the notes"
    has_places = any(measure.ranked for measure in measures)
    return (
        f"{text[:1].upper()}{text[1:]}{note}; {AVERAGES[study.average]}, ± standard deviation over seeds.",
        *([PLACES] if has_places else []),
    )


def _fine_print(shown: DocumentCells) -> list[str]:
    """Places, remarks and the verdicts' rule."""
    study, experiment = shown.study, shown.experiment
    lines = [OTHER_ROWS] if any(measure.ranked for measure in shown.measures) else []
    measures = [measure for measure in shown.measures if not measure.is_extra]
    lines += [f"{_meanings(measures)}."] if len(measures) > IN_CAPTION else []
    lines += (*study.remarks, *experiment.remarks) if experiment.competes else experiment.remarks
    if any(comparison.targets for comparison in experiment.comparisons):
        primary = shown.cells[shown.cells["primary"]]
        margins = sorted(primary["margin"].dropna().unique())
        lines += [f"{LEGEND} Margin: {_either(margins)} points." if margins else LEGEND]
    return lines


def _meanings(measures: Sequence[Measure]) -> str:
    """What a table's measures are."""
    if len(measures) == 1:
        return measures[0].meaning
    return "; ".join(f"{measure.title}: {measure.meaning}" for measure in measures)


def runs_of(cells: pd.DataFrame, results: Results, default_searches: bool = False) -> pd.DataFrame:
    """The runs with numbers behind cells, a row a run and method setting, in the order of the cells.

    New columns: protocol, draw (the seed by which the partition was drawn), is_usual (the method trains, in
    its usual settings), search_mark and budget of the search that found the settings, empty without one.
    """
    members = results.members[results.members["is_done"]]
    is_main = results.places.set_index("place")["main"]
    order = pd.Series(range(len(cells)), cells["place"]).groupby(level=0).min()
    runs = members[members["place"].isin(order.index)]
    runs = runs.assign(order=runs["place"].map(order), main=runs["place"].map(is_main))
    # Lines of several methods may show the same runs.
    runs = runs.sort_values("order", kind="stable").drop_duplicates(["document", "method", "setting", "run"])
    settings = {place: results.settings[place] for place in runs["place"].unique()}
    partition_seeds = runs["place"].map({place: values[PARTITION_SEED] for place, values in settings.items()})
    kinds = METHODS.all()
    trains = pd.Series([name not in kinds or kinds[name].trains for name in runs["method"]], runs.index)
    runs = runs.assign(
        protocol=runs["place"].map({place: protocol_of(values) for place, values in settings.items()}),
        draw=runs["seed"].where(partition_seeds == PER_SEED, partition_seeds),
        is_usual=trains & ((runs["setting"] == "") | ~runs["main"]),
        search_mark="",
        budget="",
    )
    is_tuned = runs["main"] & runs["search"].notna() & (default_searches | (runs["setting"] != ""))
    tuned = runs[is_tuned]
    searches = [results.searches[number] for number in tuned["search"]]
    is_elsewhere = tuned["partition_hash"] != [search.record.clients for search in searches]
    is_elsewhere = is_elsewhere.groupby(tuned["place"]).transform("any")
    marks = []
    for setting, search in zip(tuned["setting"], searches, strict=True):
        used, granted = search.record.used.trials, search.record.budget.trials
        # Cells of several searches may share the mark of their line.
        marks.append(setting.partition(";")[0] or mark(search.own, used, used, granted))
    runs.loc[is_tuned, "search_mark"] = marks
    runs.loc[is_tuned, "budget"] = [
        budget(search.record, elsewhere) for search, elsewhere in zip(searches, is_elsewhere, strict=True)
    ]
    return runs


def budget(record: Record, on_other_clients: bool) -> str:
    """The budget that a search was granted, and whether it was on other clients than those reported on."""
    seeds = ", ".join(map(str, record.seeds))
    text = (
        f"{record.budget.trials} trials and {record.budget.client_epochs:,.0f} client epochs at most, by "
        f"validation accuracy of seed{'s' if len(record.seeds) > 1 else ''} {seeds}"
    )
    if not on_other_clients:
        return text
    return (
        f"{text}, searched on the clients {record.clients[:8]} (partition "
        f"{record.spec.protocol.partition_seed}), reported on others, whose test items the search may have "
        "trained or validated on"
    )


def conditions(runs: pd.DataFrame, clashes: str) -> tuple[str, ...]:
    """Protocol, seeds and tuning of the runs of a document, and whether some of them are on other clients
    (``clashes``, as ``clashes_of`` says it); ``origins`` says the rest.
    """
    if runs.empty:
        return ("Nothing of this table has been run yet.",)
    protocols = set(runs.loc[runs["is_usual"], "protocol"])
    text = protocol_text(protocols) if protocols else "nothing is trained"
    search_count = len(_searches(runs))
    search_text = f"marked searches ({search_count}); all else " if search_count else ""
    return (
        f"Protocol: {text}. "
        f"Seeds: {ranges(runs['seed'])}. "
        f"Tuning: {search_text}none (default settings, not tuned).",
        *(["Some runs are on other clients: see the notes."] if clashes else []),
    )


def origins(study: Study, runs: pd.DataFrame, clashes: str, results: Results) -> tuple[str, ...]:
    """Protocols by data set, searches, clients that differ (``clashes``), partitions, devices, environments
    and bundles of a document's runs.
    """
    all_environments = results.source.environments().sort_values("id")
    used = all_environments[all_environments["id"].isin(runs["environment_id"])]
    environments = sorted({describe(json.loads(text)) for text in used["description"]} - {""})
    imported = runs[runs["bundle"] != ""].drop_duplicates("run")
    bundles = [
        f"{name} ({len(part)} runs, {state})"
        for (name, state), part in imported.groupby(["bundle", "bundle_state"])
    ]
    parts = (
        ("Protocol", "; ".join(_protocols(study, runs))),
        *((f"Tuned ('{text}')", budget_text) for text, budget_text in _searches(runs)),
        ("Not the same clients, and not to be compared", clashes),
        ("Partitions", _partitions(study, runs)),
        ("Devices", ", ".join(sorted({device for device in runs["device"] if device}))),
        ("Environment", "; ".join(environments)),
        ("Imported", ", ".join(bundles)),
    )
    return tuple(f"{head}: {text}." for head, text in parts if text)


def _searches(runs: pd.DataFrame) -> list[tuple[str, str]]:
    """The marks of searches with their budgets."""
    tuned = runs[runs["search_mark"] != ""]
    return sorted(set(zip(tuned["search_mark"], tuned["budget"], strict=True)))


def protocol_of(settings: Settings) -> Protocol:
    """The protocol in a run's settings."""
    get = settings.get
    split = "/".join(f"{share:g}" for share in get("protocol.split", ()))
    rounds, epochs = int(get("protocol.rounds", 0)), int(get("protocol.local_epochs", 0))
    return rounds, epochs, split, str(get(PARTITION_SEED))


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
    """``1, 2 or 3``; of many ``1 to 20``."""
    texts = [value if isinstance(value, str) else f"{value:g}" for value in values]
    return f"{texts[0]} to {texts[-1]}" if len(texts) > SIDE_BY_SIDE else enumeration(texts, "or")


def _protocols(study: Study, runs: pd.DataFrame) -> list[str]:
    """The protocols of the runs of the usual setting, a text for the data sets that share them: the most
    frequent first, others with the methods that have no other. Methods that do not train have none.
    """
    usual = runs[runs["is_usual"]].drop_duplicates(["place", "protocol"])
    datasets: dict[str, list[str]] = defaultdict(list)
    for dataset, part in parts_of(usual, "dataset"):
        protocols = sorted(parts_of(part, "protocol"), key=lambda item: (-len(item[1]), item[0]))
        (main_protocol, main_part), *other_protocols = protocols
        texts = [protocol_text([main_protocol])]
        for protocol, others in other_protocols:
            text = protocol_text([protocol])
            titles = ", ".join(map(study.title_of, others["method"].unique()))
            is_shared = others["method"].isin(main_part["method"]).any()
            texts.append(text if is_shared else f"{text} ({titles})")
        datasets["; also ".join(texts)].append(study.title_of(dataset))
    return [f"{', '.join(titles)}: {text}" for text, titles in datasets.items()]


def _partitions(study: Study, runs: pd.DataFrame) -> str:
    """Beginnings of the partitions' hashes by column; of many the first and their number."""
    parts = []
    partitions = runs.loc[runs["partition_hash"] != "", [*WHERE, "partition_hash"]].drop_duplicates()
    for where, part in parts_of(partitions, WHERE):
        hashes = sorted(part["partition_hash"].str[:8].unique())
        rest_text = f" and {len(hashes) - LISTED} more" if len(hashes) > LISTED else ""
        parts.append(f"{study.column_title(Column(*where))}: {', '.join(hashes[:LISTED])}{rest_text}")
    return "; ".join(parts)


def clashes_of(study: Study, runs: pd.DataFrame) -> str:
    """Columns whose runs of one partition seed and split are on different clients."""
    place = [*WHERE, "split", "draw"]
    splits = [split for _, _, split, _ in runs["protocol"]]
    partitions = runs[[*WHERE, "draw"]].assign(split=splits, partition=runs["partition_hash"].str[:8])
    partitions = partitions.drop_duplicates()
    clashing = partitions[partitions.duplicated(place, keep=False)].sort_values("partition")
    return "; ".join(
        f"{study.column_title(Column(*where))}, partition seed {seed}: {', '.join(part['partition'])}"
        for (*where, _, seed), part in parts_of(clashing, place)
    )


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
    """Why cells are missing or not comparable: one note a verdict and reason, or version of numbers, with
    its lines and their columns, or how many they are; and whose runs they are where a table has the user's
    and others. Columns of which nothing was run are named once.
    """
    cells = shown.cells
    columns = cells.sort_values("column_number").drop_duplicates("column_number")
    titles = {
        row.column_number: _title(shown, Column(row.dataset, row.scenario, row.clients))
        for row in rows_of(columns)
    }
    first = cells[cells["primary"] & (cells["comparison_number"] == 0)]
    members = shown.results.members
    members = members[members["place"].isin(cells.loc[cells["primary"], "place"])]
    texts = _older_numerics(members), _own_runs(members)
    remarks = _remarks(first[first["is_run_column"]], *texts)
    where = remarks["column_number"].map(titles).astype(object)
    remarks = remarks.assign(where=where.where(remarks["point"] == "", where + ", " + remarks["point"]))
    count = int(columns["is_run_column"].sum()) * len(shown.experiment.points)
    lines = [f"{head}: {_where(part, count)}" for head, part in remarks.groupby("head")]
    idle = [titles[number] for number in columns.loc[~columns["is_run_column"], "column_number"]]
    if idle:
        lines.append(f"nothing run yet: {'; '.join(idle)}")
    if other_runs := _other_runs(shown):
        lines.append(
            f"{other_runs} further runs of these columns stand in the tables of their experiments, "
            "were made under attack or with newcomers, or have further seeds beside all planned ones"
        )
    return tuple(lines)


def _title(shown: DocumentCells, column: Column) -> str:
    return f"{shown.study.title_of(column.dataset)}, {shown.place_of(column)}"


def _remarks(
    cells: pd.DataFrame, older_numerics: Mapping[int, str], own_runs: Mapping[int, str]
) -> pd.DataFrame:
    """What is to be said of cells besides their numbers: a row a remark, with its ``head``, in the order of
    lines, columns and points; ``older_numerics`` and ``own_runs`` are by place.
    """
    no_grade = cells["no_grade"].astype(object)
    states = cells["verdict"].where(no_grade == "", cells["verdict"] + " (" + no_grade + ")")
    heads = (
        states.where((no_grade != "") | (cells["n"] == 0), ""),
        cells["missing"],
        [older_numerics.get(place, "") for place in cells["place"]],
        [own_runs.get(place, "") for place in cells["place"]],
    )
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


def _older_numerics(members: pd.DataFrame) -> dict[int, str]:
    """Which runs of a place were made by code of older numbers; nothing of a method that is not at hand."""
    done = members[members["is_done"]]
    oldest = done.groupby("place").agg(
        method=("method", "first"), of_method=("method_numerics", "min"), of_engine=("engine_numerics", "min")
    )
    kinds, texts = METHODS.all(), {}
    for row in rows_of(oldest):
        current = kinds[row.method].numerics if row.method in kinds else 0
        versions = (("method", row.of_method, current), ("engine", row.of_engine, NUMERICS))
        parts = [f"{name} numerics {version}, now {now}" for name, version, now in versions if version < now]
        if parts:
            texts[row.Index] = f"older numbers ({' and '.join(parts)}; a sweep makes them again)"
    return texts


def _own_runs(members: pd.DataFrame) -> dict[int, str]:
    """Which runs of a place are the user's, made here and neither shipped nor imported; nothing where all
    runs of the table are.
    """
    is_own = (members["origin"] == "") & (members["bundle"] == "")
    if is_own.all():
        return {}
    texts = {}
    has_own = members[["place", "seed"]].assign(is_own=is_own)[
        members["place"].isin(members["place"][is_own])
    ]
    for place, part in parts_of(has_own, "place"):
        own_seeds = part.loc[part["is_own"], "seed"].tolist()
        if part["is_own"].all():
            texts[place] = OWN_RUNS
        else:
            texts[place] = f"{OWN_RUNS} (seeds {ranges(own_seeds)} of {ranges(part['seed'].tolist())})"
    return texts


def _other_runs(shown: DocumentCells) -> int:
    """Number of runs of a main table's columns and methods that have no line in it."""
    places, runs, members = shown.results.places, shown.results.runs, shown.results.members
    is_here = (places["study"] == shown.study.name) & (places["document"] == shown.experiment.name)
    found = places[is_here & places["found"]]
    candidates = runs[runs["method"].isin(found["reads"])].merge(found[WHERE].drop_duplicates(), on=WHERE)
    shown_runs = members.loc[members["place"].isin(found["place"]), "run"]
    return int((~candidates["run"].isin(shown_runs)).sum())
