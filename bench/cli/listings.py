"""``bench datasets``, ``scenarios``, ``grids`` and ``methods``: what there is to ask for, and all of one."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence

from rich.markdown import Markdown

from bench import paths
from bench.cli.options import DataRoot
from bench.cli.output import console, say, table


def datasets(name: str | None = None, /, *, data_root: DataRoot = None) -> None:
    """List the data sets, or describe one: its source, scenarios, grids and default settings.

    Data that are embedded come with the package; 'bench data fetch -d NAME' gets those that are not at hand.
    'bench data stats -d NAME' says how large they are.

    Args:
        name: A data set; default: a line for each.
    """
    from bench.dataset import DATASETS
    from bench.grids import grid_names, load_grid
    from bench.sources import Sources

    sources = Sources(paths.data_roots(data_root), download=False)
    if name is None:
        rows = [
            (key, kind.title, kind.family, kind.whereabouts(sources)) for key, kind in DATASETS.all().items()
        ]
        closing = "bench datasets NAME describes one, bench data fetch -d NAME gets one"
        _print_list("data sets", ("name", "title", "family", "where"), rows, closing)
        return
    kind = DATASETS.named(name)
    loaded = {grid: load_grid(grid).settings for grid in grid_names()}
    uses = [(grid, each) for grid, settings in loaded.items() for each in settings if name in each.datasets]
    fields = {
        "name": name,
        "title": kind.title,
        "family": kind.family,
        "scenarios": kind.scenarios,
        "clients in grids": sorted({count for _, setting in uses for count in setting.clients}),
        "grids": list(dict.fromkeys(grid for grid, _ in uses)),
        "homepage": kind.homepage,
        "licence": kind.licence,
        "where": kind.whereabouts(sources),
        "files": [file.path for file in kind.files],
        **{f"protocol.{key}": value for key, value in dict(kind.protocol).items()},
        **{f"client.{key}": value for key, value in dict(kind.client).items()},
    }
    _print_fields(fields)
    say(f"bench sweep -d {name} -s {kind.scenarios[0]} -k 10 -m fedavg ... runs on it")


def scenarios() -> None:
    """List the scenarios: how each spreads a data set over clients.

    A number at the end of a name is an example. 'bench datasets NAME' says which of them suit a data set.
    """
    from bench.federation.scenario import SCENARIOS

    rows = [
        (f"{name}{parameter}", _data_text(kind.families), _summary(type(kind.parse(parameter))))
        for name, kind in SCENARIOS.all().items()
        for parameter in kind.parameters
    ]
    closing = "bench sweep -d NAME -s SCENARIO -k CLIENTS ... runs in one"
    _print_list("scenarios", ("name", "data", "summary"), rows, closing)


def grids(name: str | None = None, /) -> None:
    """List the grids, or print one: its file, and how many runs it plans.

    'bench sweep --grid NAME --dry-run' says which of its runs are done and what the rest costs. A TOML file
    of your own is a grid, too (docs/extending.md).

    Args:
        name: A grid or a TOML file; default: a line for each.
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
    """List the methods, or describe one: its paper, what it does, its hyper-parameters.

    Methods of your own are listed, too (BENCH_PLUGINS, docs/extending.md).

    Args:
        name: A method; default: a line for each.
    """
    from bench.engine.methods import METHODS
    from bench.hyper import hyper_parameters

    if name is None:
        rows = [
            (key, kind.title, _data_text(kind.families), kind.reference)
            for key, kind in METHODS.all().items()
        ]
        closing = "bench methods NAME describes one"
        _print_list("methods", ("name", "title", "data", "reference"), rows, closing)
        return
    kind = METHODS.named(name)
    fields = {
        "name": name,
        "title": kind.title,
        "reference": kind.reference,
        "data": _data_text(kind.families),
        "deploys": f"the {kind.stage} model",
    }
    _print_fields(fields)
    console().print("", Markdown(_docstring(kind)))
    lines = [list(parameter.values()) for parameter in hyper_parameters(kind.Hyper)]
    if lines:
        columns = ("hyper-parameter", "default", "range", "tuned over", "meaning")
        console().print(table(columns, lines, whole={"hyper-parameter"}))
        say("bench sweep ... --set method.NAME=VALUE sets one")
    else:
        say("\nno hyper-parameters of its own")


def _print_list(kind: str, columns: Sequence[str], rows: Sequence[Sequence[str]], closing: str) -> None:
    console().print(table(columns, rows, whole={"name"}))
    say(f"{len(rows)} {kind}; {closing}")


def _print_fields(fields: Mapping[str, object]) -> None:
    for name, value in fields.items():
        if value not in ("", [], ()):
            text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else value
            console().print(f"{name}: {'none' if text is None else text}", markup=False)


def _data_text(families: Sequence[str]) -> str:
    """The families of data that something is for."""
    from bench.data import FAMILIES

    return "any" if set(families) == set(FAMILIES) else ", ".join(families)


def _docstring(kind: type) -> str:
    """What a class says of itself, without what it inherits."""
    return inspect.cleandoc(vars(kind).get("__doc__") or "")


def _summary(kind: type) -> str:
    """The first paragraph of a class's docstring in one line, without references and marks."""
    return re.sub(r" \([^)]*facts [^)]*\)|`", "", " ".join(_docstring(kind).split("\n\n")[0].split()))
