"""``bench datasets``, ``scenarios``, ``grids`` and ``methods``: what there is to ask for, and all of one."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.markdown import Markdown

from bench import paths
from bench.cli.options import AsJson, DataRoot
from bench.cli.output import console, say, table

if TYPE_CHECKING:
    from bench.data import Data
    from bench.dataset import Dataset
    from bench.engine.method import Method

ANY = "any"
"""What stands for every family of data."""

# Data sets ----------------------------------------------------------------------------------------


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
        _describe_dataset(DATASETS.named(name), roots, as_json)
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


def _describe_dataset(kind: type[Dataset], roots: tuple[Path, ...], as_json: bool) -> None:
    """Print what a data set is: its source, its default settings, the grids that run on it and, where its
    files are at hand, its sizes.

    Raises:
        RequestError: the checksum of a file is not the published one.
    """
    from bench.errors import NoDataError
    from bench.federation.prepared import prepare
    from bench.grids import grid_names, load_grid
    from bench.sources import Sources

    try:
        sizes = _data_sizes(prepare(kind.name, roots, download=False).data)
    except NoDataError:
        sizes = {}
    grids = [
        name
        for name in grid_names()
        if any(kind.name in setting.datasets for setting in load_grid(name).settings)
    ]
    settings = {
        f"{section}.{name}": value
        for section, part in (("protocol", kind.protocol), ("client", kind.client))
        for name, value in part.model_dump(mode="json").items()
    }
    description = {
        "name": kind.name,
        "title": kind.title,
        "family": kind.family,
        "where": kind.whereabouts(Sources(roots, download=False)),
        "sizes": sizes,
        "homepage": kind.homepage,
        "licence": kind.licence,
        "files": [file.path for file in kind.files],
        "scenarios": list(kind.scenarios),
        "settings": settings,
        "grids": grids,
    }
    if as_json:
        print(json.dumps(description, indent=1))
        return
    say("{name}: {title}, {family} data, {where}".format(**description))
    if sizes:
        say(", ".join(f"{size:,} {of}" for of, size in sizes.items()))
    for label, words in (
        ("source", kind.homepage),
        ("licence", kind.licence),
        ("scenarios", ", ".join(kind.scenarios)),
        ("grids", ", ".join(grids)),
    ):
        if words:
            console().print(f"{label}: {words}", markup=False)
    rows = [(key, "none" if value is None else value) for key, value in settings.items()]
    console().print(table(("setting", "default here"), rows, whole={"setting"}))
    say(f"bench sweep -d {kind.name} -s {kind.scenarios[0]} -k 10 -m fedavg ... runs on it")


def _data_sizes(data: Data) -> dict[str, int]:
    """How many nodes, edges, hyperedges and features, or images and their channels, rows and columns; and
    classes.
    """
    from bench.data import Graph, Images

    if isinstance(data, Images):
        sizes = dict(zip(("images", "channels", "rows", "columns"), data.pixels.shape, strict=True))
        return sizes | {"classes": data.classes}
    sizes = {"nodes": len(data.labels)}
    if isinstance(data, Graph):
        sizes["edges"] = data.edges.shape[1] // 2
    if data.hyperedges is not None:
        sizes["hyperedges"] = len(data.hyperedges)
    return sizes | {"features": data.features.shape[1], "classes": data.classes}


# Scenarios --------------------------------------------------------------------------------------


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
                "summary": _summary(type(kind.parse(parameter))),
            }
            for parameter in kind.parameters
        ]
    if as_json:
        print(json.dumps(rows, indent=1))
        return
    families = _by_family(rows, ("name", "clients", "summary"))
    console().print(table(("scenario", "clients", "what"), families, whole={"scenario"}))
    say(f"{len(rows)} scenarios; bench sweep -d NAME -s SCENARIO -k CLIENTS ... runs in one")


# Grids ------------------------------------------------------------------------------------------


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
        _describe_grid(name, as_json)
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


def _describe_grid(name: str, as_json: bool) -> None:
    """Print a grid's file and the number of its runs.

    Raises:
        RequestError: as ``bench.grids.load_grid``.
    """
    from bench.grids import expand, load_grid
    from bench.grids.files import read_grid

    grid = load_grid(name)
    runs = len(expand(grid))
    if as_json:
        print(json.dumps({"name": name, "runs": runs, **grid.model_dump(mode="json")}, indent=1))
        return
    text, _ = read_grid(name)
    say(text)
    say(f"{runs:,} runs; bench sweep --grid {name} --dry-run says what they would cost")


# Methods ----------------------------------------------------------------------------------------


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
        _describe_method(METHODS.named(name), as_json)
        return
    rows = [_method_summary(kind) for kind in METHODS.all().values()]
    if as_json:
        print(json.dumps(rows, indent=1))
        return
    families = _by_family(rows, ("name", "title", "reference"))
    widest_first = dict(sorted(families.items(), key=lambda part: (not part[0].startswith(ANY), part[0])))
    console().print(table(("method", "title", "paper"), widest_first, whole={"method", "paper"}))
    say(f"{len(rows)} methods; bench methods NAME describes one")


def _method_summary(kind: type[Method]) -> dict[str, Any]:
    """A method in a line, as JSON has it."""
    return {
        "name": kind.name,
        "title": kind.title,
        "reference": kind.reference,
        "families": list(kind.families),
        "summary": _summary(kind),
    }


def _describe_method(kind: type[Method], as_json: bool) -> None:
    """Print a method's paper, what it does, and its hyper-parameters."""
    from bench.hyper import hyper_parameters

    parameters = list(map(asdict, hyper_parameters(kind.Hyper)))
    if as_json:
        details = {"description": _docstring(kind), "hyper_parameters": parameters}
        print(json.dumps(_method_summary(kind) | details, indent=1))
        return
    say(f"{kind.title} ({kind.name}): {kind.reference or 'no paper of its own'}")
    say(f"{_families_text(kind.families)} data; deploys the {kind.stage} model\n")
    console().print(Markdown(_docstring(kind)))
    if not parameters:
        say("\nno hyper-parameters of its own")
        return
    columns = ("hyper-parameter", "default", "range", "tuned over", "meaning")
    rows = [list(parameter.values()) for parameter in parameters]
    console().print(table(columns, rows, whole={"hyper-parameter"}))
    say("bench sweep ... --set method.{name}={default} sets one".format(**parameters[0]))


# What they share ----------------------------------------------------------------------------------


def _docstring(kind: type) -> str:
    """What a class says of itself, without what it inherits."""
    return inspect.cleandoc(vars(kind).get("__doc__") or "")


def _summary(kind: type) -> str:
    """The first paragraph of a class's docstring in one line, without references and marks."""
    return re.sub(r" \(facts [^)]*\)|`", "", " ".join(_docstring(kind).split("\n\n")[0].split()))


def _families_text(families: Sequence[str]) -> str:
    """Families of data in a line: ``graph, images``."""
    from bench.data import FAMILIES

    return ANY if set(families) == set(FAMILIES) else ", ".join(families)


def _by_family(rows: Iterable[dict[str, Any]], columns: Sequence[str]) -> dict[str, list[list[str]]]:
    """These columns of the rows, below the families of data that each is for."""
    families: dict[str, list[list[str]]] = {}
    for row in rows:
        entry = [row[column] for column in columns]
        families.setdefault(f"{_families_text(row['families'])} data", []).append(entry)
    return families
