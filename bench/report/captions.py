"""Captions: what a reader must know of a table: what it measures, and how, on which clients and where its
runs were made.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from bench.grids.grid import PARTITION_SEED
from bench.report.document import Document
from bench.studies.cells import Cell, Cells, groups_of
from bench.studies.groups import Group
from bench.studies.measures import Measure
from bench.studies.results import Results
from bench.studies.settings import PER_SEED, Column, Settings
from bench.studies.study import Study
from bench.studies.tuned import SearchSummary, budget, mark
from bench.studies.verdicts import EQUIVALENCE_LEVEL, FLOOR, LEAST_RUNS, OWN, POOLED, SPLIT
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
    cells: Sequence[Cell],
    caption: Iterable[str],
    fine_print: Iterable[str],
    default_searches: Iterable[SearchSummary] = (),
    **rest: Any,
) -> Document:
    """The document of a statistic over cells, whose caption and fine print also say how they were run."""
    groups, searches = groups_of(cells), tuple(default_searches)
    read_as = f"Test accuracy in percent, {AVERAGES[study.average]}; {reading_text(study.primary)}."
    return Document(
        study,
        name,
        title,
        summary=summary,
        caption=(read_as, *caption, *conditions(study, groups, searches)),
        fine_print=(*fine_print, *origins(study, groups, cells[0].results, searches)),
        cells=tuple(cells),
        **rest,
    )


def caption(cells: Cells) -> tuple[str, ...]:
    """A table's caption: what is measured and how it is selected, what is marked, protocol, seeds, tuning."""
    study = cells.study
    measures = cells.primary_measures
    reading = measures[0].reading or study.primary
    by_reading = any(measure.by_reading for measure in measures)
    note = f"; {STAGES[reading.stage]}, {RULES[reading.rule]}" if by_reading else ""
    text = _meanings(measures) if len(measures) <= IN_CAPTION else "what each column is stands in the notes"
    has_places = any(measure.ranked for measure in measures)
    return (
        f"{text[:1].upper()}{text[1:]}{note}; {AVERAGES[study.average]}, ± standard deviation over seeds.",
        *([PLACES] if has_places else []),
        *conditions(study, groups_of(cells)),
    )


def fine_print(cells: Cells) -> tuple[str, ...]:
    """What else is to be known of a table: places, remarks, the verdicts' rule, and all of its runs."""
    study, experiment = cells.study, cells.experiment
    lines = [OTHER_ROWS] if any(measure.ranked for measure in cells.measures) else []
    measures = cells.primary_measures
    lines += [f"{_meanings(measures)}."] if len(measures) > IN_CAPTION else []
    lines += (*study.remarks, *experiment.remarks) if experiment.competes else experiment.remarks
    if any(comparison.targets for comparison in experiment.comparisons):
        margins = sorted({cell.evidence.margin for cell in cells.primary_cells if cell.evidence})
        lines += [f"{LEGEND} Margin: {_either(margins)} points." if margins else LEGEND]
        lines += [tolerances(study, cells.primary_cells)]
    return (*lines, *origins(study, groups_of(cells), cells.results))


def _meanings(measures: Sequence[Measure]) -> str:
    """What a table's measures are."""
    if len(measures) == 1:
        return measures[0].meaning
    return "; ".join(f"{measure.title}: {measure.meaning}" for measure in measures)


def conditions(
    study: Study, all_groups: Iterable[Group], default_searches: Iterable[SearchSummary] = ()
) -> tuple[str, ...]:
    """Protocol, seeds and tuning of the runs of a document, and whether some of them are on other clients;
    ``origins`` says the rest.

    ``default_searches`` are the searches that the default configuration won, where the document shows them.
    """
    groups = [group for group in all_groups if group.done]
    if not groups:
        return ("Nothing of this table has been run yet.",)
    protocols = {protocol_of(group.settings) for group in groups if _is_usual(group)}
    text = protocol_text(protocols) if protocols else "nothing is trained"
    search_count = len(_searches(groups, default_searches))
    search_text = f"marked searches ({search_count}); all else " if search_count else ""
    return (
        f"Protocol: {text}. "
        f"Seeds: {ranges(seed for group in groups for seed in group.seeds)}. "
        f"Tuning: {search_text}none (default settings, not tuned).",
        *(["Some runs are on other clients: see the notes."] if _clashes(study, groups) else []),
    )


