"""``bench datasets``, ``grids`` and ``methods``: what there is to ask for, and all of one."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence

from bench import paths
from bench.cli.output import console, say, table


def datasets(name: str | None = None, /) -> None:
    """List the data sets, or describe one: its source, scenarios and default settings.

    Data that are embedded come with the package; 'bench data fetch -d NAME' gets those that are not at hand.
    'bench data stats -d NAME' says how large they are.

    Args:
        name: A data set; default: a line for each.
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
    """The families of data that something is for."""
    from bench.data import FAMILIES

    return "any" if set(families) == set(FAMILIES) else ", ".join(families)
