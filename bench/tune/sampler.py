"""Which configuration comes next."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from optuna import Study
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.samplers import BaseSampler, TPESampler
from optuna.trial import FrozenTrial, TrialState

from bench import streams
from bench.tune.space import Space, Value

OUTCOME = "outcome"
"""User attribute of a trial that has ended by itself; a failed trial without it was lost."""

CUT_AT = "cut_at"
"""User attribute of a trial that was cut: the total of trials whose budget did not suffice."""


def distributions(space: Space) -> dict[str, CategoricalDistribution]:
    """The space as the library has it."""
    return {key: CategoricalDistribution(values) for key, values in space.items()}


def lost(trial: FrozenTrial) -> bool:
    """Whether a trial was stopped from outside: it does not count, and its configuration is run again."""
    return trial.state == TrialState.FAIL and OUTCOME not in trial.user_attrs


def standing(trials: Iterable[FrozenTrial]) -> list[FrozenTrial]:
    """Those that were not lost; of a configuration that was cut and is tried again, only the later one."""
    last = {frozenset(parameters(each).items()): each for each in trials if not lost(each)}
    return list(last.values())


def parameters(trial: FrozenTrial) -> dict[str, Any]:
    """A trial's configuration, also of one that waits to be run."""
    return dict(trial.system_attrs.get("fixed_params") or trial.params)


class Untried(BaseSampler):
    """The tree-structured Parzen estimator, but never a configuration that was tried.

    What it draws depends on the study's name and on how many trials count so far: a study that was
    stopped and goes on takes the same way.
    """

    def __init__(self, space: Space) -> None:
        self._space = space
        self._distributions: dict[str, BaseDistribution] = dict(distributions(space))

    def infer_relative_search_space(self, study: Study, trial: FrozenTrial) -> dict[str, BaseDistribution]:
        """The whole space."""
        return self._distributions

    def sample_relative(
        self, study: Study, trial: FrozenTrial, search_space: dict[str, BaseDistribution]
    ) -> dict[str, Any]:
        """The estimator's suggestion; where there is none, or it was tried, a random one of the rest."""
        every = study.get_trials(deepcopy=False)
        others = standing(each for each in every if each.number != trial.number)
        tried = {self._place(parameters(each)) for each in others}
        stream = streams.generator(0, "tuning", study.study_name, len(others))
        estimator = TPESampler(seed=int(stream.integers(2**32)), multivariate=True, constant_liar=True)
        suggestion = estimator.sample_relative(study, trial, search_space)
        if suggestion and self._place(suggestion) not in tried:
            return suggestion
        sizes = [len(values) for values in self._space.values()]
        left = [place for place in range(math.prod(sizes)) if place not in tried]
        return self._at(left[stream.integers(len(left))])

    def sample_independent(
        self, study: Study, trial: FrozenTrial, param_name: str, param_distribution: BaseDistribution
    ) -> Any:
        """Never called: the whole space is drawn at once."""
        raise KeyError(param_name)

    def _place(self, configuration: Mapping[str, Value]) -> int:
        """A configuration's number in the space; -1 where it is incomplete."""
        if configuration.keys() != self._space.keys():
            return -1
        place = 0
        for key, values in self._space.items():
            place = place * len(values) + values.index(configuration[key])
        return place

    def _at(self, place: int) -> dict[str, Value]:
        """The configuration with that number."""
        chosen: dict[str, Value] = {}
        for key, values in reversed(list(self._space.items())):
            place, index = divmod(place, len(values))
            chosen[key] = values[index]
        return {key: chosen[key] for key in self._space}
