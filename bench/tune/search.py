"""The state of searches, derived from their stored runs, and the runs that a sweep makes next.

A search stores nothing but its runs. A trial is a configuration, run with every seed of the search. The
default configuration comes first; earlier trials propose every other one. So neither parallel runs nor run
times affect decisions, and a search that was stopped repeats the same steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, cast

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution
from optuna.trial import create_trial

from bench import streams
from bench.errors import RequestError
from bench.grids import Planned
from bench.metric_names import ACCURACY
from bench.runner.execution import CLIENT_EPOCHS
from bench.runner.plan import Step
from bench.spec import RunSpec
from bench.store import Store, open_store
from bench.store.store import stored_runs
from bench.store.tables import Stored
from bench.tune.record import Record, State, Trial, record, winner_of, write
from bench.tune.tuning import STAGE, Tuning, numerics

EPSILON = 1e-6
"""Differences in client epochs up to this are rounding."""

optuna.logging.set_verbosity(optuna.logging.WARNING)


class TrialRun(NamedTuple):
    """A stored run, with the trained model's mean validation accuracy over clients at its best round."""

    id: int  # increases in the order in which runs were stored
    state: str
    reason: str
    validation: float | None
    client_epochs: float | None
    seconds: float


class Search:
    """One search with its stored runs.

    ``trials``: the ended trials. ``to_run``: the runs that come next. ``ended``: the part of the budget that
    is used up. ``hopeless``: why no number is possible. ``clients``: the hash of the runs' federation.
    """

    def __init__(self, tuning: Tuning) -> None:
        self.tuning = tuning
        self.clients = ""
        self.trials: list[Trial] = []
        self.to_run: list[RunSpec] = []
        self.ended = ""
        self.hopeless = ""
        self.pending: set[str] = set()  # spec hashes of requested runs
        self.runs: dict[int, dict[int, TrialRun]] = {}  # by the number of the configuration, then by seed

    def take(self, spec: RunSpec, run: TrialRun, clients: str) -> bool:
        """Add a stored run; return False if the run does not belong to the search."""
        place = self.tuning.place_of(spec)
        if place is None:
            return False
        if run.state in ("not_applicable", "no_data"):  # the data may be there by the next call
            self.hopeless = run.reason if run.state == "not_applicable" or self.pending else ""
        else:
            self.clients = clients or self.clients
            self.runs.setdefault(place, {})[spec.seed] = run
        return True

    def look(self) -> list[Trial]:
        """Update the state of the search; return the trials that have ended since the last call."""
        known, default = len(self.trials), self.tuning.configurations.index(self.tuning.default)
        first_ids = {place: min(run.id for run in runs.values()) for place, runs in self.runs.items()}
        places = sorted(first_ids.keys() - {default}, key=first_ids.__getitem__)
        self.trials, self.to_run = [], []
        for place in (default, *places):
            self._try_out(place)
            if self.to_run:
                break
        self.ended = "" if self.to_run else self._used_up()
        if not self.to_run and not self.ended:
            self._try_out(propose(self.tuning, self.trials))
        return self.trials[known:]

    def _try_out(self, place: int) -> None:
        """Add the trial of a configuration if it has ended, else set the runs that it lacks."""
        runs = self.runs.get(place, {})
        specs = self.tuning.specs(self.tuning.configurations[place])
        self.to_run = [spec for spec in specs if spec.seed not in runs]
        if not self.to_run:
            self.trials.append(self._trial(place, [runs[seed] for seed in self.tuning.seeds]))

    def _trial(self, place: int, runs: Sequence[TrialRun]) -> Trial:
        """Return a trial of these runs. If it used more client epochs than are left, it is cut: no number."""
        usual = self.tuning.run_epochs / len(self.tuning.seeds)  # for runs without a stored number of epochs
        epochs = sum(usual if run.client_epochs is None else run.client_epochs for run in runs)
        left = self._epochs_left()
        state, validation, reason = "complete", None, ""
        if failed := [run for run in runs if run.state != "searched"]:
            state, reason = failed[0].state, failed[0].reason
        elif epochs > left + EPSILON:
            state = "cut"
            reason = f"it takes {epochs:,.0f} client epochs, {left:,.0f} were left: more --trials grant more"
        else:
            validation = sum(run.validation or 0.0 for run in runs) / len(runs)
        return Trial(
            number=len(self.trials),
            parameters=self.tuning.configurations[place],
            state=cast(State, state),
            validation=validation,
            client_epochs=min(epochs, left),
            seconds=sum(run.seconds for run in runs),
            reason=reason,
        )

    def _epochs_left(self) -> float:
        return self.tuning.budget - sum(trial.client_epochs for trial in self.trials)

    def _used_up(self) -> str:
        """Return the part of the budget that forbids a trial as long as the longest so far or a plain one."""
        dearest = max([self.tuning.run_epochs, *(trial.client_epochs for trial in self.trials)])
        if len(self.trials) >= self.tuning.trials:
            return "trials"
        if self._epochs_left() + EPSILON < dearest:
            return "client epochs"
        return "space" if len(self.trials) >= len(self.tuning.configurations) else ""


