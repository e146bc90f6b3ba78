"""Tuned configurations for planned runs, and which stored runs are tuned."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from bench import paths
from bench.engine.methods import METHODS
from bench.errors import RequestError
from bench.grids import Planned
from bench.spec import RunSpec
from bench.tune.record import Record, file_name, parse
from bench.tune.tuning import configured, no_study, numerics

NAMED = 5
"""Cells without a configuration that a message names."""


@dataclass(frozen=True)
class Configuration:
    """The finished study of a cell. ``own``: by the user, not one that comes with the suite."""

    record: Record
    own: bool

    def fits(self, spec: RunSpec) -> bool:
        """Whether the study was made for the spec's cell: all settings are the same but the seed and the
        partition's.
        """
        return self.record.spec.cell_on_any_partition == spec.cell_on_any_partition

    def clients(self, spec: RunSpec) -> str:
        """The hash of the clients that the search was made on; empty where the spec asks for other ones."""
        same = self.record.spec.federation_key == spec.federation_key
        return self.record.clients if same else ""

    @property
    def current(self) -> bool:
        """Whether the search was made by code of the numerics that are installed; its method is at hand."""
        return self.record.numerics == numerics(self.record.spec.method)

    def apply(self, spec: RunSpec) -> RunSpec:
        """The spec in the winner's configuration."""
        return configured(spec, self.record.winner.overrides)


@dataclass(frozen=True)
class Configurations:
    """Every tuned configuration at hand, by its file's name, the user's own before the suite's."""

    by_file: dict[str, tuple[Configuration, ...]]

    def of(self, spec: RunSpec) -> Configuration | None:
        """The one for a run in its cell's default configuration, of the installed code if there is such a
        one; None where its cell was not tuned.
        """
        fitting = [each for each in self._candidates(spec) if each.fits(spec)]
        return next((each for each in fitting if each.current), fitting[0] if fitting else None)

    def behind(self, spec: RunSpec) -> Configuration | None:
        """The one that a run was made with; None where it is not tuned, the search had its seed, or was
        made by code of other numerics.

        Budget, what was used of it, and validation accuracy, the default's too, are in its ``record``.
        None, too, where the default configuration won: its runs are the default's, and shown as such.
        """
        return next((each for each in self._won_by(spec) if not each.fits(spec)), None)

    def kept(self, spec: RunSpec) -> Configuration | None:
        """The one whose search the default configuration won, for a run in it; None as in ``behind``."""
        return next((each for each in self._won_by(spec) if each.fits(spec)), None)

    def _won_by(self, spec: RunSpec) -> Iterator[Configuration]:
        """Those of the installed code whose winner the spec is, on a seed that the search did not have."""
        for each in self._candidates(spec):
            won = each.apply(each.record.spec).cell_on_any_partition
            if each.current and spec.seed not in each.record.seeds and won == spec.cell_on_any_partition:
                yield each

    def _candidates(self, spec: RunSpec) -> tuple[Configuration, ...]:
        """Those of the spec's cell; none where its method is not at hand, which alone knows the values."""
        return self.by_file.get(file_name(spec), ()) if spec.method in METHODS.all() else ()


def configurations(home: Path | None = None) -> Configurations:
    """The files of ``BENCH_HOME/tuned`` and those that come with the suite.

    Raises:
        RequestError: one of them is damaged, or not of this suite's methods.
    """
    by_file: dict[str, tuple[Configuration, ...]] = {}
    for folder, own in (((home or paths.home()) / "tuned", True), (_shipped(), False)):
        entries: Iterable[Any] = folder.iterdir() if folder.is_dir() else ()
        for file in sorted(entries, key=lambda entry: str(entry.name)):
            if not file.name.endswith(".json"):
                continue
            try:
                configuration = Configuration(parse(file.read_bytes(), file.name), own)
            except OSError as error:
                raise RequestError(f"tuned configuration {file.name}: {error.strerror}") from None
            _check(configuration, file.name)
            by_file[file.name] = (*by_file.get(file.name, ()), configuration)
    return Configurations(by_file)


def _check(configuration: Configuration, name: str) -> None:
    """Whether a method that is at hand takes the winner's values."""
    spec = configuration.record.spec
    if spec.method not in METHODS.all():
        return  # a plug-in's
    try:
        configuration.apply(spec)
    except RequestError as error:
        raise RequestError(f"tuned configuration {name}: {error}; run bench tune again") from None


def _shipped() -> Traversable:
    return files("bench.results").joinpath("tuned")


def tuned(planned: Iterable[Planned], known: Configurations | None = None) -> list[Planned]:
    """The planned runs in their cells' tuned configurations, with the clients of the search.

    Runs that are not implemented, of methods that do not train, or of methods that do not run on the
    data set have none and need none.

    Raises:
        RequestError: some cell has none, or one of other numerics; a run's seed was used in the search.
    """
    known = known or configurations()
    lacking: dict[str, None] = {}
    made = []
    for each in planned:
        if each.spec is None or no_study(each):
            made.append(each)
            continue
        found = known.of(each.spec)
        if found is None or not found.current:
            note = each.variant if found is None else "tuned by code of other numerics"
            name = f"{each.method} {each.dataset} {each.scenario} {each.clients}"
            lacking[f"{name} ({note})" if note else name] = None
            continue
        if each.seed in found.record.seeds:
            raise RequestError(
                f"--use-tuned: seed {each.seed} was used to tune {each.method} on {each.dataset}: "
                "name seeds that the search has not seen"
            )
        made.append(replace(each, spec=found.apply(each.spec), tuned_on=found.clients(each.spec)))
    if lacking:
        names = list(lacking)
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        raise RequestError(
            f"--use-tuned: no tuned configuration with these settings for {', '.join(names[:NAMED])}{more}: "
            "run bench tune for them, or leave them out"
        )
    return made
