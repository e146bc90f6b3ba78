"""``bench datasets``, ``scenarios``, ``grids`` and ``methods``: what there is to ask for, and all of one."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.markdown import Markdown

from bench import paths
from bench.cli.options import AsJson, DataRoot
from bench.cli.output import console, say, table

if TYPE_CHECKING:
    from bench.data import Data

ANY = "any data"
"""The heading of what is for every family of data."""


def datasets(name: str | None = None, /, *, data_root: DataRoot = None, as_json: AsJson = False) -> None:
    """List the data sets, or describe one: its source, its sizes where it is at hand, its default settings.

    A line has the family, the numbers of clients in the suite's grids, and where the data are. Data that are
    embedded come with the package; 'bench data fetch -d NAME' gets those that are not at hand.

    Args:
        name: A data set; default: a line for each.
    """
    from bench.dataset import DATASETS
    from bench.errors import NoDataError
    from bench.federation.prepared import prepare
    from bench.grids import grid_names, load_grid
    from bench.sources import Sources

    roots = paths.data_roots(data_root)
    sources = Sources(roots, download=False)
    grids = {grid: load_grid(grid).settings for grid in grid_names()}
    rows = []
    for key, kind in (DATASETS.all() if name is None else {name: DATASETS.named(name)}).items():
        uses = [(grid, each) for grid, settings in grids.items() for each in settings if key in each.datasets]
        row = {
            "name": key,
            "title": kind.title,
            "family": kind.family,
            "scenarios": list(kind.scenarios),
            "clients": sorted({count for _, setting in uses for count in setting.clients}),
            "where": kind.whereabouts(sources),
            "grids": list(dict.fromkeys(grid for grid, _ in uses)),
        }
        rows.append(row)
    if name is None:
        count = sum(row["where"] == "not at hand" for row in rows)
        closing = f"data sets, {count} not at hand; bench data fetch -d NAME gets one"
        closing += "; bench datasets NAME describes one"
        _print_list(rows, as_json, "family", ("name", "title", "clients", "where"), closing)
        return
    kind = DATASETS.named(name)
    try:
        sizes = _data_sizes(prepare(name, roots, download=False).data)
    except NoDataError:
        sizes = {}
    files = [file.path for file in kind.files]
    description = rows[0] | {"homepage": kind.homepage, "licence": kind.licence, "files": files}
    settings = {f"protocol.{key}": value for key, value in kind.protocol.model_dump(mode="json").items()}
    settings |= {f"client.{key}": value for key, value in kind.client.model_dump(mode="json").items()}
    if as_json:
        print(json.dumps({**description, "sizes": sizes, "settings": settings}, indent=1))
        return
    description["sizes"] = [f"{key} {value:,}" for key, value in sizes.items()]
    for key, value in description.items():
        if value:
            text = ", ".join(map(str, value)) if isinstance(value, list) else value
            console().print(f"{key}: {text}", markup=False)
    lines = [(key, "none" if value is None else value) for key, value in settings.items()]
    console().print(table(("setting", "default here"), lines, whole={"setting"}))
    say(f"bench sweep -d {name} -s {kind.scenarios[0]} -k 10 -m fedavg ... runs on it")


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


TAKEN = {
    "case-study": "multiples of 5",
    "pathological": "multiples of 5; of 10 classes, of 2",  # which cut every class into equal shards
    "pathological-released": "multiples of 5; of 10 classes, of 2",
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

    rows = []
    for name, kind in SCENARIOS.all().items():
        samples = f"multiples of {kind.samples}" if kind.samples > 1 else "any"
        for parameter in kind.parameters:
            row = {
                "name": f"{name}{parameter}",
                "families": list(kind.families),
                "clients": TAKEN.get(name, samples),
                "summary": _summary(type(kind.parse(parameter))),
            }
            rows.append(row)
    closing = "scenarios; bench sweep -d NAME -s SCENARIO -k CLIENTS ... runs in one"
    _print_list(rows, as_json, "families", ("name", "clients", "summary"), closing)


def grids(name: str | None = None, /, *, as_json: AsJson = False) -> None:
    """List the grids below their studies, or print one: its file, and how many runs it plans.

    'bench sweep --grid NAME --dry-run' says which of its runs are done and what the rest costs. A TOML file
    of your own is a grid, too (docs/extending.md).

    Args:
        name: A grid or a TOML file; default: a line for each.
    """
    from bench.grids import expand, grid_names, load_grid
    from bench.grids.files import read_grid

    if name is None:
        loaded = {name: load_grid(name) for name in grid_names()}
        rows = [
            {"name": name, "study": grid.study or "", "title": grid.title} for name, grid in loaded.items()
        ]
        _print_list(rows, as_json, "study", ("name", "title"), "grids; bench grids NAME prints one")
        return
    grid = load_grid(name)
    runs = len(expand(grid))
    if as_json:
        print(json.dumps({"name": name, "runs": runs, **grid.model_dump(mode="json")}, indent=1))
    else:
        say(read_grid(name)[0])
        say(f"{runs:,} runs; bench sweep --grid {name} --dry-run says what they would cost")


def methods(name: str | None = None, /, *, as_json: AsJson = False) -> None:
    """List the methods, or describe one: its paper, what it does, its hyper-parameters.

    Methods of your own are listed, too (BENCH_PLUGINS, docs/extending.md).

    Args:
        name: A method; default: a line for each.
    """
    from bench.engine.methods import METHODS
    from bench.hyper import hyper_parameters

    rows = []
    for key, kind in (METHODS.all() if name is None else {name: METHODS.named(name)}).items():
        row = {"name": key, "title": kind.title, "reference": kind.reference, "families": list(kind.families)}
        rows.append(row | {"summary": _summary(kind)})
    if name is None:
        closing = "methods; bench methods NAME describes one"
        _print_list(rows, as_json, "families", ("name", "title", "reference"), closing)
        return
    kind = METHODS.named(name)
    description, parameters = _docstring(kind), hyper_parameters(kind.Hyper)
    if as_json:
        print(json.dumps({**rows[0], "description": description, "hyper_parameters": parameters}, indent=1))
        return
    say(f"{kind.title} ({name}): {kind.reference or 'no paper of its own'}")
    say(f"{_data_text(kind.families)}; deploys the {kind.stage} model\n")
    console().print(Markdown(description))
    if not parameters:
        say("\nno hyper-parameters of its own")
        return
    columns = ("hyper-parameter", "default", "range", "tuned over", "meaning")
    lines = [list(parameter.values()) for parameter in parameters]
    console().print(table(columns, lines, whole={"hyper-parameter"}))
    say("bench sweep ... --set method.{name}={default} sets one".format(**parameters[0]))


def _print_list(
    rows: Sequence[dict[str, Any]], as_json: bool, group: str, columns: Sequence[str], closing: str
) -> None:
    """Print rows as JSON, or some of their columns as a table, below the entries of the column ``group``."""
    if as_json:
        print(json.dumps(rows, indent=1))
        return
    groups: dict[str, list[list[str]]] = {}
    for row in rows:
        heading = _data_text(row[group]) if group == "families" else row[group]
        entries = [row[column] for column in columns]
        texts = [" ".join(map(str, entry)) if isinstance(entry, list) else entry for entry in entries]
        groups.setdefault(heading, []).append(texts)
    widest_first = dict(sorted(groups.items(), key=lambda part: (part[0] != ANY, part[0])))
    console().print(table(columns, widest_first, whole={"name", "reference"}))
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
