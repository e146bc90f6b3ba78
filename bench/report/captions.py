"""What a reader must know of a table or figure: how, on which clients and where its runs were made."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bench.studies.cells import Cell, Cells
from bench.studies.groups import Group
from bench.studies.measures import Measure
from bench.studies.results import Results
from bench.studies.settings import PARTITION, PER_SEED
from bench.studies.study import Study
from bench.studies.tuned import Search, budget, mark
from bench.studies.verdicts import EQUIVALENCE_LEVEL, FLOOR, LEAST_RUNS, OWN, POOLED
from bench.studies.wording import AVERAGES, RULES, STAGES, label, ranges

LEGEND = (
    f"A verdict is 'reproduced' where the {100 * EQUIVALENCE_LEVEL:g} % interval of measured minus published "
    f"mean lies within the margin (at least {LEAST_RUNS} runs), else 'compatible' where the difference is at "
    f"most {FLOOR:g} point or what runs and another draw of clients explain, 'uninformative' where that "
    "interval also holds the majority class, else 'above' or 'below'."
)

PLACES = (
    "Best (bold) and second best (underlined) are those of the cells with the seeds that most cells of their "
    "column hold; (n=2) marks a cell with other seeds. Rows in brackets have other settings, which they name."
)

LISTED = 5
"""Partitions of a column that a caption lists."""

IN_CAPTION = 3
"""Measures and protocols that a caption names; more stand in the fine print."""


def caption(cells: Cells) -> tuple[str, ...]:
    """A table's caption: what is measured and how it is selected, protocol, seeds, tuning."""
    study = cells.study
    measures = [measure for measure in cells.measures if not measure.is_extra]
    reading = measures[0].reading or study.primary
    by_reading = any(measure.by_reading for measure in measures)
    note = f"; {STAGES[reading.stage]}, {RULES[reading.rule]}" if by_reading else ""
    text = _meanings(measures) if len(measures) <= IN_CAPTION else "what each column is stands in the notes"
    return (
        f"{text[:1].upper()}{text[1:]}{note}; {AVERAGES[study.average]}, ± standard deviation over seeds.",
        *conditions(study, cells.groups),
    )


def fine_print(cells: Cells, results: Results) -> tuple[str, ...]:
    """What else is to be known of a table: places, remarks, the verdicts' rule, and all of its runs."""
    study, experiment = cells.study, cells.experiment
    lines = [PLACES] if any(measure.ranked for measure in cells.measures) else []
    measures = [measure for measure in cells.measures if not measure.is_extra]
    lines += [f"{_meanings(measures)}."] if len(measures) > IN_CAPTION else []
    lines += (*study.remarks, *experiment.remarks) if experiment.competes else experiment.remarks
    if any(comparison.targets for comparison in experiment.comparisons):
        lines += [LEGEND, tolerances(study, cells.primary_cells)]
    return (*lines, *origins(study, cells.groups, results))


def _meanings(measures: Sequence[Measure]) -> str:
    """What a table's measures are."""
    if len(measures) == 1:
        return measures[0].meaning
    return "; ".join(f"{measure.title}: {measure.meaning}" for measure in measures)


def conditions(
    study: Study, all_groups: Iterable[Group], default_searches: Iterable[Search] = ()
) -> tuple[str, ...]:
    """Protocol, seeds and tuning of the runs of a document, and which of them are on other clients.

    ``default_searches`` are the searches that the default configuration won, where the document shows them.
    """
    groups = [group for group in all_groups if group.done]
    if not groups:
        return ("Nothing of this table has been run yet.",)
    protocols = _protocols(study, groups)
    rest_text = f"; and {len(protocols) - IN_CAPTION} more data sets" if len(protocols) > IN_CAPTION else ""
    protocol = "; ".join(protocols[:IN_CAPTION]) or "nothing is trained"
    clashes = _clashes(study, groups)
    searches = _searches(groups, default_searches)
    search_text = f"marked searches ({len(searches)}); all else " if searches else ""
    return (
        f"Protocol: {protocol}{rest_text}.",
        f"Seeds: {ranges(seed for group in groups for seed in group.seeds)}. "
        f"Tuning: {search_text}{study.tuning}.",
        *([f"Not the same clients, and not to be compared, in {clashes}."] if clashes else []),
    )


