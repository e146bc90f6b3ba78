"""Where a search stands, by its stored runs: which trials have ended, and which runs come next.

Nothing of a search is kept but its runs. A trial is a configuration, run with every seed of the search.
Trials come in batches: the default configuration alone, then as many as were asked for side by side. A batch
is proposed by the trials of the batches before alone. So neither what runs beside nor how long a run takes
decides anything, and a search that was stopped takes the same way again.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple, cast, get_args

from bench.errors import RequestError
from bench.grids import Planned
from bench.metric_names import ACCURACY
from bench.spec import FederationKey, RunSpec
from bench.store import Store, open_store
from bench.store.store import Stored, stored_runs
from bench.sweep.plan import Step
from bench.tune.proposals import propose
from bench.tune.record import EPSILON, State, Trial, client_epochs, dearest, ended
from bench.tune.trial import CLIENT_EPOCHS
from bench.tune.tuning import STAGE, Tuning, numerics

HOPELESS = ("not_applicable", "no_data")
"""States of a run of a search that can have no number."""


class TrialRun(NamedTuple):
    """A stored run. ``validation`` is the mean validation accuracy over clients of the trained model at its
    best round; ``client_epochs`` what it used. Both are None where the run gave none. Ids tell the order in
    which runs were stored.
    """

    id: int
    state: str
    reason: str
    validation: float | None
    client_epochs: float | None
    seconds: float


class Search:
    """One search with its stored runs, of which ``width`` trials are made side by side.

    ``federation_hash`` is that of the federation that there is now; empty where that is not known. ``trials``
    are those that have ended, in order, ``to_run`` the runs that come next: none where the search has
    ``ended``, for the part of the budget that is used up. It is ``hopeless`` for a reason.
    """

    def __init__(self, tuning: Tuning, width: int, federation_hash: str = "") -> None:
        self.tuning = tuning
        self.federation_hash = federation_hash
        self.trials: list[Trial] = []
        self.to_run: list[RunSpec] = []
        self.ended = ""
        self.hopeless = ""
        self.asked: set[str] = set()
        self.runs: dict[int, dict[int, TrialRun]] = {}  # by the configuration's number in the space, by seed
        self._width = width

    def take(self, spec: RunSpec, run: TrialRun, federation_hash: str) -> None:
        """Take a stored run into account, if it is one of the search.

        Raises:
            RequestError: it is of other clients than those before.
        """
        place = self.tuning.place_of(spec)
        if place is None:
            return
        if run.state in HOPELESS:
            self.hopeless = run.reason if run.state == "not_applicable" or self.asked else ""
            return
        if federation_hash and federation_hash != (self.federation_hash or federation_hash):
            raise RequestError(
                f"{self.tuning.title}: its trials were made on other clients ({federation_hash[:8]}) than "
                f"there are now ({self.federation_hash[:8]}): they cannot be compared; name another --db"
            )
        self.runs.setdefault(place, {})[spec.seed] = run

    def look(self) -> list[Trial]:
        """Look where the search stands now; returned are the trials that have ended since the last look."""
        tuning, known = self.tuning, [trial.parameters for trial in self.trials]
        default = tuning.configurations.index(tuning.default)
        first_ids = {place: min(run.id for run in runs.values()) for place, runs in self.runs.items()}
        queue = [place for place in sorted(first_ids, key=first_ids.__getitem__) if place != default]
        self.trials, self.to_run, self.ended = [], [], ""
        batch = [default]
        while batch and not self.to_run:
            self._try_out(batch)
            if self.to_run:
                break
            batch, queue = queue[: self._width], queue[self._width :]
            size = self._size()
            if len(batch) < size:
                proposals = [place for place in propose(tuning, self.trials, size) if place not in batch]
                batch += proposals[: size - len(batch)]
        if not self.to_run:
            self.ended = ended(tuning, self.trials)
        return [trial for trial in self.trials if trial.parameters not in known]

    def _try_out(self, batch: Sequence[int]) -> None:
        """Add the trials of a batch that have ended, and what is to run of the others."""
        share = (self.tuning.budget - client_epochs(self.trials)) / len(batch)
        for place in sorted(batch):
            runs = self.runs.get(place, {})
            specs = self.tuning.specs(self.tuning.configurations[place])
            missing_specs = [spec for spec in specs if spec.seed not in runs]
            self.to_run += missing_specs
            if not missing_specs:
                seed_runs = [runs[seed] for seed in self.tuning.seeds]
                self.trials.append(_trial(self.tuning, len(self.trials), place, seed_runs, share))

    def _size(self) -> int:
        """How many trials may come next side by side: each may use what the dearest so far did."""
        tuning, trials = self.tuning, self.trials
        if ended(tuning, trials):
            return 0
        room = int((tuning.budget - client_epochs(trials) + EPSILON) // dearest(tuning, trials))
        return min(self._width, room, min(tuning.trials, len(tuning.configurations)) - len(trials))

    def check_total(self) -> None:
        """Refuse a total that lies below what was done.

        Raises:
            RequestError: more trials are stored than are asked for, or have used more client epochs.
        """
        count = len(self.runs)
        floor = max(count, math.ceil((client_epochs(self.trials) - EPSILON) / self.tuning.run_epochs))
        if floor > self.tuning.trials:
            raise RequestError(
                f"{self.tuning.title}: {count} trials are done, and --trials is a total: expected {floor} or "
                f"more, got {self.tuning.trials}"
            )

    def steps(self) -> list[Step]:
        """The runs that come next and were not asked for before."""
        specs = [spec for spec in self.to_run if spec.hash not in self.asked]
        self.asked |= {spec.hash for spec in specs}
        return [Step(Planned(spec, spec.method), "missing", to_run=True) for spec in specs]


def _trial(tuning: Tuning, number: int, place: int, runs: Sequence[TrialRun], share: float) -> Trial:
    """A trial of these runs that may use a share of the client epochs.

    One that has used more is cut: it has no number, so that no trial has more than the budget before it.
    """
    usual = tuning.run_epochs / len(tuning.seeds)  # of a run that cannot say what it used
    epochs = sum(usual if run.client_epochs is None else run.client_epochs for run in runs)
    failed_run = next((run for run in runs if run.state != "searched"), None)
    state, validation, reason = "complete", None, ""
    if failed_run is not None:
        state = failed_run.state if failed_run.state in get_args(State) else "failed"
        reason = failed_run.reason
    elif epochs > share + EPSILON:
        state = "cut"
        reason = f"it takes {epochs:,.0f} client epochs, {share:,.0f} were left: more --trials grant more"
    else:
        validation = sum(run.validation or 0.0 for run in runs) / len(runs)
    return Trial(
        number=number,
        parameters=tuning.configurations[place],
        state=cast(State, state),
        validation=validation,
        client_epochs=min(epochs, share),
        seconds=sum(run.seconds for run in runs),
        reason=reason,
    )


def read(store: Store, searches: Sequence[Search], hashes: Collection[str] | None = None) -> None:
    """Give searches their stored runs, or those of some spec hashes.

    Raises:
        RequestError: a spec was changed since it was stored, or runs are by code of other numerics or on
            other clients.
    """
    filters = {} if hashes is None else {"spec_hash": list(hashes)}
    cells = {(search.tuning.spec.method, search.tuning.spec.dataset) for search in searches}
    frame = store.runs(**filters, method=sorted({method for method, _ in cells}))
    scores = store.client_results(frame["id"], stage=STAGE, split="val", rule="best_val", metric=ACCURACY)
    means = scores.groupby("run_id")["value"].mean().to_dict()
    epochs = store.artefacts(frame["id"], CLIENT_EPOCHS)
    for row in frame.to_dict("records"):
        spec = RunSpec.model_validate_json(row["spec"])
        stored_numerics = {"method": row["method_numerics"], "engine": row["engine_numerics"]}
        present = numerics(spec.method)
        if (spec.method, spec.dataset) in cells and stored_numerics != present:
            raise RequestError(
                f"{spec.method} {spec.dataset}: its trials in {store.name} are by code of other numerics "
                f"({stored_numerics}, now {present}); name another --db"
            )
        used = float(epochs[row["id"]]) if row["id"] in epochs else None
        ending = (row["state"], row["reason"], means.get(row["id"]), used, row["seconds_total"])
        for search in searches:
            search.take(spec, TrialRun(row["id"], *ending), row["partition_hash"])


def opened_searches(
    database: str, tunings: Sequence[Tuning], width: int, hashes: Mapping[FederationKey, str] = {}
) -> tuple[list[Search], list[Stored]]:
    """The searches as they are stored, and what their runs took.

    ``hashes`` are those of the federations that there are now; of others they are not looked at.

    Raises:
        RequestError: as ``read`` and ``Search.check_total``; the database holds runs that are reported.
    """
    searches = [Search(tuning, width, hashes.get(tuning.spec.federation_key, "")) for tuning in tunings]
    history = list(stored_runs(database, searches=True).values())
    if history:
        with open_store(database, create=False) as store:
            read(store, searches)
    for search in searches:
        search.look()
        search.check_total()
    return searches, history
