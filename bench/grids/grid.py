"""A grid: a product of data sets, scenarios, client counts, methods and seeds, read from TOML."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from importlib.resources import files
from importlib.resources.abc import Traversable
from itertools import product
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from bench.dataset import DATASETS
from bench.errors import RequestError, unknown

MODEL = "client.model"
"""The setting that ``Match.model`` is about."""


def _several(value: Any) -> Any:
    """A single value stands for a list of one."""
    return value if isinstance(value, tuple) else (value,)


Names = Annotated[tuple[str, ...], Field(min_length=1), BeforeValidator(_several)]
Counts = Annotated[tuple[Annotated[int, Field(ge=1)], ...], Field(min_length=1), BeforeValidator(_several)]
Seeds = Annotated[tuple[Annotated[int, Field(ge=0)], ...], Field(min_length=1), BeforeValidator(_several)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Setting(_Part):
    """One product of data sets and client counts in a scenario; ``methods`` replaces the grid's.

    Every run is made once for each of ``variants``: dotted keys and their values, as in an
    override's ``set``; an empty one is the plain run. ``vary`` gives keys several values each:
    every variant is run with every combination of them.
    """

    datasets: Names
    scenario: str
    clients: Counts
    methods: Names | None = None
    variants: Annotated[tuple[dict[str, Any], ...], Field(min_length=1)] = ({},)
    vary: dict[str, Annotated[tuple[Any, ...], Field(min_length=1)]] = Field(default_factory=dict)

    def variations(self) -> Iterator[dict[str, Any]]:
        """What distinguishes the setting's runs: every variant with every combination of ``vary``."""
        for variant in self.variants:
            for values in product(*self.vary.values()):
                yield {**variant, **dict(zip(self.vary, values, strict=True))}


class Match(_Part):
    """Which runs an override is for; what is left out matches everything. ``model`` is the client model."""

    dataset: Names | None = None
    scenario: Names | None = None
    clients: Counts | None = None
    method: Names | None = None
    model: Names | None = None

    def applies(self, dataset: str, scenario: str, clients: int, method: str, model: str) -> bool:
        """Whether a run is one of those meant."""
        have: dict[str, str | int] = {
            "dataset": dataset,
            "scenario": scenario,
            "clients": clients,
            "method": method,
            "model": model,
        }
        return all(have[key] in wanted for key, wanted in self.model_dump(exclude_none=True).items())


class Override(_Part):
    """Dotted keys (``protocol.rounds``, ``method.mu``) set for the runs that ``match`` names."""

    match: Match
    set: Annotated[dict[str, Any], Field(min_length=1)]


class Grid(_Part):
    """What a sweep runs.

    Every method of every setting is run with every seed; ``references`` (such as ``majority``) run
    beside the methods in every setting that names none of its own. ``protocol`` and ``client``
    replace the data sets' defaults; ``override`` blocks come after them, in order. With
    ``partition_per_seed`` a run's partition and split are drawn from the run's own seed.
    """

    title: str
    study: str | None = None
    methods: Names
    references: tuple[str, ...] = ()
    seeds: Seeds
    partition_per_seed: bool = False
    protocol: dict[str, Any] = Field(default_factory=dict)
    client: dict[str, Any] = Field(default_factory=dict)
    settings: Annotated[tuple[Setting, ...], Field(min_length=1)]
    override: tuple[Override, ...] = ()

    def methods_of(self, setting: Setting) -> tuple[str, ...]:
        """The methods of a setting, references last."""
        return setting.methods if setting.methods is not None else (*self.methods, *self.references)


PARTS: dict[str, type[BaseModel]] = {"settings": Setting, "override": Override, "match": Match}


def grid_names() -> list[str]:
    """Names of the grids that come with the suite."""
    return sorted(_named())


def _named() -> dict[str, Traversable]:
    return {
        file.name.removesuffix(".toml"): file
        for file in files("bench.grids").iterdir()
        if file.name.endswith(".toml")
    }


def load_grid(name_or_path: str) -> Grid:
    """A grid by its name, or from a TOML file.

    Raises:
        RequestError: no such grid or file, not TOML (with the line), an unknown key (with the
            nearest one), a value of the wrong kind, an override that matches nothing in the grid.
    """
    named = _named()
    path = Path(name_or_path)
    if name_or_path in named:
        text = named[name_or_path].read_text(encoding="utf-8")
    elif path.suffix == ".toml" or len(path.parts) > 1:
        if not path.is_file():
            raise RequestError(f"grid file {name_or_path}: no such file; a grid's name is {', '.join(named)}")
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise RequestError(f"grid file {name_or_path}: cannot read it as text: {error}") from None
    else:
        raise unknown("grid", name_or_path, named)
    return parse_grid(text, name_or_path)


def parse_grid(text: str, name: str) -> Grid:
    """A grid from TOML text; ``name`` is for messages. Raises as ``load_grid`` does."""
    try:
        tree = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise RequestError(f"grid {name} is not valid TOML: {error}") from None
    try:
        grid = Grid.model_validate(_tuples(tree))
    except ValidationError as error:
        raise _explain(error, name) from None
    _check_matches(grid, name)
    return grid


def _tuples(value: Any) -> Any:
    """TOML's lists as tuples, for a strict model."""
    if isinstance(value, list):
        return tuple(_tuples(part) for part in value)
    if isinstance(value, dict):
        return {key: _tuples(part) for key, part in value.items()}
    return value


def _explain(error: ValidationError, name: str) -> RequestError:
    # A key that is unknown is often one that is missing, misspelt: it is named first.
    first = min(error.errors(), key=lambda each: each["type"] != "extra_forbidden")
    where = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        *parents, key = first["loc"]
        model: type[BaseModel] = Grid
        for part in parents:
            model = PARTS.get(str(part), model)
        return unknown(f"key '{where}' of grid {name}:", str(key), model.model_fields)
    if first["type"] == "missing":
        return RequestError(f"grid {name}: the key '{where}' is missing")
    return RequestError(f"grid {name}: {where}: {first['msg']}, got {first['input']!r}")


def _check_matches(grid: Grid, name: str) -> None:
    have: dict[str, set[str]] = {
        "dataset": {dataset for setting in grid.settings for dataset in setting.datasets},
        "scenario": {setting.scenario for setting in grid.settings},
        "clients": {str(clients) for setting in grid.settings for clients in setting.clients},
        "method": {method for setting in grid.settings for method in grid.methods_of(setting)},
        "model": set(_models(grid)),
    }
    for index, override in enumerate(grid.override):
        for key, wanted in override.match.model_dump(exclude_none=True).items():
            for value in map(str, wanted):
                if value not in have[key]:
                    raise unknown(f"override.{index}.match.{key} of grid {name}:", value, have[key])


def _models(grid: Grid) -> Iterator[str]:
    """The client models that a grid or its data sets name."""
    for setting in grid.settings:
        datasets = [DATASETS.all().get(name) for name in setting.datasets]
        yield from (dataset.client.model for dataset in datasets if dataset)
        yield from (str(some[MODEL]) for some in setting.variations() if MODEL in some)
    if "model" in grid.client:
        yield str(grid.client["model"])
