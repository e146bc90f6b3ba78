"""FedSheafHN: the experiments and main tables of the final paper, and the values of the earlier version.

Final: the conference version, titled "... with Sheaf Collaboration". Earlier: the first preprint.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from bench.studies.published import Published, PublishedRuns
from bench.studies.settings import Column, Settings
from bench.studies.study import Study

from .measures import MEASURES

DATASETS = ("cora", "citeseer", "pubmed", "computers", "photo", "ogbn-arxiv")

ROUNDS = {
    "fedsheafhn_final": dict(zip(DATASETS, (100, 100, 100, 100, 150, 150), strict=True)),
    "fedsheafhn_earlier": dict(zip(DATASETS, (100, 100, 100, 100, 100, 200), strict=True)),
}
"""Rounds by version of the paper and data set (section 4.1 of both versions)."""

LOCAL_EPOCHS = dict(zip(DATASETS, (3, 3, 15, 10, 10, 10), strict=True))
"""Local epochs by data set in the final version; the earlier version lists none."""

ALL_FEDERATIONS = frozenset((dataset, clients) for dataset in DATASETS for clients in (10, 20, 30, 50))

FOREIGN_VALUES: Mapping[tuple[str, str], frozenset[tuple[str, int]]] = {
    ("fedsheafhn_final", "fedprox"): ALL_FEDERATIONS,
    ("fedsheafhn_final", "fedsage_plus"): ALL_FEDERATIONS,
    # Local and FED-PUB were run again for the final version, except in the cells below.
    ("fedsheafhn_final", "local"): frozenset(
        {(dataset, n) for dataset in ("citeseer", "pubmed", "ogbn-arxiv") for n in (10, 20, 30, 50)}
        | {("cora", 30)}
    ),
    ("fedsheafhn_final", "fedpub"): frozenset({("photo", 30)}),
    ("fedsheafhn_earlier", "local"): ALL_FEDERATIONS,
    ("fedsheafhn_earlier", "fedper"): ALL_FEDERATIONS - {("pubmed", 30), ("pubmed", 50)},
    ("fedsheafhn_earlier", "fedsage_plus"): ALL_FEDERATIONS,
    ("fedsheafhn_earlier", "fedpub"): ALL_FEDERATIONS,
}
"""Paper and method -> data sets and numbers of clients with a value from another paper."""


def is_foreign(target: Published, column: Column) -> bool:
    """Whether the printed value is from the FED-PUB paper. That paper has no attacks."""
    printed_setting = dict(part.split("=") for part in target.setting.split(";") if part)
    if float(printed_setting.get("ratio", 0)) > 0:
        return False
    return (column.dataset, column.clients) in FOREIGN_VALUES.get((target.paper, target.method), frozenset())


def fed_pub_protocol(dataset: str) -> dict[str, Any]:
    """The protocol of FED-PUB's tables. The release gives rounds and local epochs only for Cora."""
    protocol = {
        "protocol.split": [5.0, 47.5, 47.5] if dataset == "ogbn-arxiv" else [20.0, 40.0, 40.0],
        "protocol.initial": "common",
        "client.weight_decay": 1e-6,
    }
    return protocol | ({"protocol.rounds": 100, "protocol.local_epochs": 1} if dataset == "cora" else {})


class FedSheafHN(Study, folder=files(__package__), measures=MEASURES):
    """Eleven methods on six graphs, spread without and with overlap."""

    name = "fedsheafhn"

    def published_runs(self, target: Published, column: Column) -> PublishedRuns:
        """Five runs on one partition (captions of Tables 1 and 2); the released code uses NumPy's ``std``.
        FED-PUB's values are from three runs.
        """
        return PublishedRuns(3) if is_foreign(target, column) else PublishedRuns(5, population=True)

    def barred(self, target: Published, column: Column, settings: Settings) -> str:
        """Bar FED-PUB's values for runs with another split, and values of Local that chose the settings."""
        if not is_foreign(target, column):
            return ""
        if settings.get("protocol.split") != fed_pub_protocol(column.dataset)["protocol.split"]:
            return "published value taken over from the FED-PUB paper (20/40/40 split, 3 runs)"
        if target.method == "local" and column.dataset != "cora" and column.scenario.startswith("published"):
            return "the printed value of Local has chosen learning rate, local epochs and rounds"
        return ""

    def paper_protocol(self, target: Published, column: Column) -> Mapping[str, Any]:
        """Rounds, local epochs (final version only) and split of section 4.1; or FED-PUB's protocol."""
        if is_foreign(target, column):
            return fed_pub_protocol(column.dataset)
        protocol: dict[str, Any] = {
            "protocol.rounds": ROUNDS[target.paper][column.dataset],
            "protocol.split": [40.0, 30.0, 30.0],
        }
        if target.paper == "fedsheafhn_final":
            protocol["protocol.local_epochs"] = LOCAL_EPOCHS[column.dataset]
        return protocol
