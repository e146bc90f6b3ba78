"""``bench data``: what data sets there are, fetching and checking their raw files, and their clients."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter
from cyclopts.validators import Number
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from bench import paths
from bench.errors import NoDataError, RequestError
from bench.sources import Sources, check

if TYPE_CHECKING:
    from bench.dataset import Dataset
    from bench.report.dataset_tables import Grid

app = App(name="data", help="List, fetch, check and describe the data sets.")

WIDTH = 100
"""Columns that the widest table takes, whatever the terminal says."""

DatasetOption = Annotated[str, Parameter(name=["--dataset", "-d"])]


def _whereabouts(dataset: type[Dataset], sources: Sources) -> str:
    if dataset.embedded:
        return "embedded"
    found = [place[0] for file in dataset.files if (place := sources.at_hand(file))]
    if not found:
        return "not at hand"
    roots = ", ".join(str(root) for root in dict.fromkeys(found))
    share = "" if len(found) == len(dataset.files) else f"{len(found)} of {len(dataset.files)} files "
    return f"{share}in {roots}"


@app.command(name="list")
def list_(
    *,
    data_root: Path | None = None,
    as_json: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> None:
    """List the data sets and where each comes from.

    Parameters
    ----------
    data_root
        Folder searched first for raw files.
    as_json
        Print one JSON list of objects: name, family, title, where.
    """
    from bench.dataset import DATASETS

    sources = Sources(paths.data_roots(data_root), download=False)
    rows = [
        {
            "name": name,
            "family": dataset.family,
            "title": dataset.title,
            "where": _whereabouts(dataset, sources),
        }
        for name, dataset in DATASETS.all().items()
    ]
    if as_json:
        print(json.dumps(rows, indent=1))
        return
    table = Table(*rows[0], box=SIMPLE_HEAD)
    for row in rows:
        table.add_row(*row.values())
    Console(markup=False).print(table)


@app.command
def fetch(*, dataset: DatasetOption, data_root: Path | None = None) -> None:
    """Download the raw files of a data set that are not at hand, into BENCH_HOME/data.

    Parameters
    ----------
    dataset
        Name of the data set.
    data_root
        Folder searched first for raw files.
    """
    from bench.dataset import DATASETS

    files = DATASETS.named(dataset).files
    if not files:
        print(f"{dataset}: embedded, nothing to fetch")
    for path in Sources(paths.data_roots(data_root)).get_all(files):
        print(path)


@app.command
def verify(*, dataset: DatasetOption | None = None, data_root: Path | None = None) -> int:
    """Check the raw files at hand against their published checksums; exit code 1 if one is wrong.

    Parameters
    ----------
    dataset
        One data set; default: every data set.
    data_root
        Folder searched first for raw files.
    """
    from bench.dataset import DATASETS

    sources = Sources(paths.data_roots(data_root), download=False)
    chosen = [DATASETS.named(dataset)] if dataset else list(DATASETS.all().values())
    wrong = 0
    for one in chosen:
        if not any(sources.at_hand(file) for file in one.files):
            print(f"-        {one.name}: {_whereabouts(one, sources)}")
            continue
        archives = [file.archive for file in one.files if file.archive]
        for file in dict.fromkeys((*one.files, *archives)):
            place = sources.locate(file)
            if place is None:
                if sources.at_hand(file) is None and file not in archives:
                    print(f"missing  {file.path}")
                continue
            try:
                check(place[1], file)
                print(f"{'ok' if file.checksum else 'no sum':<8} {place[1]}")
            except RequestError as error:
                wrong += 1
                print(f"wrong    {error}")
    return 1 if wrong else 0


@app.command
def stats(
    *,
    dataset: DatasetOption | None = None,
    data_root: Path | None = None,
    as_json: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> None:
    """Print the papers' data set tables, measured beside published.

    Graphs: counts are means over clients (edges in both directions), clustering is the mean local
    coefficient, heterogeneity the median Jensen-Shannon distance between two clients' classes. Hypergraphs,
    and graphs with hyperedges: hyperedges with members at two or more clients, and edges between clients,
    over several partitions. Images: images and classes of clients in every scenario of the data set.

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

    from bench.dataset import DATASETS
    from bench.report.dataset_tables import dataset_tables  # with the studies: they describe the tables
    from bench.report.study import STUDIES

    descriptions = [study.data_table for study in STUDIES.all().values() if study.data_table]
    names = [dataset] if dataset else list(DATASETS.all())
    tables = [table for name in names for table in dataset_tables(name, descriptions, roots)]
    if dataset and tables[0].missing:
        raise NoDataError(f"{dataset}: {tables[0].missing}")
    if as_json:
        print(json.dumps([asdict(statistic) for table in tables for statistic in table.statistics], indent=1))
    notes = Console(stderr=as_json, width=max(Console().width, WIDTH))
    for table in tables:
        if table.grid is None:
            notes.print(f"{table.dataset}: {table.missing}", markup=False, highlight=False, soft_wrap=True)
        elif not as_json:
            notes.print(_rich_table(table.grid), *table.grid.notes, sep="\n")


