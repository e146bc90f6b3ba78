"""Which configurations come next: the library's estimator on a study that is rebuilt from the trials."""

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


def propose(tuning: Tuning, trials: Sequence[Trial], count: int) -> list[int]:
    """The numbers of so many configurations to try side by side, none of them tried before.

    They follow from the search's name, its trials and the count. Each is suggested by the tree-structured
    Parzen estimator, which takes those suggested just before for bad ones, or else is a random one.
    """
    study = rebuilt(tuning, trials)
    space = _distributions(tuning)
    number_of = tuning.configurations.index
    taken = {number_of(trial.parameters) for trial in trials}
    proposals: list[int] = []
    for number in range(len(trials), len(trials) + count):
        stream = streams.generator(0, "tuning", tuning.name, number)
        study.sampler = TPESampler(seed=int(stream.integers(2**32)), multivariate=True, constant_liar=True)
        suggestion = study.ask(fixed_distributions=space)
        place = number_of(suggestion.params)
        if place in taken:
            study.tell(suggestion, state=TrialState.FAIL)
            free_places = [index for index in range(len(tuning.configurations)) if index not in taken]
            place = free_places[stream.integers(len(free_places))]
            study.enqueue_trial(tuning.configurations[place])
            study.ask(fixed_distributions=space)
        taken.add(place)
        proposals.append(place)
    return proposals


def rebuilt(tuning: Tuning, trials: Iterable[Trial], storage: BaseStorage | None = None) -> optuna.Study:
    """The library's study of a search, with every trial that has ended."""
    study = optuna.create_study(storage=storage, study_name=tuning.name, direction="maximize")
    for trial in trials:
        is_complete = trial.state == "complete"
        study.add_trial(
            create_trial(
                state=TrialState.COMPLETE if is_complete else TrialState.FAIL,
                value=trial.validation if is_complete else None,
                params=dict(trial.parameters),
                distributions=_distributions(tuning),
                user_attrs=trial.model_dump(include={"client_epochs", "state", "reason"}),
            )
        )
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
