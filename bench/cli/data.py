"""``bench data``: fetching and describing data sets, and exchanging their clients."""

from __future__ import annotations

from pathlib import Path

from cyclopts import App

from bench import paths
from bench.cli import options
from bench.cli.output import console, table
from bench.errors import RequestError

app = App(name="data", help="Fetch and describe the data sets, and exchange their clients.")


@app.command
def fetch(*, dataset: options.OneDataset, data_root: options.DataRoot = None) -> None:
    """Check the raw files of a data set by their published sums; download those that are not at hand.

    Downloads go into BENCH_HOME/data.
    """
    from bench.dataset import DATASETS
    from bench.sources import Sources

    kind, sources = DATASETS.named(dataset), Sources(paths.data_roots(data_root))
    if not kind.files:
        print(f"{dataset}: {kind.whereabouts(sources)}, nothing to fetch")
    for path in sources.get_all(kind.files):
        print(path)


@app.command
def stats(*, dataset: options.OneDataset | None = None, as_json: options.AsJson = False) -> None:
    """Print the statistics of data sets that papers print, beside those measured, which come with the suite.

    Graphs: counts are means over clients (edges in both directions), clustering is the mean local
    coefficient, heterogeneity the median Jensen-Shannon distance between two clients' classes. Hypergraphs,
    and graphs with hyperedges: hyperedges with members at two or more clients, and edges between clients,
    means over several partitions.

    Args:
        dataset: One data set; default: every data set that a paper describes.
    """
    from bench.dataset import DATASETS
    from bench.studies.dataset_tables import shipped_statistics, texts  # with the studies

    rows = shipped_statistics()
    if dataset:
        kind = DATASETS.named(dataset)
        rows = rows[rows["dataset"] == kind.name]
        if rows.empty:
            raise RequestError(f"{kind.name}: no paper prints statistics of it")
    if as_json:
        print(rows.to_json(orient="records", indent=1))
        return
    for name, part in rows.groupby("dataset", sort=False):
        shown, words = texts(part), {"clients", "quantity"}
        title = f"{DATASETS.named(str(name)).title} ({name})"
        console(100).print(table([*shown], shown.values.tolist(), {*shown} - words, words, title))


@app.command(name="export")
def export_clients(
    file: Path,
    /,
    *,
    dataset: options.OneDataset,
    scenario: options.OneScenario,
    clients: options.OneClientCount,
) -> None:
    """Write the clients of a data set into FILE (NPZ): ids, split masks and their hash.

    They are those of the data set's own partition seed and split.

    Args:
        file: The file to write; its arrays are described in docs/extending.md.
    """
    from bench.dataset import DATASETS
    from bench.federation import assignment_file
    from bench.federation.build import build

    protocol = DATASETS.named(dataset).protocol
    written = build(dataset, scenario, clients, protocol.partition_seed, protocol.split, paths.data_roots())
    assignment_file.write(file, written)
    print(f"{file}: {clients} clients of {dataset}, {scenario}, hash {written.hash}")


@app.command(name="import")
def import_clients(
    file: Path,
    /,
    *,
    dataset: options.OneDataset | None = None,
    scenario: options.OneScenario | None = None,
    data_root: options.DataRoot = None,
) -> None:
    """Check a file with the clients' items and use these clients for runs of the same request.

    What the file does not say of its data set and clients has to be named; what both say has to agree.

    Args:
        file: An NPZ file, from 'bench data export' or of the same arrays without hash, or a
            CSV file with the columns client, item and role; whatever does not fit the data set is refused.
    """
    from bench.federation.exchange import install

    named = {"dataset": dataset, "scenario": scenario}
    for line in install(file, paths.data_roots(data_root), named).summary:
        print(line)