@app.command
def classes(
    *,
    dataset: DatasetOption,
    scenario: Annotated[tuple[str, ...], Parameter(name=["--scenario", "-s"], negative="")] = (),
    clients: Annotated[int, Parameter(name=["--clients", "-k"], validator=Number(gte=1))] = 20,
    out: Path = Path("report"),
    data_root: Path | None = None,
) -> None:
    """Draw what every client has of each class, a panel a scenario; of a sample, the complete set's clients.

    Parameters
    ----------
    dataset
        A data set of images.
    scenario
        Scenarios, with their numbers; default: all of the data set.
    clients
        Number of clients.
    out
        Folder for the figure (PDF, PNG) and its numbers (CSV).
    data_root
        Folder searched first for raw files. Nothing is downloaded.
    """
    from bench.dataset import DATASETS
    from bench.federation.prepared import prepare
    from bench.report import figures
    from bench.report.charts import classes as charts

    chosen = scenario or DATASETS.named(dataset).scenarios
    figure = charts.classes(prepare(dataset, paths.data_roots(data_root), download=False), chosen, clients)
    try:
        out.mkdir(parents=True, exist_ok=True)
        written = figures.save(figure, out)
    except OSError as error:
        raise RequestError(f"--out {out}: cannot write there: {error.strerror or error}") from None
    print(figure.caption)
    for path in written:
        print(path)


def _rich_table(grid: Grid) -> Table:
    table = Table(title=grid.title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 0))
    for column in grid.columns:
        words = column in ("clients", "quantity")
        table.add_column(
            column,
            justify="left" if words else "right",
            no_wrap=words,
            style="dim" if column == "publ." else "",
        )
    for row in grid.rows:
        table.add_row(*row)
    return table


@app.command
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
        The file to write; its arrays are described in docs/extending.md.
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

    from bench.dataset import DATASETS
    from bench.federation.build import build
    from bench.federation.exchange import export_federation

    protocol = DATASETS.named(dataset).protocol
    seed = protocol.partition_seed if partition_seed is None else partition_seed
    federation = build(dataset, scenario, clients, seed, split or protocol.split, roots)
    export_federation(federation, file)
    print(f"{file}: {len(federation)} clients of {dataset}, {scenario}, hash {federation.hash}")


@app.command(name="import")
def import_(
    file: Path,
    /,
    *,
    dataset: DatasetOption | None = None,
    scenario: Annotated[str | None, Parameter(name=["--scenario", "-s"])] = None,
    clients: Annotated[int | None, Parameter(name=["--clients", "-k"])] = None,
    partition_seed: Annotated[int | None, Parameter(validator=Number(gte=0))] = None,
    split: Annotated[tuple[float, float, float] | None, Parameter(negative="")] = None,
    data_root: Path | None = None,
) -> None:
    """Check a file with the clients' items and use these clients for runs of the same request.

    Parameters
    ----------
    file
        An NPZ file, from 'bench data export' or of the same arrays without hash, labels and edges, or a
        CSV file with the columns client, item and role; whatever does not fit the data set is refused.
    dataset
        Name of the data set; needed where the file does not say it, and no other than it says.
    scenario
        Name of the scenario that the clients stand for; the same.
    clients
        Number of clients that the file must have.
    partition_seed
        Partition seed of the runs that use the clients; default: the file's, else the data set's.
    split
        Percent of training, validation and test items of these runs; default: the file's, else the data
        set's.
    data_root
        Folder searched first for raw files.
    """
    roots = paths.data_roots(data_root)

    from bench.federation.exchange import PartialRequest, install

    imported = install(file, roots, PartialRequest(dataset, scenario, clients, partition_seed, split))
    federation, request, holdings = imported.federation, imported.request, imported.holdings
    print(f"{len(federation)} clients of {federation.dataset}, {federation.scenario}, hash {federation.hash}")
    sizes = " to ".join(map(str, dict.fromkeys(holdings.sizes)))
    print(f"items: {sizes} a client, {holdings.held:,} in all ({_counts(holdings.items)})")
    print(f"items held by no client: {holdings.unheld:,}; by several: {holdings.shared:,}")
    if any(holdings.without.values()):
        print(f"clients that lack items of a role: {_counts(holdings.without)}")
    shares = ",".join(f"{share:g}" for share in request.split)
    if imported.off_split:
        held = ", ".join(f"{share:.0f} % {role}" for role, share in holdings.shares.items())
        print(
            f"note: the roles are {held}, but the runs' protocol.split is [{shares}]; --split names another"
        )
    print(f"used by runs of protocol.partition_seed={request.partition_seed} and protocol.split=[{shares}]")
    print(f"kept in {imported.kept}; delete that file to draw clients again")


def _counts(numbers: dict[str, int]) -> str:
    return ", ".join(f"{number:,} {role}" for role, number in numbers.items())
