"""FedHGN (arXiv 2408.05160): Table 2, federated hypergraph learning with hyperedge completion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from bench.report.layout import PaperTable, Reading, Row, Target
from bench.report.published import Key, Published
from bench.report.settings import Column, Settings
from bench.report.study import Study

WHOLE = 1
"""Number of clients of the column in which one client holds everything (the paper's Global)."""

COPIED = "the published cell copies IMDB4k, 9 clients, with completion (mean and deviation)"


class FedHGN(Study):
    """Local and federated HGNN with and without hyperedge completion, against one global model."""

    name = "fedhgn"
    title = "FedHGN"
    grids = ("fedhgn_coraca",)
    tables = (
        PaperTable(
            "table2",
            "Table 2 (hypergraphs)",
            (Target("Table 2", "fedhgn", "Table 2"),),
            tuple(Column("coraca", "label-dirichlet", n) for n in (3, 6, 9, WHOLE)),
        ),
    )
    rows = (
        Row("local_hgnn", "Local HGNN"),
        Row("local_hgnn_hc", "Local HGNN with HC"),
        Row("fedhgn", "FedHGN w/o HC, released"),
        Row("fedhgn_hc", "FedHGN with HC"),
        Row("global_hgnn", "Global HGNN", ranked=False),
        Row("fedhgn_trim1", "FedHGN w/o HC, worded"),
        Row("majority", "Majority class"),
    )
    primary = Reading("trained", "client_best_val")
    readings = (Reading("received", "best_val"), Reading("trained", "best_val"))
    average = "samples"
    baseline = "local_hgnn"
    datasets: ClassVar[Mapping[str, str]] = {"coraca": "coauthorship_cora"}
    titles: ClassVar[Mapping[str, str]] = {"coraca": "CoraCA"}
    remarks = (
        "'Released' drops a border hyperedge with one own node, as the authors' code does; 'worded' "
        "keeps it, as the paper's text says.",
        "Global HGNN is one client that holds all nodes. Every seed draws its own clients and split.",
    )

    def key(self, source: Target, column: Column, row: Row) -> Key:
        """The paper prints Global once, for the whole data set."""
        key = super().key(source, column, row)
        return key._replace(scenario="global", clients=None) if column.clients == WHOLE else key

    def barred(self, target: Published, column: Column, settings: Settings) -> str:
        """The one cell of Table 2 that repeats another."""
        return COPIED if (target.dataset, target.clients, target.method) == ("imdb4k", 3, "fedhgn") else ""

    def paper_protocol(self, paper: str, column: Column, row: Row) -> Mapping[str, Any]:
        """Rounds, local epochs and split of the released code."""
        return {
            "protocol.rounds": 600 if column.clients == WHOLE else 200,
            "protocol.local_epochs": 3,
            "protocol.split": [10.0, 20.0, 40.0],
        }
