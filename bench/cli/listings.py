"""``bench datasets``, ``grids``, ``methods``: lists of each. ``bench data``: the files of data sets."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path

from cyclopts import App

from bench import paths
from bench.cli import options
from bench.cli.output import console, say, table
from bench.errors import RequestError


def datasets(name: str | None = None, /) -> None:
    """List the data sets, or describe one: its source, scenarios and default settings.

    Embedded data sets come with the package; 'bench data fetch -d NAME' downloads the others.
    'bench data stats -d NAME' prints their sizes.

    Args:
        name: A data set; default: one line for each data set.
    """
    from bench.dataset import DATASETS
    from bench.sources import Sources

    sources = Sources(paths.data_roots(), download=False)
    if name is None:
        rows = [
            (key, kind.title, kind.family, kind.whereabouts(sources)) for key, kind in DATASETS.all().items()
        ]
        closing = "bench datasets NAME describes one, bench data fetch -d NAME gets one"
        _print_list("data sets", ("name", "title", "family", "where"), rows, closing)
        return
    kind = DATASETS.named(name)
    _print_fields(
        {
            "name": name,
            "title": kind.title,
            "family": kind.family,
            "scenarios": kind.scenarios,
            "homepage": kind.homepage,
            "licence": kind.licence,
            "where": kind.whereabouts(sources),
            "files": tuple(file.path for file in kind.files),
            **{f"protocol.{key}": value for key, value in kind.protocol},
            **{f"client.{key}": value for key, value in kind.client},
        }
    )
    say(f"bench sweep -d {name} -s {kind.scenarios[0]} -k 10 -m fedavg ... runs on it")


def grids(name: str | None = None, /) -> None:
    """List the grids, or print one grid: its file, and the number of runs that it plans.

    'bench sweep --grid NAME --dry-run' prints which of its runs are done and the cost of the rest. A TOML
    file of your own is a grid, too (docs/extending.md).

    Args:
        name: A grid or a TOML file; default: one line for each grid.
    """
    from bench.grids import expand, grid_names, load_grid
    from bench.grids.grid import grid_text

    if name is None:
        rows = [(name, load_grid(name).title) for name in grid_names()]
        _print_list("grids", ("name", "title"), rows, "bench grids NAME prints one")
        return
    runs = len(expand(load_grid(name)))
    say(grid_text(name))
    say(f"{runs:,} runs; bench sweep --grid {name} --dry-run says what they would cost")


def methods(name: str | None = None, /) -> None:
    """List the methods, or describe one: its paper, algorithm and hyper-parameters.

    Your own methods are listed, too (BENCH_PLUGINS, docs/extending.md).

    Args:
        name: A method; default: one line for each method.
    """
    from rich.markdown import Markdown

    from bench.engine.methods import METHODS
    from bench.hyper import hyper_parameters

    if name is None:
        rows = [
            (key, kind.title, _data_text(kind.families), kind.reference)
            for key, kind in METHODS.all().items()
        ]
        _print_list(
            "methods", ("name", "title", "data", "reference"), rows, "bench methods NAME describes one"
        )
        return
    kind = METHODS.named(name)
    deploys, data = f"the {kind.stage} model", _data_text(kind.families)
    _print_fields(
        {"name": name, "title": kind.title, "reference": kind.reference, "data": data, "deploys": deploys}
    )
    console().print("", Markdown(inspect.cleandoc(vars(kind).get("__doc__") or "")))
    lines = [list(parameter.values()) for parameter in hyper_parameters(kind.Hyper)]
    columns = ("hyper-parameter", "default", "range", "tuned over", "meaning")
    if lines:
        console().print(table(columns, lines, whole={"hyper-parameter"}))
    say("bench sweep ... --set method.NAME=VALUE sets one" if lines else "\nno hyper-parameters of its own")


def _print_list(kind: str, columns: Sequence[str], rows: Sequence[Sequence[str]], closing: str) -> None:
    console().print(table(columns, rows, whole={"name"}))
    say(f"{len(rows)} {kind}; {closing}")


def _print_fields(fields: Mapping[str, object]) -> None:
    for name, value in fields.items():
        if value not in ("", ()):
            text = ", ".join(map(str, value)) if isinstance(value, tuple) else value
            console().print(f"{name}: {'none' if text is None else text}", markup=False)


def _data_text(families: Sequence[str]) -> str:
    """Families of data as text; ``any`` for all families."""
    from bench.data import FAMILIES

    return "any" if set(families) == set(FAMILIES) else ", ".join(families)


# Raw files and clients ------------------------------------------------------------------------------

data = App(name="data", help="Fetch and describe the data sets, and exchange their clients.")


@data.command
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


@data.command
def stats(*, dataset: options.OneDataset | None = None) -> None:
    """Print statistics of data sets: the published and the measured ones, which come with the suite.

    Graphs: counts are means over clients (edges in both directions), clustering is the mean local
    coefficient, heterogeneity is the median Jensen-Shannon distance between the classes of two clients.
    Hypergraphs: the numbers of hyperedges with members at two or more clients, and of edges between
    clients. Both are means over several partitions.

    Args:
        dataset: One data set; default: every data set with published statistics.
    """
    from bench.dataset import DATASETS
    from bench.studies.dataset_tables import shipped_statistics, texts  # imports all studies

    rows = shipped_statistics()
    if dataset:
        kind = DATASETS.named(dataset)
        rows = rows[rows["dataset"] == kind.name]
        if rows.empty:
            raise RequestError(f"{kind.name}: no paper prints statistics of it")
    for name, part in rows.groupby("dataset", sort=False):
        shown, words = texts(part), {"clients", "quantity"}
        title = f"{DATASETS.named(str(name)).title} ({name})"
        console(100).print(table([*shown], shown.values.tolist(), {*shown} - words, words, title))


@data.command(name="export")
def export_clients(
    file: Path,
    /,
    *,
    dataset: options.OneDataset,
    scenario: options.OneScenario,
    clients: options.OneClientCount,
) -> None:
    """Write the clients of a data set into an NPZ file: ids, split masks and their hash.

    Partition seed and split are the data set's default ones.

    Args:
        file: The file to write; docs/extending.md describes its arrays.
    """
    from bench.dataset import DATASETS
    from bench.federation import assignment_file
    from bench.federation.build import build

    protocol = DATASETS.named(dataset).protocol
    written = build(dataset, scenario, clients, protocol.partition_seed, protocol.split, paths.data_roots())
    assignment_file.write(file, written)
    print(f"{file}: {clients} clients of {dataset}, {scenario}, hash {written.hash}")


@data.command(name="import")
def import_clients(
    file: Path,
    /,
    *,
    dataset: options.OneDataset | None = None,
    scenario: options.OneScenario | None = None,
    data_root: options.DataRoot = None,
) -> None:
    """Check a file with the items of every client. Later runs with the same options use these clients.

    Options must name what the file lacks, such as its data set. If both name it, they must agree.

    Args:
        file: An NPZ file from 'bench data export', an NPZ file with the same arrays but no hash, or a CSV
            file with the columns client, item and role. A file that does not fit the data set is refused.
    """
    from bench.federation.exchange import install

    named = {"dataset": dataset, "scenario": scenario}
    for line in install(file, paths.data_roots(data_root), named).summary:
        print(line)
