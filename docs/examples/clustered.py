"""A method in one file: clients average with those whose updates point the same way.

bench check-method docs/examples/clustered.py
BENCH_PLUGINS=docs/examples/clustered.py bench sweep -d cora -m clustered --set protocol.rounds=8
"""

from __future__ import annotations

import torch
from torch import Tensor

from bench.engine.method import Message, Stack
from bench.engine.personalised import Personalised
from bench.engine.stacks import cosines
from bench.hyper import HyperParameters, tunable


class Clustered(Personalised):
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

    def weights(self, participants: Tensor, received: Stack, upload: Message) -> Tensor:
        """Row i are the weights of all models in client i's mean."""
        updates = {name: trained - received[name] for name, trained in upload.model.items()}
        return torch.softmax(cosines(updates) / self.hyper.temperature, dim=1)