def origins(
    study: Study,
    all_groups: Iterable[Group],
    results: Results,
    default_searches: Iterable[SearchSummary] = (),
) -> tuple[str, ...]:
    """Protocols by data set, searches, clients that differ, partitions, devices, environments and bundles of
    a document's runs.
    """
    groups = [group for group in all_groups if group.done]
    devices = sorted({device for group in groups for device in group.done["device"] if device})
    environments = sorted({describe(environment) for environment in results.environments(groups)} - {""})
    bundles = Counter(
        run
        for group in groups
        for run in zip(group.done["bundle"], group.done["bundle_state"], strict=True)
        if run[0]
    )
    bundle_texts = [f"{name} ({runs} runs, {state})" for (name, state), runs in sorted(bundles.items())]
    parts = (
        ("Protocol", "; ".join(_protocols(study, groups))),
        *((f"Tuned ('{text}')", budget_text) for text, budget_text in _searches(groups, default_searches)),
        ("Not the same clients, and not to be compared", _clashes(study, groups)),
        ("Partitions", _partitions(study, groups)),
        ("Devices", ", ".join(devices)),
        ("Environment", "; ".join(environments)),
        ("Imported", ", ".join(bundle_texts)),
    )
    return tuple(f"{head}: {text}." for head, text in parts if text)


def _searches(groups: Iterable[Group], default_searches: Iterable[SearchSummary]) -> list[tuple[str, str]]:
    searches = (*(group.search for group in groups if group.search), *default_searches)
    return sorted({(mark(search), budget(search)) for search in searches})


def _is_usual(group: Group) -> bool:
    """Whether a group trains, in the usual setting."""
    return not group.setting and group.trains


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


def _protocols(study: Study, groups: Iterable[Group]) -> list[str]:
    """The protocols of the runs of the usual setting, a text for the data sets that share them: the most
    frequent first, others with the methods that have no other. Methods that do not train have none.
    """
    by_dataset: dict[str, dict[Protocol, list[str]]] = defaultdict(lambda: defaultdict(list))
    for group in groups:
        if _is_usual(group):
            by_dataset[group.column.dataset][protocol_of(group.settings)].append(group.method)
    datasets: dict[str, list[str]] = defaultdict(list)
    for dataset, protocols in sorted(by_dataset.items()):
        (main_protocol, main_methods), *other_protocols = sorted(
            protocols.items(), key=lambda item: (-len(item[1]), item[0])
        )
        texts = [protocol_text([main_protocol])]
        for protocol, methods in other_protocols:
            text = protocol_text([protocol])
            titles = ", ".join(study.title_of(method) for method in dict.fromkeys(methods))
            texts.append(text if set(methods) & set(main_methods) else f"{text} ({titles})")
        datasets["; also ".join(texts)].append(study.title_of(dataset))
    return [f"{', '.join(titles)}: {text}" for text, titles in datasets.items()]


def _partitions(study: Study, groups: Iterable[Group]) -> str:
    """Beginnings of the partitions' hashes by column; of many the first and their number."""
    by_column: dict[Column, set[str]] = defaultdict(set)
    for group in groups:
        by_column[group.column] |= {digest[:8] for digest in group.done["partition_hash"] if digest}
    parts = []
    for column, digests in sorted(by_column.items()):
        hashes = ", ".join(sorted(digests)[:LISTED])
        rest_text = f" and {len(digests) - LISTED} more" if len(digests) > LISTED else ""
        if hashes:
            parts.append(f"{study.column_title(column)}: {hashes}{rest_text}")
    return "; ".join(parts)


def _clashes(study: Study, groups: Iterable[Group]) -> str:
    """Columns whose runs of one partition seed and split are on different clients."""
    by_draw: dict[tuple[Column, str, int], set[str]] = defaultdict(set)
    for group in groups:
        partition_seed = group.settings[PARTITION_SEED]
        for seed, digest in zip(group.done["seed"], group.done["partition_hash"], strict=True):
            place = group.column, str(group.settings["protocol.split"])
            by_draw[*place, int(seed if partition_seed == PER_SEED else partition_seed)].add(digest[:8])
    return "; ".join(
        f"{study.column_title(column)}, partition seed {seed}: {', '.join(sorted(digests))}"
        for (column, _, seed), digests in sorted(by_draw.items())
        if len(digests) > 1
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


def tolerances(study: Study, cells: Iterable[Cell]) -> str:
    """Which columns' verdicts allow for the spread between partitions, and where that is from."""
    partitions: dict[str, dict[Column, set[int]]] = defaultdict(lambda: defaultdict(set))
    for cell in cells:
        if cell.spread.draws and cell.spread.std is not None:
            partitions[cell.spread.source][cell.column].add(cell.spread.partitions)
    own_places = "; ".join(
        f"{study.column_title(column)}: {ranges(numbers)}"
        for column, numbers in sorted(partitions[OWN].items())
    )
    pooled_places = "; ".join(map(study.column_title, sorted(partitions[POOLED])))
    parts = [f"from their own partitions: {own_places}"] * bool(own_places)
    split_places = "; ".join(map(study.column_title, sorted(partitions[SPLIT])))
    parts += [f"pooled over the study's cells: {pooled_places}"] * bool(pooled_places)
    parts += [f"from draws of the split alone: {split_places}"] * bool(split_places)
    return f"Spread between partitions (s_d): {'; '.join(parts) or 'in no verdict'}."
