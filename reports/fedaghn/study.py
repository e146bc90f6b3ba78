"""FedAGHN: Table 1, images; for now the column that the suite has data for."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from typing import Any, ClassVar

from bench.report.dataset_tables import ImageClients
from bench.report.experiment import Line
from bench.report.experiment_files import read
from bench.report.published import Published
from bench.report.settings import Column, Reading
from bench.report.study import Study

LINES = (
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
"""Rows of the tables."""

EXPERIMENTS = ("fedaghn_main", "heterogeneity", "case_study", "fedaghn_reduced", "images_smoke")
"""Files of experiments, in the order of their documents."""


class FedAGHN(Study):
    """Personalised federated learning of image classifiers."""

    name = "fedaghn"
    title = "FedAGHN"
    grids = ("images_smoke",)
    lines = LINES
    experiments = read(files(__package__) / "experiments", EXPERIMENTS, LINES)
    datasets: ClassVar[Mapping[str, str]] = {
        "tiny-imagenet": "tinyimagenet_resnet18",
        "cifar10-sample": "cifar10",
        "cifar100-sample": "cifar100",
    }
    scenarios: ClassVar[Mapping[str, str]] = {
        "pathological-released": "pathological",
        "dirichlet0.1-released": "dirichlet0.1",
        "dirichlet0.2-released": "dirichlet0.2",
        "dirichlet0.5-released": "dirichlet0.5",
        "case-study": "case_study",
    }
    primary = Reading("trained", "best_val")
    readings = (Reading("received", "best_val"), Reading("trained", "last"))
    titles: ClassVar[Mapping[str, str]] = {
        "cifar10": "CIFAR-10",
        "cifar10-sample": "CIFAR-10 sample",
        "cifar100": "CIFAR-100",
        "cifar100-sample": "CIFAR-100 sample",
        "tiny-imagenet": "Tiny-ImageNet",
    }
    data_table = ImageClients("fedaghn", clients=20)
    remarks = ("FedAvg and FedProx are read from the received model, all others after local training.",)

    def paper_protocol(self, target: Published, column: Column) -> Mapping[str, Any]:
        """Rounds, local epochs and split (section 4, appendices C.1 and C.3)."""
        rounds = 40 if target.dataset.startswith("tiny") else 80 if "resnet18" in target.dataset else 200
        return {"protocol.rounds": rounds, "protocol.local_epochs": 5, "protocol.split": [70.0, 10.0, 20.0]}