def propose(tuning: Tuning, trials: Sequence[Trial]) -> int:
    """Return the number of a configuration that was not tried before: the suggestion of the tree-structured
    Parzen estimator for these trials, or a random one if the suggestion was tried. The result depends only on
    the search's name and the trials.
    """
    stream = streams.generator(0, "tuning", tuning.name, len(trials))
    sampler = optuna.samplers.TPESampler(seed=int(stream.integers(2**32)), multivariate=True)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    space: dict[str, BaseDistribution]
    space = {key: CategoricalDistribution(values) for key, values in tuning.space.items()}
    for trial in trials:
        if trial.state == "complete":
            ended = create_trial(value=trial.validation, params=dict(trial.parameters), distributions=space)
            study.add_trial(ended)
    number_of = tuning.configurations.index
    taken = {number_of(trial.parameters) for trial in trials}
    place = number_of(study.ask(fixed_distributions=space).params)
    if place not in taken:
        return place
    free_places = [index for index in range(len(tuning.configurations)) if index not in taken]
    return free_places[stream.integers(len(free_places))]


def read(store: Store, searches: Sequence[Search], **filters: Any) -> None:
    """Give searches their stored runs; runs of other numerics versions are a ``RequestError``."""
    frame = store.runs(**filters, method=sorted({search.tuning.spec.method for search in searches}))
    scores = store.client_results(frame["id"], stage=STAGE, split="val", rule="best_val", metric=ACCURACY)
    means = scores.groupby("run_id")["value"].mean().to_dict()
    epochs = store.artefacts(frame["id"], CLIENT_EPOCHS)
    for row in frame.to_dict("records"):
        spec = RunSpec.model_validate_json(row["spec"])
        made_by = {"method": row["method_numerics"], "engine": row["engine_numerics"]}
        used = float(epochs[row["id"]]) if row["id"] in epochs else None
        ending = (row["state"], row["reason"], means.get(row["id"]), used, row["seconds_total"])
        for search in searches:
            is_its = search.take(spec, TrialRun(row["id"], *ending), row["partition_hash"])
            if is_its and made_by != numerics(spec.method):
                gap = f"its trials in {store.name} are by code of other numerics; name another --db"
                raise RequestError(f"{search.tuning.title}: {gap}")


def opened_searches(database: str, tunings: Sequence[Tuning]) -> tuple[list[Search], list[Stored]]:
    """Return the stored searches, and every stored run. Refuse a search with more trials than requested."""
    searches = [Search(tuning) for tuning in tunings]
    history = list(stored_runs(database, searches=True).values())
    if history:
        with open_store(database, create=False) as store:
            read(store, searches)
    for search in searches:
        search.look()
        if len(search.runs) > search.tuning.trials:
            problem = f"{len(search.runs)} trials are done, --trials {search.tuning.trials} is a total"
            raise RequestError(f"{search.tuning.title}: {problem}")
    return searches, history


@dataclass
class Searches:
    """The searches in progress, the records of searches with a winner, and why others have no winner.

    ``on_trial`` is called for every trial that has ended.
    """

    going: list[Search]
    home: Path
    on_trial: Callable[[Search, Trial], None]
    records: list[Record] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)

    def follow(self, store: Store, states: Mapping[str, str]) -> list[Step]:
        """Return the further steps of a sweep, given the states of ended runs by spec hash."""
        searches = [search for search in self.going if search.pending & states.keys()]
        ended = [spec_hash for search in searches for spec_hash in search.pending & states.keys()]
        if searches:
            read(store, searches, spec_hash=ended)
        for search in searches:
            search.pending -= states.keys()
            for new_trial in search.look():
                self.on_trial(search, new_trial)
        return self.next_steps(searches)

    def next_steps(self, searches: Iterable[Search]) -> list[Step]:
        """Return the next steps of some searches. Remove ended searches, and write their records."""
        steps: list[Step] = []
        for search in [*searches]:
            if not search.hopeless and not search.ended:
                specs = [spec for spec in search.to_run if spec.hash not in search.pending]
                search.pending |= {spec.hash for spec in specs}
                steps += [Step(Planned(spec, spec.method), "missing", to_run=True) for spec in specs]
                continue
            self.going.remove(search)
            title, trials, winner = search.tuning.title, search.trials, winner_of(search.trials)
            if search.hopeless:
                self.failed[title] = search.hopeless
            elif winner is None:
                self.failed[title] = f"none of {len(trials)} trials gave a number: {trials[-1].reason}"
            else:
                self.records.append(record(search.tuning, search.clients, winner, trials))
                write(self.home / "tuned", self.records[-1])
        return steps

    def give_up(self, reasons: Iterable[str]) -> None:
        """Store for each search that the sweep has not finished why it is left, and that it can go on."""
        reason = "; ".join(reasons) or "its runs were lost"
        for search in self.going:
            self.failed[search.tuning.title] = f"{reason}; the same command goes on"
