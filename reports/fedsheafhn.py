"""FedSheafHN: both main tables of the final paper, with the earlier version beside them.

Final: the conference version, titled "... with Sheaf Collaboration"; earlier: the first preprint.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from bench.report.layout import PaperTable, Reading, Row, Target
from bench.report.published import Published
from bench.report.settings import Column
from bench.report.study import Study

DATASETS = ("cora", "citeseer", "pubmed", "computers", "photo", "ogbn-arxiv")

ROUNDS = {
    "fedsheafhn_final": dict(zip(DATASETS, (100, 100, 100, 100, 150, 150), strict=True)),
    "fedsheafhn_earlier": dict(zip(DATASETS, (100, 100, 100, 100, 100, 200), strict=True)),
}
"""Rounds by version of the paper (section 4.1 of both)."""

LOCAL_EPOCHS = dict(zip(DATASETS, (3, 3, 15, 10, 10, 10), strict=True))
"""Local epochs of the final version; the earlier one lists none."""

TAKEN_OVER = "published value taken over from the FED-PUB paper (20/40/40 split, 3 runs)"
"""Why a cell is no target: it equals FED-PUB's table digit for digit, and so has its protocol."""

EVERYWHERE = frozenset((dataset, clients) for dataset in DATASETS for clients in (10, 20, 30, 50))

FOREIGN: Mapping[tuple[str, str], frozenset[tuple[str, int]]] = {
    ("fedsheafhn_final", "fedprox"): EVERYWHERE,
    ("fedsheafhn_final", "fedsage_plus"): EVERYWHERE,
    # Local and FED-PUB were run anew for the final version except where the earlier value stayed.
    ("fedsheafhn_final", "local"): frozenset(
        {(dataset, n) for dataset in ("citeseer", "pubmed", "ogbn-arxiv") for n in (10, 20, 30, 50)}
        | {("cora", 30)}
    ),
    ("fedsheafhn_final", "fedpub"): frozenset({("photo", 30)}),
    ("fedsheafhn_earlier", "local"): EVERYWHERE,
    ("fedsheafhn_earlier", "fedper"): EVERYWHERE - {("pubmed", 30), ("pubmed", 50)},
    ("fedsheafhn_earlier", "fedsage_plus"): EVERYWHERE,
    ("fedsheafhn_earlier", "fedpub"): EVERYWHERE,
}
"""Paper and method -> data sets and numbers of clients whose value is another paper's."""


def _table(name: str, number: str, title: str, scenario: str, clients: tuple[int, ...]) -> PaperTable:
    return PaperTable(
        name,
        f"{number} ({title})",
        (
            Target(number, "fedsheafhn_final", number),
            Target(f"earlier {number}", "fedsheafhn_earlier", number),
        ),
        tuple(Column(dataset, scenario, n) for dataset in DATASETS for n in clients),
    )


class FedSheafHN(Study):
    """Eleven methods on six graphs, spread without and with overlap."""

    name = "fedsheafhn"
    title = "FedSheafHN"
    grids = ("paper_tables", "quickstart")
    tables = (
        _table("table1", "Table 1", "non-overlapping", "non-overlapping", (10, 20)),
        _table("table2", "Table 2", "overlapping", "overlapping", (30, 50)),
    )
    rows = (
        Row("local", "Local"),
        Row("fedavg", "FedAvg"),
        Row("fedprox", "FedProx"),
        Row("fedper", "FedPer"),
        Row("fedsage_plus", "FedSage+"),
        Row("pfedhn", "pFedHN"),
        Row("fggp", "FGGP"),
        Row("pfedgraph", "pFedGraph"),
        Row("fedpub", "FED-PUB"),
        Row("flow", "Flow"),
        Row("fedsheafhn", "FedSheafHN"),
        Row("majority", "Majority class"),
        Row("fedavg_ft", "FedAvg + fine-tuning", reads="fedavg", stage="trained"),
    )
    primary = Reading("trained", "best_val")
    readings = (Reading("trained", "best_test"), Reading("received", "best_val"))
    titles: ClassVar[Mapping[str, str]] = {
        "cora": "Cora",
        "citeseer": "CiteSeer",
        "pubmed": "PubMed",
        "computers": "Computer",
        "photo": "Photo",
        "ogbn-arxiv": "ogbn-arxiv",
        "fedpub_gradient": "FED-PUB with gradient",
        "fedsheafhn_papersign": "FedSheafHN paper sign",
        "fedsheafhn_released": "FedSheafHN released",
        "fggp_released": "FGGP released keys",
        "flow_released": "Flow released",
        "flow_stateful": "Flow stateful",
        "pfedgraph_released": "pFedGraph released sign",
        "pfedhn_pc": "pFedHN, local heads",
    }
    remarks = (
        "The study measures every method after local training, FedAvg too: its row equals "
        "'FedAvg + fine-tuning', and the received model is shown separately.",
        "The published standard deviation is that of five training runs on one partition and split.",
    )

    def barred(self, target: Published, column: Column) -> str:
        """A value that the paper took over from another one, run under another protocol."""
        cells = FOREIGN.get((target.paper, target.method), frozenset())
        return TAKEN_OVER if (column.dataset, column.clients) in cells else ""

    def paper_protocol(self, paper: str, column: Column, row: Row) -> Mapping[str, Any]:
        """Rounds, local epochs (final version only) and split of section 4.1."""
        stated: dict[str, Any] = {
            "protocol.rounds": ROUNDS[paper][column.dataset],
            "protocol.split": [40.0, 30.0, 30.0],
        }
        if paper == "fedsheafhn_final":
            stated["protocol.local_epochs"] = LOCAL_EPOCHS[column.dataset]
        return stated
