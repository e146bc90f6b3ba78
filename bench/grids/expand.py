"""Expand a grid to its runs: every combination with its complete spec."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bench.dataset import DATASETS
from bench.engine.methods import METHODS
from bench.errors import RequestError, unknown
from bench.grids.grid import MODEL, PARTITION_SEED, Grid, Setting, combinations, load_grid
from bench.resolve import Overrides, resolve
from bench.spec import RunSpec, run_name


@dataclass(frozen=True)
class Filters:
    """Selects runs of a grid; an empty filter selects all. ``seeds`` replace the grid's own seeds."""

    datasets: tuple[str, ...] = ()
    scenarios: tuple[str, ...] = ()
    clients: tuple[int, ...] = ()
    methods: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()


@dataclass(frozen=True)
class Planned:
    """One run of a grid.

    ``method`` is the method's name in the grid; ``spec.method`` differs if the method reports another
    method's run. ``variant`` says what the grid varies (``method.stalk=2``); empty for the plain run.
    ``tuned_on`` is the hash of the clients on which the spec's configuration was searched; empty if the
    configuration was not searched, or was searched on another partition.
    """

    spec: RunSpec
    method: str
    variant: str = ""
    tuned_on: str = ""

    @property
    def cell_title(self) -> str:
        """The cell's name for people."""
        return run_name(*self.names[:4])

    @property
    def names(self) -> tuple[str, str, int, str, int]:
        """Data set, scenario, clients, method and seed."""
        return (self.spec.dataset, self.spec.scenario, self.spec.clients, self.method, self.spec.seed)


def requested_grid(name_or_path: str | None, filters: Filters) -> Grid:
    """Return the grid of that name or file. Without one, return the grid of the filters' data sets and
    methods; defaults: the first scenario of each data set, 10 clients, seed 0.
    """
    if name_or_path:
        return load_grid(name_or_path)
    if not (filters.datasets and filters.methods):
        raise RequestError("expected --grid NAME, or a data set and a method: -d cora -m fedavg")
    settings = tuple(
        Setting(datasets=(dataset,), scenario=scenario, clients=filters.clients or (10,))
        for dataset in filters.datasets
        for scenario in filters.scenarios or DATASETS.named(dataset).scenarios[:1]
    )
    return Grid(title="", methods=filters.methods, seeds=filters.seeds or (0,), settings=settings)


def expand(grid: Grid, filters: Filters | None = None, overrides: Overrides | None = None) -> list[Planned]:
    """Return the runs of a grid: all runs of the first seed, then all of the second seed, and so on.

    ``overrides`` come after the grid's own. A key ``method.*`` applies to methods with this hyper-parameter;
    at least one must have it. A filter that matches nothing is a ``RequestError``.
    """
    filters, overrides = filters or Filters(), overrides or {}
    chosen = all_combinations = list(combinations(grid))
    choices = {
        "dataset": filters.datasets,
        "scenario": filters.scenarios,
        "number of clients": filters.clients,
        "method": filters.methods,
    }
    for place, (column, choice) in enumerate(choices.items()):
        grid_values = {str(combination[place]) for combination in all_combinations}
        for value in map(str, choice):
            if value not in grid_values:
                raise unknown(f"{column} in this grid:", value, grid_values)
        chosen = [each for each in chosen if not choice or each[place] in choice]
    if not chosen:
        raise RequestError("no run of the grid matches all filters together: leave one of them away")
    methods = sorted({method for *_, method, _ in chosen})
    hyper_keys = set().union(*map(_hyper_keys, methods))
    for key in overrides:
        if key.startswith("method.") and key not in hyper_keys:
            raise unknown(f"key for {', '.join(methods)}:", key, hyper_keys)
    first_seed, *seeds = dict.fromkeys(filters.seeds or grid.seeds)
    runs = [plan(grid, *combination, first_seed, overrides) for combination in chosen]
    runs = list({(run.names, run.spec.hash): run for run in runs}.values())
    draws = grid.partition_per_seed and PARTITION_SEED not in overrides
    return runs + [replace(run, spec=run.spec.with_seed(seed, draws)) for seed in seeds for run in runs]


def _hyper_keys(method: str) -> set[str]:
    """Return a method's hyper-parameters as keys; none for an unknown method, which ``resolve`` refuses."""
    kind = METHODS.all().get(method)
    return {f"method.{name}" for name in kind.Hyper.model_fields} if kind else set()


def plan(
    grid: Grid,
    dataset: str,
    scenario: str,
    clients: int,
    method: str,
    variant: Overrides,
    seed: int,
    overrides: Overrides | None = None,
) -> Planned:
    """Plan one run as the grid would make it: with its protocol, its override blocks, and this variant."""
    values = {
        **{f"protocol.{key}": value for key, value in grid.protocol.items()},
        **{f"client.{key}": value for key, value in grid.client.items()},
    }
    model = variant.get(MODEL, values.get(MODEL, DATASETS.named(dataset).client.model))
    for block in grid.override:
        if block.match.has(dataset, scenario, clients, method, model):
            values |= block.set
    values |= variant
    if grid.partition_per_seed:
        values[PARTITION_SEED] = seed
    hyper_keys = _hyper_keys(method)
    for key, value in (overrides or {}).items():
        if not key.startswith("method.") or key in hyper_keys:
            values[key] = value
    variant_text = ", ".join(f"{key}={value}" for key, value in variant.items())
    try:
        return Planned(resolve(dataset, scenario, clients, method, seed, values), method, variant_text)
    except RequestError as error:
        if not grid.title:  # a grid of options only
            raise
        raise RequestError(f"grid '{grid.title}', {method} on {dataset} {variant_text}: {error}") from None
