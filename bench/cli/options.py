"""Options that several commands share. An option has the same name, unit and meaning in all commands."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args

from cyclopts import Parameter, Token
from cyclopts.types import PositiveInt
from cyclopts.validators import Number

from bench.metric_names import Metric
from bench.runner import Backend, Placement

if TYPE_CHECKING:
    from bench.grids import Filters


def _words(kind: Any, tokens: Sequence[Token]) -> tuple[Any, ...]:
    """Read names or numbers from a repeated option or a list with commas. Drop repeated values."""
    element, _ = get_args(kind)
    return tuple(dict.fromkeys(element(word) for token in tokens for word in token.value.split(",")))


def _seeds(_: Any, tokens: Sequence[Token]) -> tuple[int, ...]:
    """Read seeds: ``3`` is one seed, ``20-39`` are twenty. Drop repeated seeds."""
    seeds: dict[int, None] = {}
    for part in _words(tuple[str, ...], tokens):
        match = re.fullmatch(r"(\d+)(?:-(\d+))?", part)
        if match is None or int(match[1]) > int(match[2] or match[1]):
            raise ValueError(f"expected a number from 0 on or a range such as 0-4, got '{part}'")
        seeds.update(dict.fromkeys(range(int(match[1]), int(match[2] or match[1]) + 1)))
    return tuple(seeds)


def _several(*names: str, **more: Any) -> Parameter:
    return Parameter(name=names, show_default=False, **more)


OneDataset = Annotated[str, Parameter(name=("--dataset", "-d"))]
OneScenario = Annotated[str, Parameter(name=("--scenario", "-s"))]
OneClientCount = Annotated[PositiveInt, Parameter(name=("--clients", "-k"))]
Studies = Annotated[tuple[str, ...], _several("--study", converter=_words)]
Datasets = Annotated[tuple[str, ...], _several("--dataset", "-d", converter=_words)]
Scenarios = Annotated[tuple[str, ...], _several("--scenario", "-s", converter=_words)]
ClientCounts = Annotated[
    tuple[int, ...], _several("--clients", "-k", converter=_words, validator=Number(gte=1))
]
Methods = Annotated[tuple[str, ...], _several("--method", "-m", converter=_words)]
Seeds = Annotated[tuple[int, ...], _several("--seed", converter=_seeds)]
Settings = Annotated[tuple[str, ...], _several("--set")]
Flag = Annotated[bool, Parameter(show_default=False)]
AsJson = Annotated[Flag, Parameter(name="--json", help="Print JSON on standard output.")]
Database = Annotated[str | None, Parameter(name="--db", help="Default: sqlite:///BENCH_HOME/bench.db.")]
DataRoot = Annotated[Path | None, Parameter(help="Folder that is searched first for raw files.")]
Own = Annotated[Flag, Parameter(help="Show your database alone, not the results that come with the suite.")]
Shipped = Annotated[Flag, Parameter(help="Show the results that come with the suite, not your database.")]
METRIC_HELP = "Score of the clients. Verdicts exist for accuracy alone; roc_auc needs two classes."
ByMetric = Annotated[Metric, Parameter(help=METRIC_HELP)]


@Parameter(name="*")
@dataclass(frozen=True)
class CellFilters:
    """Select cells; without options, all cells are selected.

    Args:
        dataset: Only this data set, or several: -d cora,citeseer or -d cora -d citeseer. Same for -s, -k, -m.
        scenario: Only this scenario.
        clients: Only this number of clients.
        method: Only this method.
    """

    dataset: Datasets = ()
    scenario: Scenarios = ()
    clients: ClientCounts = ()
    method: Methods = ()

    @property
    def columns(self) -> dict[str, tuple[str, ...] | tuple[int, ...]]:
        """Allowed values by column of stored runs. A column without an entry allows all values."""
        return {name: value for name, value in vars(self).items() if value}


@Parameter(name="*")
@dataclass(frozen=True)
class RunFilters(CellFilters):
    """Select runs."""

    seed: Annotated[Seeds, Parameter(help="Only this seed, or several, such as 0-4,7.")] = ()

    def of_grid(self) -> Filters:
        """These filters in the form for a grid's runs."""
        from bench.grids import Filters

        return Filters(*vars(self).values())


ALL_CELLS, ALL_RUNS = CellFilters(), RunFilters()


@Parameter(name="*")
@dataclass(frozen=True)
class Machines(Placement):
    """Where runs are made, and the resources that they may use.

    Args:
        jobs: Runs at the same time, over all devices; default: one a core, and at most four a GPU.
        threads: Threads of one run; default: 1. More make parallel runs slower, and may change last digits.
        devices: cpu, cuda, or GPUs such as cuda:0,cuda:1; default: every visible GPU, else cpu.
        backend: Where runs are made: local (this machine), ray (the Ray cluster of this machine or of
            RAY_ADDRESS; default for --jobs: as many as fit) or slurm (one Slurm job a run, 32 at a time).
            On a cluster, --devices is cpu or cuda.
        slurm: A resource that Slurm gives every job, such as partition=gpu; may be given several times.
    """

    jobs: PositiveInt | None = None
    threads: PositiveInt | None = None
    devices: str | None = None
    backend: Backend = "local"
    slurm: Annotated[tuple[str, ...], _several("--slurm")] = ()


LOCAL = Machines()
