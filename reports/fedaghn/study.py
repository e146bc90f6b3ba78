"""FedAGHN: sixteen methods on images, ablations, and the weights in the collaboration graphs of layers."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from bench.studies.published import Published, PublishedRuns
from bench.studies.settings import Column
from bench.studies.study import Study

from .measures import MEASURES

ROUNDS = {"cifar100_resnet18": 80, "tinyimagenet_resnet18": 40}
"""Rounds by the published name of a data set; 200 for all others (appendix C.3)."""


class FedAGHN(Study, folder=files(__package__), measures=MEASURES):
    """Personalised federated learning of image classifiers."""

    name = "fedaghn"

    def published_runs(self, target: Published, column: Column) -> PublishedRuns:
        """Three runs (appendix C.3), on one partition."""
        return PublishedRuns(3)

    def paper_protocol(self, target: Published, column: Column) -> Mapping[str, Any]:
        """Rounds, local epochs and split (section 4, appendices C.1 and C.3)."""
        return {
            "protocol.rounds": ROUNDS.get(target.dataset, 200),
            "protocol.local_epochs": 5,
            "protocol.split": [70.0, 10.0, 20.0],
        }
