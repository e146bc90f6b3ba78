"""What a reader must know of a table or figure: how, on which clients and where its runs were made."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from bench.report.cells import Cell, Cells
from bench.report.results import Group, Results
from bench.report.settings import PARTITION, PER_SEED
from bench.report.study import Study
from bench.report.tuned import Search, budget, mark
from bench.report.verdicts import LEAST_PARTITIONS
from bench.report.wording import AVERAGES, RULES, STAGES, label, ranges

LEGEND = (
    "A verdict is 'reproduced' where measured and published mean differ by at most "
    "max(1 point, 2 sqrt(s_p² + s_m² + s_d²)), s_p the published, s_m the measured standard deviation, "
    f"s_d that of the means over partitions, where at least {LEAST_PARTITIONS} were run; else 'above' or "
    "'below'."
)

PLACES = (
    "Best (bold) and second best (underlined) are those of the cells with the seeds that most cells of their "
    "column hold; (n=2) marks a cell with other seeds."
)

OTHER_SETTINGS = " Rows in brackets have other settings, which they name."

LISTED = 5
"""Partitions of a column that a caption lists."""


def _protocol(group: Group) -> tuple[int, int, str]:
    get = group.settings.get
    split = "/".join(f"{share:g}" for share in get("protocol.split", ()))
    rounds, epochs = int(get("protocol.rounds", 0)), int(get("protocol.local_epochs", 0))
    text = f"{rounds} rounds, {epochs} local epochs, split {split}, partition seed {get(PARTITION)}"
    return rounds, epochs, text


def _protocols(study: Study, groups: list[Group]) -> str:
    """The protocols of the runs of the usual setting by data set, the most frequent first; others with the
    methods that have no other. Methods that do not train have none.
    """
    found: dict[str, dict[tuple[int, int, str], list[str]]] = defaultdict(lambda: defaultdict(list))
    for group in groups:
        if not group.setting and group.trains:
            found[group.column.dataset][_protocol(group)].append(group.method)
    parts = []
    for dataset, protocols in sorted(found.items()):
        (first, usual), *others = sorted(protocols.items(), key=lambda item: (-len(item[1]), item[0]))
        texts = [first[-1]]
        for (*_, text), methods in others:
            only = ", ".join(study.title_of(method) for method in dict.fromkeys(methods))
            texts.append(text if set(methods) & set(usual) else f"{text} ({only})")
        parts.append(f"{study.title_of(dataset)}: {'; also '.join(texts)}")
    return "; ".join(parts) or "nothing is trained"


def _partitions(study: Study, groups: Iterable[Group]) -> str:
    """Beginnings of the partitions' hashes by column; of many the first and their number."""
    found: dict[str, set[str]] = defaultdict(set)
    for group in groups:
        found[label(study, group.column)] |= {digest[:8] for digest in group.done["partition_hash"] if digest}
    parts = []
    for where, digests in sorted(found.items()):
        listed = ", ".join(sorted(digests)[:LISTED])
        more = f" and {len(digests) - LISTED} more" if len(digests) > LISTED else ""
        if listed:
            parts.append(f"{where}: {listed}{more}")
    return "; ".join(parts)


def _clashes(study: Study, groups: Iterable[Group]) -> str:
    """Columns whose runs of one partition seed and split are on different clients."""
    found: dict[tuple[str, str, int], set[str]] = defaultdict(set)
    for group in groups:
        drawn = group.settings["protocol.partition_seed"]
        for seed, digest in zip(group.done["seed"], group.done["partition_hash"], strict=True):
            where = label(study, group.column), str(group.settings["protocol.split"])
            found[*where, int(seed if drawn == PER_SEED else drawn)].add(digest[:8])
    return "; ".join(
        f"{where}, partition seed {seed}: {', '.join(sorted(digests))}"
        for (where, _, seed), digests in sorted(found.items())
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


def caption(cells: Cells, results: Results) -> tuple[str, ...]:
    """What a reader must know of a table: comparison, protocol, seeds, partitions, environment."""
    study, experiment = cells.study, cells.experiment
    lines = []
    for measure in cells.measures:
        reading = measure.reading or study.primary
        lines.append(
            f"{measure.title}: {measure.meaning}; {STAGES[reading.stage]}, {RULES[reading.rule]} "
            f"(stage {reading.stage}, rule {reading.rule})."
            if measure.by_reading
            else f"{measure.title}: {measure.meaning}."
        )
    lines.append(
        f"Accuracies are the {AVERAGES[study.average]}; ± is the sample standard deviation over seeds."
    )
    if any(measure.ranked for measure in cells.measures):
        lines.append(PLACES)
    lines += (*study.remarks, *experiment.remarks) if experiment.competes else experiment.remarks
    if any(comparison.targets for comparison in experiment.comparisons):
        lines += [LEGEND, tolerances(study, cells.primary)]
    return (*lines, *circumstances(study, cells.groups, results))


def tolerances(study: Study, cells: Iterable[Cell]) -> str:
    """Which columns' tolerances hold the spread over partitions, and over how many."""
    found: dict[str, set[int]] = defaultdict(set)
    for cell in cells:
        if cell.spread.std is not None:
            found[label(study, cell.column)].add(cell.spread.partitions)
    columns = "; ".join(f"{where}: {ranges(numbers)}" for where, numbers in sorted(found.items()))
    if not columns:
        return (
            f"No tolerance holds an s_d: no cell has runs on {LEAST_PARTITIONS} partitions that differ in "
            "nothing else. Where every seed draws its own partition, s_m holds that spread."
        )
    return f"Partitions behind s_d, which a verdict's tolerance holds: {columns}; nowhere else."


def circumstances(
    study: Study, every: Iterable[Group], results: Results, kept: Iterable[Search] = ()
) -> tuple[str, ...]:
    """How, with which seeds, on which partitions and where the runs of a document were made.

    ``kept`` are the searches that the default configuration won, where the document shows them.
    """
    groups = [group for group in every if not group.done.empty]
    if not groups:
        return ("Nothing of this table has been run yet.",)
    seeds = ranges(seed for group in groups for seed in group.seeds)
    shown = (*(group.tuned for group in groups if group.tuned), *kept)
    searches = sorted({(mark(search), budget(search)) for search in shown})
    lines = [
        f"Protocol: {_protocols(study, groups)}. Seeds: {seeds}.",
        *(f"Tuned ('{text}'): {what}." for text, what in searches),
        f"Tuning budget{' of all else' if searches else ''}: {study.tuning}."
        f"{OTHER_SETTINGS if any(group.setting for group in groups) else ''}",
    ]
    partitions = _partitions(study, groups)
    if partitions:
        lines.append(f"Partitions: {partitions}.")
    clashes = _clashes(study, groups)
    if clashes:
        lines.append(f"Not the same clients, and not to be compared, in {clashes}.")
    devices = sorted({device for group in groups for device in group.done["device"] if device})
    made = sorted({describe(environment) for environment in results.environments(groups)} - {""})
    if devices:
        lines.append(f"Devices: {', '.join(devices)}.")
    if made:
        lines.append("Environment: " + "; ".join(made) + ".")
    imported = Counter(
        origin
        for group in groups
        for origin in zip(group.done["bundle"], group.done["bundle_state"], strict=True)
        if origin[0]
    )
    if imported:
        bundles = ", ".join(
            f"{name} ({runs} runs, {state})" for (name, state), runs in sorted(imported.items())
        )
        lines.append(f"Imported: {bundles}.")
    return tuple(lines)
