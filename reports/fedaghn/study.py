"""FedAGHN: Table 1, images; for now the column that the suite has data for."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from typing import Any, ClassVar

from bench.report.dataset_tables import ImageClients
from bench.report.experiment import Comparison, Experiment, Line, Target
from bench.report.experiment_files import read
from bench.report.published import Published
from bench.report.settings import Column, Reading
from bench.report.study import Study


class FedAGHN(Study):
    """Personalised federated learning of image classifiers."""

    name = "fedaghn"
    title = "FedAGHN"
    grids = ("images_smoke",)
    experiments = (
        Experiment(
            "table1",
            "Table 1 (CIFAR-10, Dirichlet 0.1)",
            (Comparison("Table 1", (Target("Table 1", "fedaghn", "Table 1"),)),),
            main=True,
            columns=(Column("cifar10", "dirichlet0.1", 20),),
        ),
        *read(files(__package__) / "experiments", ("images_smoke",), ()),
    )
    lines = (
        Line("local", "Local"),
        Line("fedavg", "FedAvg", stage="received"),
        Line("fedavg_ft", "FedAvg + tuning", reads="fedavg", stage="trained"),
        Line("fedprox", "FedProx", stage="received"),
        Line("fedprox_ft", "FedProx + tuning", reads="fedprox", stage="trained"),
        Line("ditto", "Ditto"),
        Line("fedrep", "FedRep"),
        Line("pfedhn", "pFedHN"),
        Line("fedcp", "FedCP"),
        Line("fedpac", "FedPAC"),
        Line("cfl", "CFL"),
        Line("fedamp", "FedAMP"),
        Line("h_fedamp", "HeurFedAMP"),
        Line("pfedla", "pFedLA"),
        Line("fedala", "FedALA"),
        Line("fedaghn", "FedAGHN"),
        Line("majority", "Majority class"),
    )
    primary = Reading("trained", "best_val")
    readings = (Reading("received", "best_val"), Reading("trained", "last"))
    titles: ClassVar[Mapping[str, str]] = {"cifar10": "CIFAR-10", "cifar10-sample": "CIFAR-10 sample"}
    data_table = ImageClients("fedaghn", clients=20)
    remarks = ("FedAvg and FedProx are read from the received model, all others after local training.",)

    def paper_protocol(self, target: Published, column: Column) -> Mapping[str, Any]:
        """Rounds, local epochs and split (section 4, appendices C.1 and C.3)."""
        return {"protocol.rounds": 200, "protocol.local_epochs": 5, "protocol.split": [70.0, 10.0, 20.0]}
