"""FedAvg: Communication-Efficient Learning of Deep Networks from Decentralized Data.

McMahan et al., AISTATS 2017, Algorithm 1.
"""

from __future__ import annotations

from typing import Literal

from torch import Tensor

from bench.engine.clients import Clients
from bench.engine.method import Method, Stack
from bench.engine.stacks import average
from bench.hyper import HyperParameters


class FedAvg(Method):
    """The server averages the clients' models; everybody continues from the average.

    The average is plain by default, as in the code bases that the subgraph papers build on (a
    client's weight there is the length of a list of one graph); ``weights = "samples"`` weights
    by training items, as the paper writes. METIS parts are nearly equal, so the two differ little.
    """

    name = "fedavg"
    title = "FedAvg"
    reference = "McMahan et al., AISTATS 2017"
    stage = "received"

    class Hyper(HyperParameters):
        """``weights`` of the average: ``uniform``, or ``samples`` for training items."""

        weights: Literal["uniform", "samples"] = "uniform"

    hyper: Hyper

    def start(self) -> None:
        """One random model, and every client's share of the average."""
        sizes = self.task.train_sizes
        shares = sizes if self.hyper.weights == "samples" else sizes.new_ones(len(sizes))
        self.shares = shares / shares.sum()
        common = self.initial()
        self.model = {name: common[name][0] for name in self.shared()}

    def initial(self) -> Stack:
        """The model that all start from, ``[clients, ...]``; it holds at least what is shared."""
        return self.task.common()

    def send(self, round: int) -> Stack:
        """The same model to all."""
        return {name: value.expand(self.task.clients, *value.shape) for name, value in self.model.items()}

    def collect(self, received: Stack, trained: Stack, reports: Tensor | None) -> None:
        """w = sum_i p_i w_i."""
        self.model = {name: average(value, self.shares) for name, value in trained.items()}

    def welcome(self, newcomers: Clients, reports: Tensor | None) -> Stack:
        """The last average."""
        return {name: value.expand(newcomers.count, *value.shape) for name, value in self.model.items()}


class SampleWeights(FedAvg.Hyper):
    """For methods whose paper weights the average by training items."""

    weights: Literal["uniform", "samples"] = "samples"


class FedAvgFT(FedAvg):
    """FedAvg after local training (fine-tuned on each client), read from FedAvg's own run."""

    name = "fedavg_ft"
    title = "FedAvg + fine-tuning"
    reads = "fedavg"
    stage = "trained"
