"""``bench data``: what data sets there are, fetching and checking their raw files, and their clients."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from bench import paths, registry
from bench.cli import federation_commands
from bench.errors import RequestError
from bench.sources import Sources, check

if TYPE_CHECKING:
    from bench.dataset import Dataset

app = App(name="data", help="List, fetch, check and describe the data sets.")
app.command(federation_commands.stats)
app.command(federation_commands.export)
app.command(federation_commands.import_, name="import")

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
    sources = Sources(paths.data_roots(data_root), download=False)
    rows = [
        {
            "name": name,
            "family": dataset.family,
            "title": dataset.title,
            "where": _whereabouts(dataset, sources),
        }
        for name, dataset in registry.datasets().items()
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
    files = registry.dataset(dataset).files
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
    sources = Sources(paths.data_roots(data_root), download=False)
    chosen = [registry.dataset(dataset)] if dataset else list(registry.datasets().values())
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