def origins(
    study: Study, all_groups: Iterable[Group], results: Results, default_searches: Iterable[Search] = ()
) -> tuple[str, ...]:
    """All protocols, searches, partitions, devices, environments and bundles of a document's runs."""
    groups = [group for group in all_groups if group.done]
    protocols, partitions = _protocols(study, groups), _partitions(study, groups)
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
        ("Protocols", "; ".join(protocols) if len(protocols) > IN_CAPTION else ""),
        *((f"Tuned ('{text}')", budget_text) for text, budget_text in _searches(groups, default_searches)),
        ("Partitions", partitions),
        ("Devices", ", ".join(devices)),
        ("Environment", "; ".join(environments)),
        ("Imported", ", ".join(bundle_texts)),
    )
    return tuple(f"{head}: {text}." for head, text in parts if text)


def _searches(groups: Iterable[Group], default_searches: Iterable[Search]) -> list[tuple[str, str]]:
    searches = (*(group.search for group in groups if group.search), *default_searches)
    return sorted({(mark(search), budget(search)) for search in searches})


def _protocol(group: Group) -> tuple[int, int, str]:
    get = group.settings.get
    split = "/".join(f"{share:g}" for share in get("protocol.split", ()))
    rounds, epochs = int(get("protocol.rounds", 0)), int(get("protocol.local_epochs", 0))
    text = f"{rounds} rounds, {epochs} local epochs, split {split}, partition seed {get(PARTITION)}"
    return rounds, epochs, text


def _protocols(study: Study, groups: Iterable[Group]) -> list[str]:
    """The protocols of the runs of the usual setting, a text for the data sets that share them: the most
    frequent first, others with the methods that have no other. Methods that do not train have none.
    """
    by_dataset: dict[str, dict[tuple[int, int, str], list[str]]] = defaultdict(lambda: defaultdict(list))
    for group in groups:
        if not group.setting and group.trains:
            by_dataset[group.column.dataset][_protocol(group)].append(group.method)
    datasets: dict[str, list[str]] = defaultdict(list)
    for dataset, protocols in sorted(by_dataset.items()):
        (main_protocol, main_methods), *other_protocols = sorted(
            protocols.items(), key=lambda item: (-len(item[1]), item[0])
        )
        texts = [main_protocol[-1]]
        for (*_, text), methods in other_protocols:
            titles = ", ".join(study.title_of(method) for method in dict.fromkeys(methods))
            texts.append(text if set(methods) & set(main_methods) else f"{text} ({titles})")
        datasets["; also ".join(texts)].append(study.title_of(dataset))
    return [f"{', '.join(titles)}: {text}" for text, titles in datasets.items()]


def _partitions(study: Study, groups: Iterable[Group]) -> str:
    """Beginnings of the partitions' hashes by column; of many the first and their number."""
    by_column: dict[str, set[str]] = defaultdict(set)
    for group in groups:
        by_column[label(study, group.column)] |= {
            digest[:8] for digest in group.done["partition_hash"] if digest
        }
    parts = []
    for place, digests in sorted(by_column.items()):
        hashes = ", ".join(sorted(digests)[:LISTED])
        rest_text = f" and {len(digests) - LISTED} more" if len(digests) > LISTED else ""
        if hashes:
            parts.append(f"{place}: {hashes}{rest_text}")
    return "; ".join(parts)


def _clashes(study: Study, groups: Iterable[Group]) -> str:
    """Columns whose runs of one partition seed and split are on different clients."""
    by_draw: dict[tuple[str, str, int], set[str]] = defaultdict(set)
    for group in groups:
        partition_seed = group.settings["protocol.partition_seed"]
        for seed, digest in zip(group.done["seed"], group.done["partition_hash"], strict=True):
            place = label(study, group.column), str(group.settings["protocol.split"])
            by_draw[*place, int(seed if partition_seed == PER_SEED else partition_seed)].add(digest[:8])
    return "; ".join(
        f"{place}, partition seed {seed}: {', '.join(sorted(digests))}"
        for (place, _, seed), digests in sorted(by_draw.items())
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
    partitions: dict[str, dict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    for cell in cells:
        if cell.spread.draws and cell.spread.std is not None:
            partitions[cell.spread.source][label(study, cell.column)].add(cell.spread.partitions)
    own_places = "; ".join(
        f"{place}: {ranges(numbers)}" for place, numbers in sorted(partitions[OWN].items())
    )
    pooled_places = ", ".join(sorted(partitions[POOLED]))
    parts = [f"from their own partitions {own_places}"] * bool(own_places)
    parts += [f"pooled over the study's cells {pooled_places}"] * bool(pooled_places)
    return f"Spread between partitions (s_d): {'; '.join(parts) or 'in no verdict'}."
