"""``bench datasets``, ``scenarios``, ``grids`` and ``methods``: what there is to ask for, and all of one."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Sequence
from dataclasses import asdict
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

ANY = "any data"
"""The heading of what is for every family of data."""

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
    clients: dict[str, set[int]] = {}
    for setting in (setting for grid in grid_names() for setting in load_grid(grid).settings):
        for dataset in setting.datasets:
            clients.setdefault(dataset, set()).update(setting.clients)
    rows: list[dict[str, Any]] = [
        {
            "name": name,
            "title": kind.title,
            "family": kind.family,
            "scenarios": list(kind.scenarios),
            "clients": sorted(clients.get(name, ())),
            "where": kind.whereabouts(sources),
        }
        for name, kind in DATASETS.all().items()
    ]
    count = sum(row["where"] == "not at hand" for row in rows)
    columns = {"name": "name", "title": "title", "clients": "clients", "where": "where"}
    closing = f"data sets, {count} not at hand; bench data fetch -d NAME gets one"
    _print_list(rows, as_json, "family", columns, f"{closing}; bench datasets NAME describes one")


def _describe_dataset(kind: type[Dataset], roots: tuple[Path, ...], as_json: bool) -> None:
    """Print a data set's source, default settings, grids, and its sizes where its files are at hand."""
    from bench.errors import NoDataError
    from bench.federation.prepared import prepare
    from bench.grids import grid_names, load_grid
    from bench.sources import Sources

    try:
        sizes = _data_sizes(prepare(kind.name, roots, download=False).data)
    except NoDataError:
        sizes = {}
    grids = {name: load_grid(name) for name in grid_names()}
    description: dict[str, Any] = {
        "name": kind.name,
        "title": kind.title,
        "family": kind.family,
        "where": kind.whereabouts(Sources(roots, download=False)),
        "sizes": sizes,
        "homepage": kind.homepage,
        "licence": kind.licence,
        "files": [file.path for file in kind.files],
        "scenarios": list(kind.scenarios),
        "settings": {
            f"{section}.{name}": value
            for section, part in (("protocol", kind.protocol), ("client", kind.client))
            for name, value in part.model_dump(mode="json").items()
        },
        "grids": [
            name
            for name, grid in grids.items()
            if any(kind.name in setting.datasets for setting in grid.settings)
        ],
    }
    if as_json:
        print(json.dumps(description, indent=1))
        return
    settings = description.pop("settings")
    for key, value in description.items():
        parts = [f"{name} {part:,}" for name, part in value.items()] if isinstance(value, dict) else value
        text = ", ".join(parts) if isinstance(parts, list) else parts
        if text:
            console().print(f"{key}: {text}", markup=False)
    rows = [(key, "none" if value is None else value) for key, value in settings.items()]
    console().print(table(("setting", "default here"), rows, whole={"setting"}))
    say(f"bench sweep -d {kind.name} -s {kind.scenarios[0]} -k 10 -m fedavg ... runs on it")


def _data_sizes(data: Data) -> dict[str, int]:
    """Numbers of nodes, edges and features, or of images and their pixels; and of classes."""
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
"""Numbers of clients that cut every class into equal shards."""

TAKEN = {
    "case-study": "multiples of 5",
    "pathological": SHARDS,
    "pathological-released": SHARDS,
    "published": "5, 10, 20",
    "published-fresh": "5, 10, 20",
    "published-overlapping": "10, 30, 50",
}
"""Scenario -> the numbers of clients that it takes, where ``samples`` does not say it."""


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
    columns = {"scenario": "name", "clients": "clients", "what": "summary"}
    closing = "scenarios; bench sweep -d NAME -s SCENARIO -k CLIENTS ... runs in one"
    _print_list(rows, as_json, "families", columns, closing)


# Grids ------------------------------------------------------------------------------------------


def grids(name: str | None = None, /, *, as_json: AsJson = False) -> None:
    """List the grids below their studies, or print one: its file, and how many runs it plans.

    'bench sweep --grid NAME --dry-run' says which of its runs are done and what the rest costs. A TOML file
    of your own is a grid, too (docs/extending.md).

    Parameters
    ----------
    name
        A grid or a TOML file; default: a line for each.
    """
    from bench.grids import expand, grid_names, load_grid
    from bench.grids.files import read_grid

    if name is not None:
        grid = load_grid(name)
        runs = len(expand(grid))
        if as_json:
            print(json.dumps({"name": name, "runs": runs, **grid.model_dump(mode="json")}, indent=1))
        else:
            say(read_grid(name)[0])
            say(f"{runs:,} runs; bench sweep --grid {name} --dry-run says what they would cost")
        return
    all_grids = {name: load_grid(name) for name in grid_names()}
    rows = [
        {"name": name, "study": grid.study or "", "title": grid.title} for name, grid in all_grids.items()
    ]
    columns = {"grid": "name", "what": "title"}
    _print_list(rows, as_json, "study", columns, "grids; bench grids NAME prints one")


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
    columns = {"method": "name", "title": "title", "paper": "reference"}
    _print_list(rows, as_json, "families", columns, "methods; bench methods NAME describes one")


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
    say(f"{_data_text(kind.families)}; deploys the {kind.stage} model\n")
    console().print(Markdown(_docstring(kind)))
    if not parameters:
        say("\nno hyper-parameters of its own")
        return
    columns = ("hyper-parameter", "default", "range", "tuned over", "meaning")
    rows = [list(parameter.values()) for parameter in parameters]
    console().print(table(columns, rows, whole={"hyper-parameter"}))
    say("bench sweep ... --set method.{name}={default} sets one".format(**parameters[0]))


# What they share ----------------------------------------------------------------------------------


def _print_list(
    rows: Sequence[dict[str, Any]], as_json: bool, group: str, columns: dict[str, str], closing: str
) -> None:
    """Print rows as JSON; or as a table below headings, which stand in the column ``group``, with how many
    they are. ``columns``: the title of a column of the table -> the one of the rows.
    """
    if as_json:
        print(json.dumps(rows, indent=1))
        return
    groups: dict[str, list[list[str]]] = {}
    for row in rows:
        heading = _data_text(row[group]) if group == "families" else row[group]
        entries = [row[column] for column in columns.values()]
        texts = [" ".join(map(str, entry)) if isinstance(entry, list) else entry for entry in entries]
        groups.setdefault(heading, []).append(texts)
    widest_first = dict(sorted(groups.items(), key=lambda part: (part[0] != ANY, part[0])))
    first, *_ = columns
    console().print(table(list(columns), widest_first, whole={first, "paper"}))
    say(f"{len(rows)} {closing}")


def _data_text(families: Sequence[str]) -> str:
    """Families of data in a line: ``graph, images data``."""
    from bench.data import FAMILIES

    return ANY if set(families) == set(FAMILIES) else f"{', '.join(families)} data"


def _docstring(kind: type) -> str:
    """What a class says of itself, without what it inherits."""
    return inspect.cleandoc(vars(kind).get("__doc__") or "")


def _summary(kind: type) -> str:
    """The first paragraph of a class's docstring in one line, without references and marks."""
    return re.sub(r" \(facts [^)]*\)|`", "", " ".join(_docstring(kind).split("\n\n")[0].split()))
