"""A method in one file: clients average with those whose updates point the same way.

bench check-method docs/examples/clustered.py
BENCH_PLUGINS=docs/examples/clustered.py bench sweep -d cora -m clustered --set protocol.rounds=8
"""

from __future__ import annotations

import torch
from torch import Tensor

from bench.engine.method import Message, Method, Stack
from bench.engine.stacks import cosines, mix, replaced
from bench.hyper import HyperParameters, tunable


class Clustered(Method):
    """Every client gets the mean of all models, weighted by the cosine of their updates.

    Client i's weights are softmax_j(cos(u_i, u_j) / temperature), u = trained - received, over the
    clients that took part in the round. Those that did not are sent what they would have got before.
    """

    name = "clustered"
    title = "Clustered averaging"
    reference = "an example"

    class Hyper(HyperParameters):
        """``temperature`` -> infinity is FedAvg, -> 0 training alone."""

        temperature: float = tunable(0.2, search=[0.05, 0.2, 1.0], gt=0)

    hyper: Hyper

    def setup_server(self) -> None:
        """All start from one model, and nobody has worked with anybody yet."""
        common = self.task.common()
        self.models: Stack = {name: common[name] for name in self.shared()}
        self.weights = torch.eye(self.task.clients, device=self.task.device)

    def broadcast(self, round: int) -> Message:
        """Every client's own mean."""
        return Message(self.models)

    def aggregate(self, participants: Tensor, received: Stack, upload: Message) -> None:
        """Weights from the updates, then the means."""
        updates = {name: trained - received[name] for name, trained in upload.model.items()}
        weights = torch.softmax(cosines(updates) / self.hyper.temperature, dim=1).float()
        means = mix(upload.model, weights)
        self.models = {name: replaced(self.models[name], participants, means[name]) for name in means}
        rows = weights.new_zeros(len(weights), self.task.clients).index_copy(1, participants, weights)
        self.weights = replaced(self.weights, participants, rows)

    def artefacts(self) -> dict[str, Tensor]:
        """Every client's weights in its last round, ``[clients, clients]``."""
        return {"collaboration": self.weights}
