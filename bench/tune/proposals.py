"""Which configurations come next: the library's estimator on a study that is rebuilt from the trials."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import optuna
from optuna.distributions import CategoricalDistribution
from optuna.samplers import TPESampler
from optuna.storages import BaseStorage, JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, TrialState, create_trial

from bench import streams
from bench.errors import RequestError
from bench.tune.record import Trial
from bench.tune.space import Space, Value
from bench.tune.tuning import Tuning

optuna.logging.set_verbosity(optuna.logging.WARNING)

STATES = {"complete": TrialState.COMPLETE, "pruned": TrialState.PRUNED}
"""What trials are for the library; one that was cut or gave no number has failed for it."""

Rungs = Mapping[int, float]
"""Rounds of a rung -> validation accuracy that a trial reached by then."""

Course = tuple[Trial, Rungs]
"""A trial and what it reached on its way."""


def place_of(space: Space, configuration: Mapping[str, Value]) -> int:
    """A configuration's number in the space."""
    indices = [values.index(configuration[key]) for key, values in space.items()]
    return int(np.ravel_multi_index(indices, _sizes(space)))


def _at(space: Space, place: int) -> dict[str, Value]:
    indices = np.unravel_index(place, _sizes(space))
    return {key: values[index] for (key, values), index in zip(space.items(), indices, strict=True)}


def _sizes(space: Space) -> tuple[int, ...]:
    return tuple(map(len, space.values()))


def propose(tuning: Tuning, courses: Sequence[Course], count: int) -> list[dict[str, Value]]:
    """So many configurations to try side by side, none of them tried before.

    They follow from the search's name, its trials and the count. Each is suggested by the tree-structured
    Parzen estimator, which takes those suggested just before for bad ones, or else is a random one.
    """
    study = rebuilt(tuning, courses)
    proposals: list[dict[str, Value]] = []
    tried = {place_of(tuning.space, trial.parameters) for trial, _ in courses}
    for number in range(len(courses), len(courses) + count):
        stream = streams.generator(0, "tuning", tuning.name, number)
        study.sampler = TPESampler(seed=int(stream.integers(2**32)), multivariate=True, constant_liar=True)
        asked = study.ask(fixed_distributions=dict(_distributions(tuning.space)))
        if (place := place_of(tuning.space, asked.params)) in tried:
            study.tell(asked, state=TrialState.FAIL)
            rest = [other for other in range(tuning.size) if other not in tried]
            place = rest[stream.integers(len(rest))]
            study.enqueue_trial(_at(tuning.space, place))
            study.ask(fixed_distributions=dict(_distributions(tuning.space)))
        tried.add(place)
        proposals.append(_at(tuning.space, place))
    return proposals


def rebuilt(tuning: Tuning, courses: Iterable[Course], storage: BaseStorage | None = None) -> optuna.Study:
    """The library's study of a search, with every trial that has ended."""
    study = optuna.create_study(storage=storage, study_name=tuning.name, direction="maximize")
    study.add_trials([_frozen(tuning, trial, reached) for trial, reached in courses])
    return study


def _frozen(tuning: Tuning, trial: Trial, reached: Rungs) -> FrozenTrial:
    state = STATES.get(trial.state, TrialState.FAIL)
    return create_trial(
        state=state,
        value=trial.validation if state == TrialState.COMPLETE else None,
        params=dict(trial.parameters),
        distributions=dict(_distributions(tuning.space)),
        intermediate_values=dict(reached),
        user_attrs={"client_epochs": trial.client_epochs, "state": trial.state, "reason": trial.reason},
    )


def _distributions(space: Space) -> dict[str, CategoricalDistribution]:
    return {key: CategoricalDistribution(values) for key, values in space.items()}


def export(searches: Iterable[tuple[Tuning, Sequence[Course]]], path: Path) -> None:
    """Write searches as a journal of the library, which ``optuna-dashboard`` opens.

    Raises:
        RequestError: the file exists, or cannot be written.
    """
    if path.exists():
        raise RequestError(f"--optuna expects a new file, got {path}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        storage = JournalStorage(JournalFileBackend(str(path)))
        for tuning, courses in searches:
            rebuilt(tuning, courses, storage)
    except OSError as error:
        raise RequestError(f"--optuna: expected to write {path}: {error.strerror}") from None
