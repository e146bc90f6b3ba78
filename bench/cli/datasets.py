"""``bench datasets``: the data sets, and which are at hand."""

from __future__ import annotations

import json
from typing import Any

from bench import paths
from bench.cli.options import AsJson, DataRoot
from bench.cli.output import console, say, table

COLUMNS = ("name", "title", "clients", "where")


def datasets(*, data_root: DataRoot = None, as_json: AsJson = False) -> None:
    """List the data sets: the family, the numbers of clients in the suite's grids, and where the data are.

    Data that are embedded come with the package; 'bench data fetch -d NAME' gets those that are not at hand.
    """
    from bench.dataset import DATASETS
    from bench.grids.summary import client_counts
    from bench.sources import Sources

    sources = Sources(paths.data_roots(data_root), download=False)
    numbers = client_counts()
    rows: list[dict[str, Any]] = [
        {
            "name": name,
            "title": kind.title,
            "family": kind.family,
            "scenarios": list(kind.scenarios),
            "clients": list(numbers.get(name, ())),
            "where": kind.whereabouts(sources),
        }
        for name, kind in DATASETS.all().items()
    ]
    if as_json:
        print(json.dumps(rows, indent=1))
        return
    families: dict[str, list[list[str]]] = {}
    for row in rows:
        clients = " ".join(map(str, row["clients"]))
        families.setdefault(row["family"], []).append([row["name"], row["title"], clients, row["where"]])
    console().print(table(COLUMNS, families, whole={"name", "clients"}))
    absent = sum(row["where"] == "not at hand" for row in rows)
    say(
        f"{len(rows)} data sets, {absent} not at hand"
        + ("; bench data fetch -d NAME gets one" if absent else "")
    )
