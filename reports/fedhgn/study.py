"""FedHGN (arXiv 2408.05160): Tables 2 and 3, Fig. 3, and the gains, costs and leaks of completion."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from bench.studies.published import Published, PublishedRuns
from bench.studies.settings import Column, Settings
from bench.studies.study import Study

from .measures import MEASURES

ONE_CLIENT = 1
"""Number of clients in the column of the paper's Global: one client holds all nodes."""

COPY = "the published cell copies IMDB4k, 9 clients, with completion (mean and deviation)"

TRAINING_SHARE = {
    "coraca": 10.0,
    "dblp4k": 6.0,
    "dblp4k-repeats": 6.0,
    "imdb4k": 6.0,
    "news20": 1.0,
    "cora-whole": 10.0,
    "citeseer-whole": 10.0,
    "facebook": 0.8,
}
"""Share of training nodes among a client's nodes, in percent (Tables 1 and 4)."""


class FedHGN(Study, folder=files(__package__), measures=MEASURES):
    """Local and federated HGNN with and without hyperedge completion, against one global model."""

    name = "fedhgn"

    def printed_column(self, column: Column) -> tuple[str, str, int | None]:
        """The paper prints Global once, for the whole data set."""
        dataset, scenario, clients = super().printed_column(column)
        return (dataset, "global", None) if clients == ONE_CLIENT else (dataset, scenario, clients)

    def published_runs(self, target: Published, column: Column) -> PublishedRuns:
        """The released code makes twenty runs, each with its own clients and split, and uses NumPy's ``std``.
        The paper states none of this.
        """
        return PublishedRuns(20, redrawn=True, population=True)

    def barred(self, target: Published, column: Column, settings: Settings) -> str:
        """Bar the one cell of Table 2 that repeats another cell."""
        return COPY if (target.dataset, target.clients, target.method) == ("imdb4k", 3, "fedhgn") else ""

    def paper_protocol(self, target: Published, column: Column) -> Mapping[str, Any]:
        """Rounds, local epochs and split of the released code."""
        return {
            "protocol.rounds": 600 if column.clients == ONE_CLIENT else 200,
            "protocol.local_epochs": 3,
            "protocol.split": [TRAINING_SHARE.get(column.dataset, 10.0), 20.0, 40.0],
        }
