"""FedAGHN: Table 1, images; for now the column that the suite has data for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from bench.report.dataset_tables import ImageClients
from bench.report.layout import PaperTable, Reading, Row, Target
from bench.report.published import Published
from bench.report.settings import Column
from bench.report.study import Study


class FedAGHN(Study):
    """Personalised federated learning of image classifiers."""

    name = "fedaghn"
    title = "FedAGHN"
    grids = ("images_smoke",)
    tables = (
        PaperTable(
            "table1",
            "Table 1 (CIFAR-10, Dirichlet 0.1)",
            (Target("Table 1", "fedaghn", "Table 1"),),
            (Column("cifar10", "dirichlet0.1", 20),),
        ),
        PaperTable(
            "sample",
            "smoke test on a sample of CIFAR-10",
            (Target("sample", "fedaghn", "Table 1"),),
            (Column("cifar10-sample", "dirichlet0.1", 20),),
        ),
    )
    rows = (
        Row("local", "Local"),
        Row("fedavg", "FedAvg", stage="received"),
        Row("fedavg_ft", "FedAvg + tuning", reads="fedavg", stage="trained"),
        Row("fedprox", "FedProx", stage="received"),
        Row("fedprox_ft", "FedProx + tuning", reads="fedprox", stage="trained"),
        Row("ditto", "Ditto"),
        Row("fedrep", "FedRep"),
        Row("pfedhn", "pFedHN"),
        Row("fedcp", "FedCP"),
        Row("fedpac", "FedPAC"),
        Row("cfl", "CFL"),
        Row("fedamp", "FedAMP"),
        Row("h_fedamp", "HeurFedAMP"),
        Row("pfedla", "pFedLA"),
        Row("fedala", "FedALA"),
        Row("fedaghn", "FedAGHN"),
        Row("majority", "Majority class"),
    )
    primary = Reading("trained", "best_val")
    readings = (Reading("received", "best_val"), Reading("trained", "last"))
    titles: ClassVar[Mapping[str, str]] = {"cifar10": "CIFAR-10", "cifar10-sample": "CIFAR-10 sample"}
    remarks = ("FedAvg and FedProx are read from the received model, all others after local training.",)

    data_table = ImageClients("fedaghn", clients=20)

    def paper_protocol(self, target: Published, column: Column) -> Mapping[str, Any]:
        """Rounds, local epochs and split (section 4, appendices C.1 and C.3)."""
        return {"protocol.rounds": 200, "protocol.local_epochs": 5, "protocol.split": [70.0, 10.0, 20.0]}
