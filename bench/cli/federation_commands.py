"""``bench data stats | export | import``: what the clients are, and taking them elsewhere."""

from __future__ import annotations

import json
from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from cyclopts.validators import Number
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from bench import paths, registry
from bench.errors import NoDataError

if TYPE_CHECKING:
    from bench.federation.dataset_tables import DatasetTable, Statistic

WIDTH = 100
"""Columns that the widest table takes, whatever the terminal says."""

DatasetOption = Annotated[str, Parameter(name=["--dataset", "-d"])]


def _number(value: float | None, quantity: str) -> str:
    if value is None:
        return "-"
    if quantity in ("clustering", "heterogeneity", "training_ratio"):
        return f"{value:.3f}"
    return f"{value:,.0f}" if value.is_integer() else f"{value:,.1f}"


def _grid(table: DatasetTable) -> Table:
    title = f"{table.title} ({table.dataset})"
    return Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 0))


def _setting(statistic: Statistic) -> tuple[str, int]:
    return statistic.scenario, statistic.clients


def _setting_name(scenario: str, clients: int) -> str:
    from bench.federation.dataset_tables import WHOLE

    return "whole" if scenario == WHOLE else f"{scenario} {clients}"


def _subgraph_grid(table: DatasetTable) -> Table:
    """One row a setting: every setting has the same quantities."""
    from bench.federation.dataset_tables import SUBGRAPH_QUANTITIES

    grid = _grid(table)
    grid.add_column("clients", no_wrap=True)
    for quantity in SUBGRAPH_QUANTITIES:
        grid.add_column(quantity.replace("_", " "), justify="right")
        grid.add_column("publ.", justify="right", style="dim")
    for setting, statistics in groupby(table.statistics, _setting):
        cells = [
            _number(value, statistic.quantity)
            for statistic in statistics
            for value in (statistic.measured, statistic.published)
        ]
        grid.add_row(_setting_name(*setting), *cells)
    return grid


def _hyperedge_grid(table: DatasetTable) -> Table:
    """One row a number: the whole data set has other quantities than its clients."""
    grid = _grid(table)
    grid.add_column("clients", no_wrap=True)
    grid.add_column("quantity", no_wrap=True)
    for column in ("measured", "std"):
        grid.add_column(column, justify="right")
    grid.add_column("publ.", justify="right", style="dim")
    for row in table.statistics:
        quantity, published = row.quantity.replace("_", " "), _number(row.published, row.quantity)
        measured = (_number(row.measured, row.quantity), "")
        if row.deviation is not None:
            measured = (f"{row.measured:,.1f}", f"{row.deviation:,.1f}")
        grid.add_row(_setting_name(*_setting(row)), quantity, *measured, published)
    return grid


def _print_table(console: Console, table: DatasetTable) -> None:
    if table.paper != "fedhgn":
        console.print(_subgraph_grid(table))
        return

    from bench.federation.dataset_tables import PARTITIONS

    notes = [f"Counts with std: over {PARTITIONS} partitions (ddof 1); the paper prints one."]
    if registry.dataset(table.dataset).family == "graph":
        notes.append(
            "Edges: once, no self-loops; the paper's have them, Cora's and CiteSeer's also both directions."
        )
    else:
        notes.append("The paper counts hyperedges before cleaning, border hyperedges after it.")
    console.print(_hyperedge_grid(table), *notes, sep="\n")


def stats(
    *,
    dataset: DatasetOption | None = None,
    data_root: Path | None = None,
    as_json: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> None:
    """Print the papers' data set tables, measured beside published.

    FedSheafHN's graphs: counts are means over clients (edges in both directions), clustering is the
    mean local coefficient, heterogeneity the median Jensen-Shannon distance between two clients'
    classes. FedHGN's hypergraphs and graphs: hyperedges with members at two or more clients, and edges
    between clients, over ten partitions.

    Parameters
    ----------
    dataset
        One data set; default: every data set, those not at hand with a line that says so.
    data_root
        Folder searched first for raw files. Nothing is downloaded.
    as_json
        Print one JSON list of objects: dataset, scenario, clients, quantity, measured, published, deviation.
    """
    roots = paths.data_roots(data_root)

    from bench.federation.dataset_tables import dataset_table

    tables = [dataset_table(name, roots) for name in ([dataset] if dataset else registry.datasets())]
    if dataset and not tables[0].statistics:
        raise NoDataError(f"{dataset}: {tables[0].missing}")
    if as_json:
        print(json.dumps([asdict(statistic) for table in tables for statistic in table.statistics], indent=1))
    notes = Console(stderr=as_json, width=max(Console().width, WIDTH))
    for table in tables:
        if not table.statistics:
            notes.print(f"{table.dataset}: {table.missing}", markup=False, highlight=False, soft_wrap=True)
        elif not as_json:
            _print_table(notes, table)


def export(
    file: Path,
    /,
    *,
    dataset: DatasetOption,
    scenario: Annotated[str, Parameter(name=["--scenario", "-s"])],
    clients: Annotated[int, Parameter(name=["--clients", "-k"])],
    partition_seed: Annotated[int | None, Parameter(validator=Number(gte=0))] = None,
    split: Annotated[tuple[float, float, float] | None, Parameter(negative="")] = None,
    data_root: Path | None = None,
) -> None:
    """Write the clients of a request into FILE (NPZ): ids, edges, split masks and their hash.

    Parameters
    ----------
    file
        The file to write; its arrays are described in bench/federation/exchange.py.
    dataset
        Name of the data set.
    scenario
        Name of the scenario, such as non-overlapping.
    clients
        Number of clients.
    partition_seed
        Seed of partition and split; default: the data set's.
    split
        Percent of training, validation and test items; default: the data set's.
    data_root
        Folder searched first for raw files.
    """
    roots = paths.data_roots(data_root)

    from bench.federation.build import build
    from bench.federation.exchange import export_federation

    protocol = registry.dataset(dataset).protocol
    seed = protocol.partition_seed if partition_seed is None else partition_seed
    federation = build(dataset, scenario, clients, seed, split or protocol.split, roots)
    export_federation(federation, file)
    print(f"{file}: {len(federation)} clients of {dataset}, {scenario}, hash {federation.hash}")


def import_(file: Path, /, *, data_root: Path | None = None) -> None:
    """Check a file from 'bench data export' and use its clients for runs of the same request.

    Parameters
    ----------
    file
        The file; whatever in it does not fit the data set at hand is refused.
    data_root
        Folder searched first for raw files.
    """
    roots = paths.data_roots(data_root)

    from bench.federation.exchange import install

    federation, kept = install(file, roots)
    print(f"{len(federation)} clients of {federation.dataset}, {federation.scenario}, hash {federation.hash}")
    print(f"kept in {kept}; delete that file to draw clients again")
