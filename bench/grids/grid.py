"""A grid: a product of data sets, scenarios, client counts, methods and seeds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from bench.spec import Count, Seed

MODEL = "client.model"
"""The setting that ``Match.model`` is about."""

PARTITION_SEED = "protocol.partition_seed"
"""The setting by which runs draw different clients."""


def _as_tuple(value: Any) -> Any:
    """A single value stands for a list of one."""
    return tuple(value) if isinstance(value, list | tuple) else (value,)


OptionalNames = Annotated[tuple[str, ...], BeforeValidator(_as_tuple)]
Names = Annotated[tuple[str, ...], Field(min_length=1), BeforeValidator(_as_tuple)]
Counts = Annotated[tuple[Count, ...], Field(min_length=1), BeforeValidator(_as_tuple)]
Seeds = Annotated[tuple[Seed, ...], Field(min_length=1), BeforeValidator(_as_tuple)]


class Part(BaseModel):
    """A part of a file: nothing but what is declared, and of the declared types."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Columns(Part):
    """The federations on which lines or methods are run: data sets by client counts in a scenario."""

    datasets: Names
    scenario: str
    clients: Counts


class Setting(Columns):
    """One product of data sets and client counts in a scenario; ``methods`` replaces the grid's.

    Every run is made once for each of ``variants``: dotted keys and their values, as in an
    override's ``set``; an empty one is the plain run.
    """

    methods: Names | None = None
    variants: Annotated[tuple[dict[str, Any], ...], Field(min_length=1)] = ({},)


class ColumnMatch(Part):
    """Which columns are meant; what is left out means all."""

    dataset: Names | None = None
    scenario: Names | None = None
    clients: Counts | None = None

    def has(self, *names: str | int) -> bool:
        """Whether what has these names, in the order of the fields, is among what is meant."""
        choices = (getattr(self, field) for field in type(self).model_fields)
        return all(choice is None or name in choice for choice, name in zip(choices, names, strict=True))


class Match(ColumnMatch):
    """Which runs an override is for. ``model`` is the client model."""

    method: Names | None = None
    model: Names | None = None


class Override(Part):
    """Dotted keys (``protocol.rounds``, ``method.mu``) set for the runs that ``match`` names."""

    match: Match
    set: Annotated[dict[str, Any], Field(min_length=1)]


class Grid(Part):
    """What a sweep runs.

    Every method of every setting is run with every seed; ``references`` (such as ``majority``) run
    beside the methods in every setting that names none of its own. ``protocol`` and ``client``
    replace the data sets' defaults; ``override`` blocks come after them, in order. With
    ``partition_per_seed`` a run's partition and split are drawn from the run's own seed.
    """

    title: str
    study: str | None = None
    methods: OptionalNames = ()
    references: OptionalNames = ()
    seeds: Seeds
    partition_per_seed: bool = False
    protocol: dict[str, Any] = Field(default_factory=dict)
    client: dict[str, Any] = Field(default_factory=dict)
    settings: Annotated[tuple[Setting, ...], Field(min_length=1)]
    override: tuple[Override, ...] = ()

    def methods_of(self, setting: Setting) -> tuple[str, ...]:
        """The methods of a setting, references last."""
        return setting.methods if setting.methods is not None else (*self.methods, *self.references)

    def settings_beside(self, host: str, method: str, values: Mapping[str, Any]) -> tuple[Setting, ...]:
        """The settings in which the grid runs ``host``, for a method that it does not name, which has
        these dotted keys and values everywhere.
        """
        return tuple(
            setting.model_copy(
                update={
                    "methods": (method,),
                    "variants": tuple({**variant, **values} for variant in setting.variants),
                }
            )
            for setting in self.settings
            if host in self.methods_of(setting)
        )


Combination = tuple[str, str, int, str, dict[str, Any]]


def combinations(grid: Grid) -> Iterator[Combination]:
    """Data set, scenario, clients, method and variant of every run of a grid, without its seeds."""
    for setting in grid.settings:
        for dataset in setting.datasets:
            for clients in setting.clients:
                for method in grid.methods_of(setting):
                    for variant in setting.variants:
                        yield dataset, setting.scenario, clients, method, variant
