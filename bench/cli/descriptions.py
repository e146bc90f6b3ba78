"""What one method, data set or grid is, in words or as JSON: ``bench methods NAME`` and its like."""

from __future__ import annotations

import inspect
import json
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from bench.cli.output import console, say, table

if TYPE_CHECKING:
    from pathlib import Path

    from bench.data import Data
    from bench.dataset import Dataset
    from bench.engine.method import Method

ANY = "any"
"""What stands for every family of data."""


def docstring(kind: type) -> str:
    """What a class says of itself, without what it inherits."""
    return inspect.cleandoc(vars(kind).get("__doc__") or "")


def families_text(families: Sequence[str]) -> str:
    """Families of data in a line: ``graph, images``."""
    from bench.data import FAMILIES

    return ANY if set(families) == set(FAMILIES) else ", ".join(families)


def _paragraph(text: str, indent: str = "") -> None:
    """Print words as a paragraph of the terminal's width, lines after the first further in."""
    screen = console()
    say(textwrap.fill(text, screen.width - 1, subsequent_indent=indent, break_on_hyphens=False), screen)


def _listed(label: str, words: Iterable[object]) -> None:
    """Print a label and what belongs to it, nothing where nothing does."""
    if text := ", ".join(map(str, words)):
        _paragraph(f"{label}: {text}", indent="  ")


def method_summary(kind: type[Method]) -> dict[str, Any]:
    """A method in a line, as JSON has it."""
    return {
        "name": kind.name,
        "title": kind.title,
        "reference": kind.reference,
        "families": list(kind.families),
        "summary": " ".join(docstring(kind).split("\n\n")[0].split()),
    }


def describe_method(kind: type[Method], as_json: bool) -> None:
    """Print a method's paper, what it does, and its hyper-parameters."""
    from bench.hyper import hyper_parameters

    parameters = list(hyper_parameters(kind.Hyper))
    if as_json:
        details = {"description": docstring(kind), "hyper_parameters": list(map(asdict, parameters))}
        print(json.dumps(method_summary(kind) | details, indent=1))
        return
    say(f"{kind.title} ({kind.name}): {kind.reference or 'no paper of its own'}")
    say(f"{families_text(kind.families)} data; deploys the {kind.stage} model")
    for text in docstring(kind).split("\n\n"):
        say("")
        for item in re.split(r"\n(?=- |\d+\. )", text):
            mark = re.match(r"(- |\d+\. )?", item)
            _paragraph(" ".join(item.split()), indent=" " * (mark.end() if mark else 0))
    if not parameters:
        say("\nno hyper-parameters of its own")
        return
    columns = ("hyper-parameter", "default", "range", "tuned over", "meaning")
    rows = [list(asdict(parameter).values()) for parameter in parameters]
    console().print(table(columns, rows, whole={"hyper-parameter"}))
    example = parameters[0]
    say(f"bench sweep ... --set method.{example.name}={example.default} sets one")


def describe_dataset(kind: type[Dataset], roots: tuple[Path, ...], as_json: bool) -> None:
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
        "settings": {
            f"{section}.{name}": value
            for section, part in (("protocol", kind.protocol), ("client", kind.client))
            for name, value in part.model_dump(mode="json").items()
        },
        "grids": grids,
    }
    if as_json:
        print(json.dumps(description, indent=1))
    else:
        _print_dataset(description)


def _print_dataset(description: Mapping[str, Any]) -> None:
    say("{name}: {title}, {family} data, {where}".format(**description))
    if sizes := description["sizes"]:
        say(", ".join(f"{size:,} {of}" for of, size in sizes.items()))
    _listed("source", filter(None, [description["homepage"]]))
    _listed("licence", filter(None, [description["licence"]]))
    _listed("scenarios", description["scenarios"])
    _listed("grids", description["grids"])
    rows = [(key, "none" if value is None else value) for key, value in description["settings"].items()]
    console().print(table(("setting", "default here"), rows, whole={"setting"}))
    name, scenario = description["name"], description["scenarios"][0]
    say(f"bench sweep -d {name} -s {scenario} -k 10 -m fedavg ... runs on it")


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


def describe_grid(name: str, as_json: bool) -> None:
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
