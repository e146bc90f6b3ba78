"""From a grid to its runs: every combination with its complete spec."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from bench import registry
from bench.dataset import DATASETS
from bench.engine.methods import METHODS
from bench.errors import RequestError, unknown
from bench.grids.files import load_grid
from bench.grids.grid import MODEL, PARTITION_SEED, Grid, Setting
from bench.registry import Kind
from bench.resolve import Overrides, check_sections, resolve
from bench.spec import RunSpec, run_name


@dataclass(frozen=True)
class Filters:
    """Which runs of a grid are wanted; an empty filter wants all of them.

    ``seeds`` stand in place of the grid's own and may be others: a grid says how many a study needs, and
    who wants more gets them.
    """

    datasets: tuple[str, ...] = ()
    scenarios: tuple[str, ...] = ()
    clients: tuple[int, ...] = ()
    methods: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()


@dataclass(frozen=True)
class Planned:
    """One run of a grid.

    ``method`` is the grid's name for it, which may differ from ``spec.method`` where one method reports
    another one's run. ``variant`` says what the grid varies (``method.stalk=2``); empty for the plain run.
    ``tuned_on`` is the hash of the clients that the spec's configuration was searched on; empty where it was
    not, or on another partition.
    """

    spec: RunSpec
    method: str
    variant: str = ""
    tuned_on: str = ""

    @property
    def cell_title(self) -> str:
        """The cell in words."""
        return run_name(*self.names[:4])

    @property
    def names(self) -> tuple[str, str, int, str, int]:
        """Data set, scenario, clients, method and seed."""
        return (self.spec.dataset, self.spec.scenario, self.spec.clients, self.method, self.spec.seed)


def requested_grid(name_or_path: str | None, filters: Filters) -> Grid:
    """The grid of that name or file; without one, the grid that the filters alone describe.

    Raises:
        RequestError: as ``load_grid`` or ``ad_hoc``.
    """
    return load_grid(name_or_path) if name_or_path else ad_hoc(filters)


def ad_hoc(filters: Filters) -> Grid:
    """The grid that options alone describe: data sets and methods, the rest has defaults.

    Defaults: the first scenario of each data set, 10 clients, seed 0.

    Raises:
        RequestError: no data set or no method is named, a data set is unknown, or a number is too small.
    """
    if not (filters.datasets and filters.methods):
        gap = "no method" if filters.datasets else "no data set" if filters.methods else "neither"
        raise RequestError(f"expected --grid NAME, or a data set and a method (-d cora -m fedavg), got {gap}")
    for option, values, minimum in (("--clients", filters.clients, 1), ("--seed", filters.seeds, 0)):
        if values and min(values) < minimum:
            raise RequestError(f"{option} expects {minimum} or more, got {min(values)}")
    settings = tuple(
        Setting(datasets=(dataset,), scenario=scenario, clients=filters.clients or (10,))
        for dataset in filters.datasets
        for scenario in filters.scenarios or DATASETS.named(dataset).scenarios[:1]
    )
    return Grid(title="", methods=filters.methods, seeds=filters.seeds or (0,), settings=settings)


def expand(grid: Grid, filters: Filters | None = None, overrides: Overrides | None = None) -> list[Planned]:
    """The runs of a grid: all of the first seed, then all of the second one, and so on.

    ``overrides`` come after the grid's own. One of ``method.*`` goes to those methods that have
    such a hyper-parameter; at least one must.

    Raises:
        RequestError: a filter that matches nothing in the grid; an unknown name; a scenario of another
            family; an unknown key or a wrong value.
    """
    filters = filters or Filters()
    all_combinations = list(combinations(grid))
    _check_filters(grid, all_combinations, filters)
    chosen_combinations = [combination for combination in all_combinations if _passes(combination, filters)]
    if not chosen_combinations:
        raise RequestError("no run of the grid matches all filters together: leave one of them away")
    overrides = dict(overrides or {})
    check_sections(overrides)
    _check_method_keys(overrides, {method for *_, method, _ in chosen_combinations})
    first_seed, *seeds = filters.seeds or grid.seeds
    runs = [plan(grid, *combination, first_seed, overrides) for combination in chosen_combinations]
    runs = list({(run.names, run.spec.hash): run for run in runs}.values())
    return runs + [_with_seed(grid, run, seed, overrides) for seed in dict.fromkeys(seeds) for run in runs]


Combination = tuple[str, str, int, str, Overrides]


def combinations(grid: Grid) -> Iterator[Combination]:
    """Data set, scenario, clients, method and variant of every run of a grid, without its seeds."""
    for setting in grid.settings:
        for dataset in setting.datasets:
            for clients in setting.clients:
                for method in grid.methods_of(setting):
                    for variant in setting.variants:
                        yield dataset, setting.scenario, clients, method, variant


def _passes(combination: Combination, filters: Filters) -> bool:
    choices = (filters.datasets, filters.scenarios, filters.clients, filters.methods)
    return all(not choice or value in choice for value, choice in zip(combination[:4], choices, strict=True))


def _check_filters(grid: Grid, combinations: list[Combination], filters: Filters) -> None:
    filter_values: Mapping[str, tuple[Any, ...]] = {
        "dataset": filters.datasets,
        "scenario": filters.scenarios,
        "number of clients": filters.clients,
        "method": filters.methods,
    }
    for column, (kind, values) in enumerate(filter_values.items()):
        grid_values = {combination[column] for combination in combinations}
        for value in values:
            if kind == "method" and value not in grid_values and value in METHODS.all():
                raise RequestError(
                    f"method '{value}' is not in this grid, which names its methods: copy it, add the "
                    "method, and give the file to --grid"
                )
            if value not in grid_values:
                raise unknown(f"{kind} in this grid:", str(value), map(str, grid_values))


def _check_method_keys(overrides: Mapping[str, Any], methods: set[str]) -> None:
    hyper_names = {name for method in methods for name in _hyper_names(method)}
    for key in overrides:
        section, _, name = key.partition(".")
        if section == "method" and name not in hyper_names:
            raise unknown(f"key '{key}' for {', '.join(sorted(methods))}:", name, hyper_names)


def _hyper_names(method: str) -> set[str]:
    return set(METHODS.all()[method].Hyper.model_fields) if method in METHODS.all() else set()


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
    """One run as the grid would make it: with its protocol, its override blocks, and this variant.

    Raises:
        RequestError: an unknown name or key, or a wrong value.
    """
    _check_known(DATASETS, dataset)
    _check_known(METHODS, method)
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
    hyper_names = _hyper_names(method)
    values |= {
        key: value
        for key, value in (overrides or {}).items()
        if not key.startswith("method.") or key.removeprefix("method.") in hyper_names
    }
    variant_text = ", ".join(f"{key}={value}" for key, value in variant.items())
    try:
        spec = resolve(dataset, scenario, clients, method, seed, values)
    except RequestError as error:
        if not grid.title:  # of options alone, which name no two methods' settings
            raise
        settings_text = f" with {variant_text}" if variant_text else ""
        raise RequestError(f"grid '{grid.title}', {method} on {dataset}{settings_text}: {error}") from None
    return Planned(spec, method, variant_text)


def _with_seed(grid: Grid, run: Planned, seed: int, overrides: Overrides | None = None) -> Planned:
    """A run of the grid with another seed, which decides nothing but, where the grid says so, the partition.

    Raises:
        RequestError: the seed is negative.
    """
    if seed < 0:
        raise RequestError(f"seed: expected 0 or more, got {seed}")
    protocol = run.spec.protocol
    if grid.partition_per_seed and PARTITION_SEED not in (overrides or {}):
        protocol = protocol.model_copy(update={"partition_seed": seed})
    return replace(run, spec=run.spec.model_copy(update={"seed": seed, "protocol": protocol}))


def _check_known(kind: Kind[Any], name: str) -> None:
    if name not in kind.all():
        raise RequestError(f"{kind.unknown(name)}; a {kind.word} of your own: {registry.PLUGINS}=FILE")
