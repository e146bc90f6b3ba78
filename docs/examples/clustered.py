"""A method in one file: clients average with those whose updates point the same way.

bench check-method docs/examples/clustered.py
BENCH_PLUGINS=docs/examples/clustered.py bench sweep -d cora -m clustered --set protocol.rounds=8
"""

from __future__ import annotations

import torch
from torch import Tensor

from bench.engine.method import Method, Stack
from bench.hyper import HyperParameters, tunable


class Clustered(Method):
    """Every client gets the mean of all models, weighted by the cosine of their updates.

    Client i's weights are softmax_j(cos(u_i, u_j) / temperature), u = trained - received, flattened.
    """

    name = "clustered"
    title = "Clustered averaging"
    reference = "an example"

    class Hyper(HyperParameters):
        """``temperature`` -> infinity is FedAvg, -> 0 training alone."""

        temperature: float = tunable(0.2, search=[0.05, 0.2, 1.0], gt=0)

    hyper: Hyper

    def start(self) -> None:
        """All start from one model."""
        self.models: Stack = self.task.common()

    def send(self, round: int) -> Stack:
        """Every client's own mean."""
        return {name: self.models[name] for name in self.task.parameters}

    def collect(self, received: Stack, trained: Stack, reports: Tensor | None) -> None:
        """Weights from the updates, then the means."""
        updates = torch.cat([(trained[name] - received[name]).flatten(1) for name in trained], dim=1)
        direction = torch.nn.functional.normalize(updates, dim=1)
        self.weights = torch.softmax(direction @ direction.T / self.hyper.temperature, dim=1)
        self.models = {
            name: (self.weights @ value.flatten(1)).view_as(value) for name, value in trained.items()
        }

    def artefacts(self) -> dict[str, Tensor]:
        """The collaboration matrix of the last round."""
        return {"collaboration": self.weights}
