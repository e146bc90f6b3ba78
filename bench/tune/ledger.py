"""The trials of a study: which is next, what came of it, and whether the budget is used up."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import optuna
from optuna.storages import BaseStorage, JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import FrozenTrial, TrialState

from bench.engine.result import RunResult
from bench.errors import RequestError
from bench.tune.journal import JOURNAL
from bench.tune.pruning import thresholds
from bench.tune.record import EPSILON, Budget, Trial, dearest, ended
from bench.tune.sampler import CUT_AT, OUTCOME, Untried, distributions, parameters, standing
from bench.tune.trial import TrialResult
from bench.tune.tuning import Tuning

optuna.logging.set_verbosity(optuna.logging.WARNING)

CLIENTS = "clients"
"""User attribute of a study: the hash of the clients that its trials are made on."""


def stored_trials(folder: Path, tunings: Sequence[Tuning]) -> dict[str, list[Trial]]:
    """The trials that count so far, by the studies' names, for those who only read."""
    path = folder / JOURNAL
    found: dict[str, list[Trial]] = {each.name: [] for each in tunings}
    if path.is_file():
        storage = JournalStorage(JournalFileBackend(str(path)))
        known = {each.study_name for each in storage.get_all_studies()}
        for name in found.keys() & known:
            study = optuna.load_study(study_name=name, storage=storage)
            found[name] = _counted(study.get_trials(deepcopy=False))
    return found


def check_totals(folder: Path, tunings: Sequence[Tuning]) -> None:
    """Refuse totals that lie below what was done.

    Raises:
        RequestError: a study has done more trials than are asked for, or used more client epochs.
    """
    done = stored_trials(folder, tunings)
    for each in tunings:
        count = len(done[each.name])
        used = sum(trial.client_epochs for trial in done[each.name])
        least = max(count, math.ceil((used - EPSILON) / each.run_epochs))
        if least > each.trials:
            raise RequestError(
                f"{each.title}: {count} trials are done, and --trials is a total: expected {least} or more, "
                f"got {each.trials}"
            )


@dataclass(frozen=True)
class Begun:
    """A trial that is to be run: its number in the journal, its configuration, the client epochs that
    it may use, and what it must have reached after every round.
    """

    number: int
    parameters: dict[str, Any]
    allowance: float
    thresholds: tuple[float, ...]


