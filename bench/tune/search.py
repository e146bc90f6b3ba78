"""Where a search stands, by its stored runs: which trials have ended, and which runs come next.

Nothing of a search is kept but its runs. A trial is a configuration, run with every seed of the search.
Trials come in batches: the default configuration alone, then as many as were asked for side by side. A batch
is proposed by the trials of the batches before alone. So neither what runs beside nor how long a run takes
decides anything, and a search that was stopped takes the same way again.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import cast, get_args

from bench.errors import RequestError
from bench.metric_names import ACCURACY
from bench.spec import FederationKey, RunSpec
from bench.store import Store, open_store
from bench.store.store import Stored, stored_runs
from bench.sweep.plan import Step, planned
from bench.tune.proposals import propose
from bench.tune.record import EPSILON, State, Trial, best_of, client_epochs, dearest, ended
from bench.tune.trial import CLIENT_EPOCHS
from bench.tune.tuning import STAGE, Tuning, Value


@dataclass(frozen=True)
class TrialRun:
    """A stored run. ``validation`` is the mean validation accuracy over clients of the trained model at its
    best round; ``client_epochs`` what it used. Both are None where the run gave none. ``number`` tells the
    order in which runs were stored.
    """

    number: int
    state: str
    reason: str
    validation: float | None
    client_epochs: float | None
    seconds: float


Runs = dict[int, TrialRun]
"""The runs of a configuration by seed."""


@dataclass(frozen=True)
class SearchProgress:
    """How far a search is: the trials that have ended, in order, the runs that come next, and which part of
    the budget is used up (empty while it goes on).
    """

    trials: tuple[Trial, ...] = ()
    to_run: tuple[RunSpec, ...] = ()
    ended: str = ""

    @property
    def client_epochs(self) -> float:
        """Used so far."""
        return client_epochs(self.trials)

    @property
    def best(self) -> float | None:
        """The best validation accuracy so far."""
        lead = best_of(self.trials)
        return None if lead is None else lead.validation


def progress_of(
    tuning: Tuning, history: Sequence[tuple[dict[str, Value], Runs]], width: int
) -> SearchProgress:
    """Where a search stands whose trials come ``width`` at a time.

    ``history`` are the configurations that have runs, those whose first run was stored earlier first.
    """
    places = {tuning.place(parameters): (parameters, runs) for parameters, runs in history}
    default = tuning.place(tuning.default)
    batch = {default: places.pop(default, (tuning.default, {}))}
    queue = list(places.items())
    trials: list[Trial] = []
    while batch:
        share = (tuning.budget - client_epochs(trials)) / len(batch)
        parts = [_trial(tuning, parameters, runs, share) for _, (parameters, runs) in sorted(batch.items())]
        batch_trials = [part for part in parts if isinstance(part, Trial)]
        trials += [
            trial.model_copy(update={"number": number})
            for number, trial in enumerate(batch_trials, len(trials))
        ]
        if len(batch_trials) < len(parts):
            specs = [spec for part in parts if isinstance(part, list) for spec in part]
            return SearchProgress(tuple(trials), tuple(specs))
        batch, queue = dict(queue[:width]), queue[width:]
        size = _size(tuning, trials, width)
        if len(batch) < size:
            for parameters in propose(tuning, trials, size):
                if len(batch) < size:
                    batch.setdefault(tuning.place(parameters), (parameters, {}))
    return SearchProgress(tuple(trials), (), ended(tuning, trials))


def _size(tuning: Tuning, trials: Sequence[Trial], width: int) -> int:
    """How many trials may come next side by side: each may use what the dearest so far did."""
    if ended(tuning, trials):
        return 0
    room = int((tuning.budget - client_epochs(trials) + EPSILON) // dearest(tuning, trials))
    return min(width, room, min(tuning.trials, tuning.size) - len(trials))


def _trial(tuning: Tuning, parameters: dict[str, Value], runs: Runs, share: float) -> Trial | list[RunSpec]:
    """A trial that may use a share of the client epochs, or the runs that it still takes.

    One that has used more is cut: it has no number, so that no trial has more than the budget before it.
    """
    missing_specs = [spec for spec in tuning.specs(parameters) if spec.seed not in runs]
    if missing_specs:
        return missing_specs
    seed_runs = [runs[seed] for seed in tuning.seeds]
    usual = tuning.run_epochs / len(tuning.seeds)  # of a run that cannot say what it used
    epochs = sum(usual if run.client_epochs is None else run.client_epochs for run in seed_runs)
    failed_run = next((run for run in seed_runs if run.state != "searched"), None)
    state, validation, reason = "complete", None, ""
    if failed_run is not None:
        state = failed_run.state if failed_run.state in get_args(State) else "failed"
        reason = failed_run.reason
    elif epochs > share + EPSILON:
        state = "cut"
        reason = f"it takes {epochs:,.0f} client epochs, {share:,.0f} were left: more --trials grant more"
    else:
        validation = sum(run.validation or 0.0 for run in seed_runs) / len(seed_runs)
    return Trial(
        number=0,
        parameters=parameters,
        state=cast(State, state),
        validation=validation,
        client_epochs=min(epochs, share),
        seconds=sum(run.seconds for run in seed_runs),
        reason=reason,
    )


# As stored ---------------------------------------------------------------------------------------

HOPELESS = ("not_applicable", "no_data")
"""States of a run of a search that can have no number."""


class Search:
    """One search with its stored runs, of which ``width`` trials are made side by side.

    ``federation_hash`` is that of the federation that there is now; empty where that is not known.
    """

    def __init__(self, tuning: Tuning, width: int, federation_hash: str) -> None:
        self.tuning = tuning
        self.federation_hash = federation_hash
        self.progress = SearchProgress()
        self.asked: set[str] = set()
        self.hopeless = ""
        self._width = width
        self._runs: dict[int, tuple[dict[str, Value], Runs]] = {}

    @property
    def runs(self) -> int:
        """How many of its runs are stored, those of trials that have not ended included."""
        return sum(len(runs) for _, runs in self._runs.values())

    def take(self, spec: RunSpec, run: TrialRun, federation_hash: str) -> None:
        """Take a stored run into account, if it is one of the search.

        Raises:
            RequestError: it is of other clients than those before.
        """
        configuration = self.tuning.configuration(spec)
        if configuration is None:
            return
        if run.state in HOPELESS:
            self.hopeless = run.reason if run.state == "not_applicable" or self.asked else ""
            return
        if federation_hash and federation_hash != (self.federation_hash or federation_hash):
            raise RequestError(
                f"{self.tuning.title}: its trials were made on other clients ({federation_hash[:8]}) than "
                f"there are now ({self.federation_hash[:8]}): they cannot be compared; name another --db"
            )
        _, runs = self._runs.setdefault(self.tuning.place(configuration), (configuration, {}))
        runs[spec.seed] = run

    def look(self) -> list[Trial]:
        """Look where the search stands now; returned are the trials that have ended since the last look."""
        parameters = [trial.parameters for trial in self.progress.trials]

        def first(entry: tuple[dict[str, Value], Runs]) -> int:
            return min(run.number for run in entry[1].values())

        self.progress = progress_of(self.tuning, sorted(self._runs.values(), key=first), self._width)
        return [trial for trial in self.progress.trials if trial.parameters not in parameters]

    def check_total(self) -> None:
        """Refuse a total that lies below what was done.

        Raises:
            RequestError: more trials are stored than are asked for, or have used more client epochs.
        """
        count = len(self._runs)
        floor = max(count, math.ceil((self.progress.client_epochs - EPSILON) / self.tuning.run_epochs))
        if floor > self.tuning.trials:
            raise RequestError(
                f"{self.tuning.title}: {count} trials are done, and --trials is a total: expected {floor} or "
                f"more, got {self.tuning.trials}"
            )

    def steps(self) -> list[Step]:
        """The runs that come next and were not asked for before."""
        if self.hopeless:
            return []
        specs = [spec for spec in self.progress.to_run if spec.hash not in self.asked]
        self.asked |= {spec.hash for spec in specs}
        return [Step(planned(spec), "missing", to_run=True) for spec in specs]


def read(store: Store, searches: Sequence[Search], hashes: Collection[str] | None = None) -> None:
    """Give searches their stored runs, or those of some spec hashes.

    Raises:
        RequestError: a spec was changed since it was stored, or runs are by code of other numerics or on
            other clients.
    """
    filters = {} if hashes is None else {"spec_hash": list(hashes)}
    cells = {
        (search.tuning.spec.method, search.tuning.spec.dataset): search.tuning.numerics for search in searches
    }
    frame = store.runs(**filters, method=sorted({method for method, _ in cells}))
    scores = store.client_results(frame["id"], stage=STAGE, split="val", rule="best_val", metric=ACCURACY)
    means = scores.groupby("run_id")["value"].mean()
    for row in frame.to_dict("records"):
        spec = RunSpec.model_validate_json(row["spec"])
        numerics = cells.get((spec.method, spec.dataset))
        stored_numerics = {"method": row["method_numerics"], "engine": row["engine_numerics"]}
        if numerics is not None and stored_numerics != numerics:
            raise RequestError(
                f"{spec.method} {spec.dataset}: its trials in {store.name} are by code of other numerics "
                f"({stored_numerics}, now {numerics}); name another --db"
            )
        try:
            epochs = float(store.artefact(row["id"], CLIENT_EPOCHS))
        except KeyError:
            epochs = None
        score = float(means[row["id"]]) if row["id"] in means.index else None
        run = TrialRun(int(row["id"]), row["state"], row["reason"], score, epochs, row["seconds_total"])
        for search in searches:
            search.take(spec, run, row["partition_hash"])


def opened_searches(
    database: str,
    home: Path,
    tunings: Sequence[Tuning],
    width: int,
    hashes: Mapping[FederationKey, str] = {},
) -> tuple[list[Search], list[Stored]]:
    """The searches as they are stored, and what their runs took.

    ``hashes`` are those of the federations that there are now; of others they are not looked at.

    Raises:
        RequestError: as ``read`` and ``Search.check_total``; the database holds runs that are reported;
            trials of an older version are at hand.
    """
    journal = home / "tuning" / "journal.log"
    if journal.exists():
        raise RequestError(
            f"{journal} has trials of an older version, which cannot go on: delete it (winners in "
            f"{home / 'tuned'} stay as they are)"
        )
    searches = [Search(tuning, width, hashes.get(tuning.spec.federation_key, "")) for tuning in tunings]
    history = list(stored_runs(database, searches=True).values())
    if history:
        with open_store(database, create=False) as store:
            read(store, searches)
    for search in searches:
        search.look()
        search.check_total()
    return searches, history
