"""Searches as their runs are stored: which trials those make up, and what a search refuses."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from bench.errors import RequestError
from bench.metric_names import ACCURACY
from bench.spec import FederationKey, RunSpec
from bench.store import Store, open_store
from bench.store.queries import Timing
from bench.store.store import stored_runs
from bench.sweep.plan import Step, planned
from bench.tune.record import EPSILON, Trial, client_epochs
from bench.tune.search import Runs, SearchProgress, TrialRun, least_epochs, progress_of
from bench.tune.trial import CLIENT_EPOCHS
from bench.tune.tuning import STAGE, Tuning, Value

HOPELESS = ("not_applicable", "no_data")
"""States of a run of a search that can have no number."""


class Search:
    """One search with its stored runs, of which ``width`` trials are made side by side.

    ``clients`` is the hash of the federation that there is now; empty where that is not known.
    """

    def __init__(self, tuning: Tuning, width: int, clients: str) -> None:
        self.tuning = tuning
        self.clients = clients
        self.progress = SearchProgress()
        self.asked: set[str] = set()
        self.hopeless = ""
        self._width = width
        self._runs: dict[int, tuple[dict[str, Value], Runs]] = {}

    def take(self, spec: RunSpec, run: TrialRun, clients: str) -> None:
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
        if clients and clients != (self.clients or clients):
            raise RequestError(
                f"{self.tuning.title}: its trials were made on other clients ({clients[:8]}) than there are "
                f"now ({self.clients[:8]}): they cannot be compared; name another --db"
            )
        _, runs = self._runs.setdefault(self.tuning.place(configuration), (configuration, {}))
        runs.setdefault(spec.protocol.rounds, {})[spec.seed] = run

    def look(self) -> list[Trial]:
        """Look where the search stands now; returned are the trials that have ended since the last look."""
        parameters = [trial.parameters for trial in self.progress.trials]

        def first(entry: tuple[dict[str, Value], Runs]) -> int:
            return min(run.number for seeds in entry[1].values() for run in seeds.values())

        self.progress = progress_of(self.tuning, sorted(self._runs.values(), key=first), self._width)
        return [trial for trial in self.progress.trials if trial.parameters not in parameters]

    def check_total(self) -> None:
        """Refuse a total that lies below what was done, or that no trial fits into.

        Raises:
            RequestError: more trials are stored than are asked for, or have used more client epochs; the
                default configuration takes more than all of them grant before its first rung.
        """
        least = least_epochs(self.tuning)
        if least > self.tuning.budget + EPSILON:
            raise RequestError(
                f"{self.tuning.title}: its first trial takes {least:,.0f} client epochs or more, warm-up "
                f"included, and {self.tuning.trials} grant {self.tuning.budget:,}: expected --trials "
                f"{math.ceil(least / self.tuning.run_epochs)} or more, or more rounds"
            )
        count = len(self._runs)
        epochs = client_epochs(self.progress.trials)
        floor = max(count, math.ceil((epochs - EPSILON) / self.tuning.run_epochs))
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
                f"{spec.method} {spec.dataset}: its trials in {store.url} are by code of other numerics "
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
    clients: Mapping[FederationKey, str] | None = None,
) -> tuple[list[Search], list[Timing]]:
    """The searches as they are stored, and what their runs took.

    ``clients`` are the hashes of the federations that there are now; they are not looked at where it is None.

    Raises:
        RequestError: as ``read``; the database holds runs that are reported, or cannot be written where there
            are ``clients``; as ``Search.check_total``; trials of an older version are at hand.
    """
    journal = home / "tuning" / "journal.log"
    if journal.exists():
        raise RequestError(
            f"{journal} has trials of an older version, which cannot go on: delete it (winners in "
            f"{home / 'tuned'} stay as they are)"
        )
    hashes = clients or {}
    searches = [Search(tuning, width, hashes.get(tuning.spec.federation_key, "")) for tuning in tunings]
    stored_states, history = stored_runs(database, write=clients is not None, searches=True)
    if stored_states:
        with open_store(database, create=False) as store:
            read(store, searches)
    for search in searches:
        search.look()
        search.check_total()
    return searches, history
