"""``bench datasets``, ``scenarios``, ``grids`` and ``methods``: what there is to ask for."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any

from bench import paths
from bench.cli.descriptions import (
    ANY,
    describe_dataset,
    describe_grid,
    describe_method,
    docstring,
    families_text,
    method_summary,
)
from bench.cli.options import AsJson, DataRoot
from bench.cli.output import console, say, table


def datasets(name: str | None = None, /, *, data_root: DataRoot = None, as_json: AsJson = False) -> None:
    """List the data sets, or describe one: its source, its sizes where it is at hand, its default settings.

    A line has the family, the numbers of clients in the suite's grids, and where the data are. Data that are
    embedded come with the package; 'bench data fetch -d NAME' gets those that are not at hand.

    Parameters
    ----------
    name
        A data set; default: a line for each.
    """
    from bench.dataset import DATASETS
    from bench.grids import grid_names, load_grid
    from bench.sources import Sources

    roots = paths.data_roots(data_root)
    if name is not None:
        describe_dataset(DATASETS.named(name), roots, as_json)
        return
    sources = Sources(roots, download=False)
    numbers: dict[str, set[int]] = {}
    for setting in (setting for grid in grid_names() for setting in load_grid(grid).settings):
        for dataset in setting.datasets:
            numbers.setdefault(dataset, set()).update(setting.clients)
    rows: list[dict[str, Any]] = [
        {
            "name": name,
            "title": kind.title,
            "family": kind.family,
            "scenarios": list(kind.scenarios),
            "clients": sorted(numbers.get(name, ())),
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
    console().print(table(("name", "title", "clients", "where"), families, whole={"name", "clients"}))
    count = sum(row["where"] == "not at hand" for row in rows)
    say(
        f"{len(rows)} data sets, {count} not at hand"
        + ("; bench data fetch -d NAME gets one" if count else "")
        + "; bench datasets NAME describes one"
    )


SHARDS = "multiples of 5; of 10 classes, of 2"
"""So many clients cut every class into equal shards."""

TAKEN = {
    "case-study": "multiples of 5",
    "pathological": SHARDS,
    "pathological-released": SHARDS,
    "published": "5, 10, 20",
    "published-fresh": "5, 10, 20",
    "published-overlapping": "10, 30, 50",
}
"""Numbers of clients that scenarios take on the suite's data sets, where it is not any, nor ``samples``."""


def scenarios(*, as_json: AsJson = False) -> None:
    """List the scenarios: how each spreads a data set over clients, and which numbers of clients it takes.

    A number at the end of a name is an example. 'bench datasets --json' says which of them suit a data set.
    """
    from bench.federation.scenario import SCENARIOS

    rows: list[dict[str, Any]] = []
    for name, kind in SCENARIOS.all().items():
        samples = f"multiples of {kind.samples}" if kind.samples > 1 else "any"
        rows += [
            {
                "name": f"{name}{parameter}",
                "families": list(kind.families),
                "clients": TAKEN.get(name, samples),
                "summary": _first_paragraph(docstring(type(kind.parse(parameter)))),
            }
            for parameter in kind.parameters
        ]
    if as_json:
        print(json.dumps(rows, indent=1))
        return
    families = _by_family(rows, ("name", "clients", "summary"))
    console().print(table(("scenario", "clients", "what"), families, whole={"scenario"}))
    say(f"{len(rows)} scenarios; bench sweep -d NAME -s SCENARIO -k CLIENTS ... runs in one")


def _first_paragraph(text: str) -> str:
    """The first paragraph of a docstring in one line, without references and marks."""
    return re.sub(r" \(facts [^)]*\)|`", "", " ".join(text.split("\n\n")[0].split()))


def grids(name: str | None = None, /, *, as_json: AsJson = False) -> None:
    """List the grids below their studies, or print one: its file, and how many runs it plans.

    'bench sweep --grid NAME
    --dry-run' says what of one is done and what the rest costs. A TOML file of your own is a grid, too
    (docs/extending.md).

    Parameters
    ----------
    name
        A grid or a TOML file; default: a line for each.
    """
    from bench.grids import grid_names, load_grid

    if name is not None:
        describe_grid(name, as_json)
        return
    grids = {name: load_grid(name) for name in grid_names()}
    rows = [{"name": name, "study": grid.study or "", "title": grid.title} for name, grid in grids.items()]
    if as_json:
        print(json.dumps(rows, indent=1))
        return
    studies: dict[str, list[tuple[str, str]]] = {}
    for row in sorted(rows, key=itemgetter("study")):
        studies.setdefault(row["study"], []).append((row["name"], row["title"]))
    console().print(table(("grid", "what"), studies, whole={"grid"}))
    say(f"{len(rows)} grids; bench grids NAME prints one")


def methods(name: str | None = None, /, *, as_json: AsJson = False) -> None:
    """List the methods, or describe one: its paper, what it does, its hyper-parameters.

    Methods of your own are listed, too (BENCH_PLUGINS, docs/extending.md).

    Parameters
    ----------
    name
        A method; default: a line for each.
    """
    from bench.engine.methods import METHODS

    if name is not None:
        describe_method(METHODS.named(name), as_json)
        return
    rows = [method_summary(kind) for kind in METHODS.all().values()]
    if as_json:
        print(json.dumps(rows, indent=1))
        return
    families = _by_family(rows, ("name", "title", "reference"))
    widest_first = dict(sorted(families.items(), key=lambda part: (not part[0].startswith(ANY), part[0])))
    console().print(table(("method", "title", "paper"), widest_first, whole={"method", "paper"}))
    say(f"{len(rows)} methods; bench methods NAME describes one")


def _by_family(rows: Iterable[dict[str, Any]], columns: Sequence[str]) -> dict[str, list[list[str]]]:
    """These columns of the rows, below the families of data that each is for."""
    families: dict[str, list[list[str]]] = {}
    for row in rows:
        entry = [row[column] for column in columns]
        families.setdefault(f"{families_text(row['families'])} data", []).append(entry)
    return families
