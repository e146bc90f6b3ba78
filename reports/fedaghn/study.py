"""FedAGHN: sixteen methods on images, its parts, and what its collaboration graph of layers learns."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from typing import Any, ClassVar

from bench.studies.experiment import read_study
from bench.studies.published import Published, PublishedRuns
from bench.studies.settings import Column, Reading
from bench.studies.study import Study

from .measures import MEASURES

ROUNDS = {"cifar100_resnet18": 80, "tinyimagenet_resnet18": 40}
"""Rounds by the published name of a data set; 200 for all others (appendix C.3)."""


class FedAGHN(Study):
    """Personalised federated learning of image classifiers."""

    name = "fedaghn"
    title = "FedAGHN"
    proposed = "fedaghn"
    grids = ("fedaghn_main", "heterogeneity", "case_study", "fedaghn_reduced", "case_study_reduced")
    lines, experiments, claims = read_study(files(__package__), MEASURES)
    primary = Reading("trained", "best_val")
    readings = (Reading("trained", "client_best_val"),)
    datasets: ClassVar[Mapping[str, str]] = {
        "cifar10-sample": "cifar10",
        "cifar100-sample": "cifar100",
        "tiny-imagenet": "tinyimagenet_resnet18",
        "tiny-imagenet-sample": "tinyimagenet_resnet18",
    }
    scenarios: ClassVar[Mapping[str, str]] = {
        "pathological-released": "pathological",
        "dirichlet0.1-released": "dirichlet0.1",
        "dirichlet0.2-released": "dirichlet0.2",
        "dirichlet0.5-released": "dirichlet0.5",
        "case-study": "case_study",
    }
    paper_titles: ClassVar[Mapping[str, str]] = {"fedaghn": "FedAGHN"}
    titles: ClassVar[Mapping[str, str]] = {
        "cifar10-sample": "CIFAR-10 sample",
        "cifar100-sample": "CIFAR-100 sample",
        "tiny-imagenet-sample": "Tiny-ImageNet sample",
    }
    remarks = ("FedAvg and FedProx are read from the received model, all others after local training.",)

    def published_runs(self, target: Published, column: Column) -> PublishedRuns:
        """Three (appendix C.3), on one partition."""
        return PublishedRuns(3)

    def paper_protocol(self, target: Published, column: Column) -> Mapping[str, Any]:
        """Rounds, local epochs and split (section 4, appendices C.1 and C.3)."""
        return {
            "protocol.rounds": ROUNDS.get(target.dataset, 200),
            "protocol.local_epochs": 5,
            "protocol.split": [70.0, 10.0, 20.0],
        }