class Ledger:
    """One study while it is tuned by this process, which holds its lock.

    ``clients`` is the hash of the federation that there is now. At most ``slots`` trials are run at a time.

    Raises:
        RequestError: the study's trials were made on other clients.
    """

    def __init__(self, tuning: Tuning, clients: str, storage: BaseStorage, slots: int) -> None:
        self.tuning = tuning
        self.clients = clients
        self.slots = slots
        self.running: dict[int, Begun] = {}
        self._asked: dict[int, optuna.Trial] = {}
        self._study = optuna.create_study(
            storage=storage,
            study_name=tuning.name,
            direction="maximize",
            sampler=Untried(tuning.space),
            load_if_exists=True,
        )
        self._refuse_other_clients()
        self._take_up()
        self.trials = _counted(self._study.get_trials(deepcopy=False))

    def _refuse_other_clients(self) -> None:
        """Trials on several federations are not of one study; one without a trial takes the present."""
        known = self._study.user_attrs.get(CLIENTS, "")
        if not known and not self._study.get_trials(deepcopy=False):
            self._study.set_user_attr(CLIENTS, self.clients)
        elif known != self.clients:
            raise RequestError(
                f"{self.tuning.title}: its trials were made on other clients ({known[:8] or 'unknown'}) than "
                f"there are now ({self.clients[:8]}): they cannot be compared; use another BENCH_HOME"
            )

    def _take_up(self) -> None:
        """Enqueue the default configuration first, and again what a kill has left running and what the end
        of a smaller budget has cut.
        """
        known = self._study.get_trials(deepcopy=False)
        if not known:
            self._study.enqueue_trial(self.tuning.default)
        waiting = [parameters(each) for each in known if each.state == TrialState.WAITING]
        for each in known:
            if each.state != TrialState.RUNNING:
                continue
            if OUTCOME in each.user_attrs:  # it had ended, and was about to be marked so
                self._mark(each.number, each.user_attrs[OUTCOME]["state"], each.intermediate_values)
            else:
                # One that was not fully drawn was never run: it is drawn again, the same way.
                whole = parameters(each).keys() == self.tuning.space.keys()
                if whole and parameters(each) not in waiting:
                    self._study.enqueue_trial(parameters(each))
                self._study.tell(each.number, state=TrialState.FAIL)
        for each in standing(self._study.get_trials(deepcopy=False)):
            if each.user_attrs.get(CUT_AT, self.tuning.trials) < self.tuning.trials:
                self._study.enqueue_trial(parameters(each))

    @property
    def budget(self) -> Budget:
        """What was asked for."""
        return Budget(trials=self.tuning.trials, client_epochs=self.tuning.budget)

    @property
    def used(self) -> float:
        """Client epochs of the trials that have ended."""
        return sum(trial.client_epochs for trial in self.trials)

    @property
    def ended(self) -> str:
        """What is used up; empty while the study goes on."""
        return (
            ""
            if self.running
            else ended(len(self.trials), self.used, self.budget, self.tuning.run_epochs, self.tuning.size)
        )

    @property
    def _available(self) -> float:
        """Client epochs that no trial has used or may use yet."""
        return self.tuning.budget - self.used - sum(each.allowance for each in self.running.values())

    @property
    def ready(self) -> bool:
        """Whether a trial can begin now: with less left than a plain trial takes, none does."""
        under_way = len(self.trials) + len(self.running)
        within = under_way < min(self.tuning.trials, self.tuning.size)
        enough = self._available >= self.tuning.run_epochs - EPSILON
        return within and enough and self._places > 0

    @property
    def _places(self) -> int:
        """How many trials may begin side by side now: each may use at least what the dearest so far did, so
        that the number of slots does not decide which are cut.

        What a trial takes is not known before one was run to its end: the first, the default, runs alone.
        So does one for which less is left.
        """
        most = dearest(self.trials, self.tuning.run_epochs)
        places = 0
        if most is not None:
            places = min(self.slots - len(self.running), int((self._available + EPSILON) // most))
        return max(places, 0 if self.running else 1)

    def begin(self) -> Begun:
        """The next trial, once one is ``ready``. Those that may begin side by side share what is left of
        the budget.
        """
        share = self._available / self._places
        trial = self._study.ask(fixed_distributions=dict(distributions(self.tuning.space)))
        begun = Begun(
            trial.number,
            dict(trial.params),
            share,
            thresholds(self._curves(), self.tuning.spec.protocol.rounds),
        )
        self._asked[trial.number] = trial
        self.running[trial.number] = begun
        return begun

    def _curves(self) -> list[list[float]]:
        """Those of the completed trials."""
        complete = self._study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
        return [
            [each.intermediate_values[round] for round in range(self.tuning.spec.protocol.rounds)]
            for each in complete
        ]

    def end(self, begun: Begun, result: RunResult, seconds: float) -> Trial:
        """Note what came of a trial; it counts from here on.

        A trial that failed cannot say what it used: it is taken for one run to the end, within its
        allowance. Nor what it took: ``seconds`` does.
        """
        curve: Sequence[float] = ()
        used = min(float(self.tuning.run_epochs), begun.allowance)
        stopped = ""
        if isinstance(result, TrialResult):
            curve, used, stopped = result.curve, result.client_epochs, result.stopped
            seconds = result.seconds["total"]
        state = stopped or ("complete" if result.state == "done" else result.state)
        outcome = {"state": state, "client_epochs": used, "seconds": seconds, "reason": result.reason}
        trial = self._asked.pop(begun.number)
        for round, value in enumerate(curve):
            trial.report(value, round)
        if state == "cut":
            trial.set_user_attr(CUT_AT, self.tuning.trials)
        trial.set_user_attr(OUTCOME, outcome)
        self._mark(begun.number, state, dict(enumerate(curve)))
        self.running.pop(begun.number)
        self.trials = _counted(self._study.get_trials(deepcopy=False))
        return next(each for each in self.trials if each.parameters == begun.parameters)

    def _mark(self, number: int, state: str, values: Mapping[int, float]) -> None:
        """Give a trial its state in the journal. One that was cut is for the sampler as if it had failed: a
        larger total runs it again.
        """
        if state == "complete" and values:
            self._study.tell(number, values[max(values)])
        elif state == "pruned":
            self._study.tell(number, state=TrialState.PRUNED)
        else:
            self._study.tell(number, state=TrialState.FAIL)

    def give_up(self, begun: Begun) -> None:
        """Note that a trial was lost: it does not count."""
        self._study.tell(begun.number, state=TrialState.FAIL)
        self._asked.pop(begun.number)
        self.running.pop(begun.number)


def _counted(trials: Sequence[FrozenTrial]) -> list[Trial]:
    """The trials that count, numbered in the order in which they began."""
    counting = [each for each in standing(trials) if each.state.is_finished()]
    return [_trial(number, each) for number, each in enumerate(counting)]


def _trial(number: int, stored: FrozenTrial) -> Trial:
    values = stored.intermediate_values
    outcome = stored.user_attrs[OUTCOME]
    reached = values[max(values)] if values and outcome["state"] in ("complete", "cut", "pruned") else None
    return Trial(number=number, parameters=parameters(stored), validation=reached, **outcome)
