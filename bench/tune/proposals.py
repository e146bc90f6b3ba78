"""Which configuration comes next: the library's estimator on a study that is rebuilt from the trials."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.samplers import TPESampler
from optuna.storages import BaseStorage, JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState, create_trial

from bench import streams
from bench.errors import RequestError
from bench.tune.record import Trial
from bench.tune.tuning import Tuning

optuna.logging.set_verbosity(optuna.logging.WARNING)


def propose(tuning: Tuning, trials: Sequence[Trial]) -> int:
    """The number of a configuration to try that was not tried before.

    It follows from the search's name and its trials: the suggestion of the tree-structured Parzen estimator,
    or a random one where that was tried.
    """
    study = rebuilt(tuning, trials)
    stream = streams.generator(0, "tuning", tuning.name, len(trials))
    study.sampler = TPESampler(seed=int(stream.integers(2**32)), multivariate=True)
    number_of = tuning.configurations.index
    taken = {number_of(trial.parameters) for trial in trials}
    place = number_of(study.ask(fixed_distributions=_distributions(tuning)).params)
    if place not in taken:
        return place
    free_places = [index for index in range(len(tuning.configurations)) if index not in taken]
    return free_places[stream.integers(len(free_places))]


def rebuilt(tuning: Tuning, trials: Iterable[Trial], storage: BaseStorage | None = None) -> optuna.Study:
    """The library's study of a search, with every trial that has ended."""
    study = optuna.create_study(storage=storage, study_name=tuning.name, direction="maximize")
    for trial in trials:
        is_complete = trial.state == "complete"
        ended_trial = create_trial(
            state=TrialState.COMPLETE if is_complete else TrialState.FAIL,
            value=trial.validation if is_complete else None,
            params=dict(trial.parameters),
            distributions=_distributions(tuning),
            user_attrs=trial.model_dump(include={"client_epochs", "state", "reason"}),
        )
        study.add_trial(ended_trial)
    return study


def _distributions(tuning: Tuning) -> dict[str, BaseDistribution]:
    return {key: CategoricalDistribution(values) for key, values in tuning.space.items()}


def export(searches: Sequence[tuple[Tuning, Sequence[Trial]]], path: Path) -> None:
    """Write searches into a new file, as a journal of the library, which ``optuna-dashboard`` opens."""
    if path.exists():
        raise RequestError(f"--optuna expects a new file, got {path}")
    storage = JournalStorage(JournalFileBackend(str(path)))
    for tuning, trials in searches:
        rebuilt(tuning, trials, storage)
