"""FED-PUB's protocol: every graph method on its clients, its split and its client settings.

FedAux, FedIIH and CUFL use FED-PUB's generators, split and loop, so that their numbers can be compared here.
FedSheafHN's study judges FED-PUB's own table, because FedSheafHN's papers repeat that table.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from bench.studies.published import Published, PublishedRuns
from bench.studies.settings import Column
from bench.studies.study import Study

from .measures import MEASURES

COMMITTED_RUNS = "committed runs"
"""Table of the runs of FedAux and FED-PUB in FedAux's repository, all with seed 42."""

REPEATED = ("local", "fedavg")
"""Methods for which FedAux's table repeats the rows of FED-PUB's table."""

SPLIT: Mapping[str, Any] = {"protocol.split": [20.0, 40.0, 40.0]}

FEDIIH: Mapping[str, Mapping[str, Any]] = {
    "cora": {
        "client.hidden": 256,
        "client.dropout": 0.3,
        "client.learning_rate": 0.02,
        "client.weight_decay": 0.005,
        "method.layers": 2,
    },
    "citeseer": {
        "client.hidden": 512,
        "client.dropout": 0.35,
        "client.learning_rate": 0.01,
        "client.weight_decay": 1e-6,
        "method.layers": 3,
    },
    "pubmed": {"method.factors": 4, "client.weight_decay": 0.0045},
    "computers": {"method.factors": 6, "protocol.rounds": 200, "protocol.local_epochs": 3},
    "photo": {"protocol.rounds": 200, "protocol.local_epochs": 2},
}
"""Settings that FedIIH's release tunes, by data set, as far as known (the release's main.py and read-me)."""


class FedPubProtocol(Study, folder=files(__package__), measures=MEASURES):
    """Every graph method under the protocol that most papers of the field share."""

    name = "fedpub"

    def published_runs(self, target: Published, column: Column) -> PublishedRuns:
        """Three runs for the values that FedAux's table repeats from FED-PUB's; unknown for other values."""
        is_taken_over = target.paper == "fedaux" and target.table != COMMITTED_RUNS
        return PublishedRuns(3 if is_taken_over and target.method in REPEATED else 1)

    def paper_protocol(self, target: Published, column: Column) -> Mapping[str, Any]:
        """The released loop; for FedAux also its width, for FED-PUB's committed run also its ``tau``."""
        if target.method == "fediih":
            return {**SPLIT, "protocol.initial": "common", **FEDIIH.get(target.dataset, {})}
        protocol: dict[str, Any] = {
            **SPLIT,
            "protocol.rounds": 100,
            "protocol.local_epochs": 1,
            "protocol.initial": "common",
            "client.weight_decay": 1e-6,
        }
        if target.method == "fedaux":
            protocol["client.hidden"] = 256
        if target.method == "fedpub" and target.table == COMMITTED_RUNS:
            protocol["method.tau"] = 10.0
        return protocol
