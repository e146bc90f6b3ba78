"""Captions: what a reader must know of a table: what it measures, and how, on which clients and where its
runs were made.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import pandas as pd

from bench.engine.methods import METHODS
from bench.frames.graded_cells import Results
from bench.frames.spread import OWN, POOLED, SPLIT
from bench.frames.stored_runs import WHERE, mark, parts_of
from bench.frames.verdicts import EQUIVALENCE_LEVEL, FLOOR, LEAST_RUNS
from bench.grids.grid import PARTITION_SEED
from bench.report.document import Document, DocumentCells
from bench.studies.measures import Measure
from bench.studies.settings import PER_SEED, Column, Settings
from bench.studies.study import Study
from bench.studies.wording import AVERAGES, RULES, STAGES, enumeration, ranges, reading_text
from bench.tune.apply import Configuration
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
        lines += [tolerances(study, primary)]
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
    protocols = {place: protocol_of(values) for place, values in settings.items()}
    partition_seeds = runs["place"].map({place: values[PARTITION_SEED] for place, values in settings.items()})
    kinds = METHODS.all()
    trains = pd.Series([name not in kinds or kinds[name].trains for name in runs["method"]], runs.index)
    is_tuned = runs["main"] & runs["search"].notna() & (default_searches | (runs["setting"] != ""))
    searches = [results.searches[number] for number in runs.loc[is_tuned, "search"]]
    return runs.assign(
        protocol=runs["place"].map(protocols),
        draw=runs["seed"].where(partition_seeds == PER_SEED, partition_seeds),
        is_usual=trains & ((runs["setting"] == "") | ~runs["main"]),
        search_mark=_by_run(runs, is_tuned, _marks(runs[is_tuned], searches)),
        budget=_by_run(runs, is_tuned, _budgets(runs[is_tuned], searches)),
    )


def _by_run(runs: pd.DataFrame, mask: pd.Series[bool], texts: Sequence[str]) -> pd.Series[Any]:
    return pd.Series(texts, runs.index[mask], dtype=object).reindex(runs.index, fill_value="")


def _marks(runs: pd.DataFrame, searches: Sequence[Configuration]) -> list[str]:
    """The marks of searches behind runs: those of their lines, which cells of several searches may share."""
    marks = []
    for setting, search in zip(runs["setting"], searches, strict=True):
        used, granted = search.record.used.trials, search.record.budget.trials
        marks.append(setting.partition(";")[0] or mark(search.own, used, used, granted))
    return marks


def _budgets(runs: pd.DataFrame, searches: Sequence[Configuration]) -> list[str]:
    """What searches were allowed, and whether some of a cell's runs are on other clients than its search."""
    clients = pd.Series([search.record.clients for search in searches], runs.index, dtype=object)
    is_elsewhere = (runs["partition_hash"] != clients).groupby(runs["place"]).transform("any")
    return [
        budget(search.record, elsewhere) for search, elsewhere in zip(searches, is_elsewhere, strict=True)
    ]


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


def tolerances(study: Study, cells: pd.DataFrame) -> str:
    """Which columns' verdicts allow for the spread between partitions, and where that is from."""
    places: dict[str, list[str]] = {OWN: [], POOLED: [], SPLIT: []}
    spread = cells[cells["s_d"].notna()]
    for (source, *where), part in parts_of(spread, ["s_d_source", *WHERE]):
        title = study.column_title(Column(*where))
        places[source].append(f"{title}: {ranges(part['partitions'])}" if source == OWN else title)
    heads = {
        OWN: "from their own partitions",
        POOLED: "pooled over the study's cells",
        SPLIT: "from draws of the split alone",
    }
    parts = [f"{head}: {'; '.join(places[source])}" for source, head in heads.items() if places[source]]
    return f"Spread between partitions (s_d): {'; '.join(parts) or 'in no verdict'}."
