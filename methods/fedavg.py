"""FedAvg: Communication-Efficient Learning of Deep Networks from Decentralized Data.

McMahan et al., AISTATS 2017, Algorithm 1.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field
from torch import Tensor

from bench.engine.method import Clients, Message, Method, Stack
from bench.engine.stacks import average, repeated
from bench.hyper import HyperParameters


class FedAvg(Method):
    """The server averages the clients' models; everybody continues from the average.

    The average is plain by default, as in the code bases that the subgraph papers build on;
    ``weights = "samples"`` weights by training items, as the paper writes.
    """

    name = "fedavg"
    title = "FedAvg"
    reference = "McMahan et al., AISTATS 2017"
    stage = "received"

    class Hyper(HyperParameters):
        weights: Literal["uniform", "samples"] = Field(
            "uniform", description="weights of the average over clients: uniform, or by training items"
        )

    hyper: Hyper

    def setup_server(self) -> None:
        """Start with one random model. Set every client's weight in the average."""
        sizes = self.task.train_sizes
        self.weights = sizes if self.hyper.weights == "samples" else sizes.new_ones(len(sizes))
        common = self.initial()
        self.model = {name: common[name][0] for name in self.shared()}

    def initial(self) -> Stack:
        """The model that all clients start from, ``[clients, ...]``, with the shared parameters at least."""
        return self.task.common()

    def broadcast(self) -> Message:
        """Send all clients the same model."""
        return Message(repeated(self.model, self.task.clients))

    def aggregate(self, participants: Tensor, received: Stack, upload: Message) -> None:
        """w = sum_i p_i w_i over the clients that took part. Their weights p are scaled to sum to 1."""
        weights = self.weights[participants]
        shares = weights / weights.sum()
        self.model = {name: average(value, shares) for name, value in upload.model.items()}

    def onboard(self, newcomers: Clients, message: Message) -> Message:
        """Send newcomers the last average."""
        return Message(repeated(self.model, newcomers.count))


class SampleWeights(FedAvg.Hyper):
    """For methods whose paper weights the average by training items."""

    weights: Literal["uniform", "samples"] = "samples"


class FedAvgFT(FedAvg):
    """FedAvg after local training (fine-tuned on each client), read from FedAvg's own run."""

    name = "fedavg_ft"
    title = "FedAvg + fine-tuning"
    stage = "trained"
