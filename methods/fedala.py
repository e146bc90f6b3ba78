"""FedALA: Adaptive Local Aggregation for Personalized Federated Learning.

Zhang et al., AAAI 2023, Algorithm 1.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from bench.engine.method import Clients, Message, Stack, Update
from bench.engine.stacks import part, prefixed
from bench.hyper import tunable

from .fedavg import FedAvg, SampleWeights

WEIGHTS = "weights."
"""Prefix of W, which has one entry for every parameter of the upper layers."""

ADAPTED = "adapted"
"""1 for a client that has learnt W at least once."""

RECENT = 10
SETTLED = 0.1
"""W has settled once there are more than ``RECENT`` losses and the last of them have a standard deviation
below this."""


class FedALA(FedAvg):
    """FedAvg, from whose average a client takes, element by element, as much as its data ask for.

    A client keeps its last model Theta and weights W in [0, 1], 1 at the start. When the average Theta_g
    comes, the lower layers become Theta_g's, and the upper ``layers`` (the paper's p) become

        Theta^ = Theta + (Theta_g - Theta) * W

    with W learnt beforehand on a ``share`` (the paper's s) of the client's training data, by
    W := clip(W - eta grad_W L(Theta^), 0, 1) after every batch, all else frozen. The first time, passes over
    these data go on until W has settled (more than ten losses, and a standard deviation of the last ten below
    0.1); then one pass a round keeps it up to date. In round 0 all take Theta_g.

    *Received* is Theta^, the model after its adaptation, as in PFLlib.

    What paper and released code leave open, and what is done here:
    - The data are a new slice of neighbouring training items in every round, from the stream of client
      and round. Passes go over it in order, as released; the last batch is kept however short (but for a
      single item).
    - The released first phase has no bound: here at most ``max_passes``. A pass's loss is that of its
      last batch.
    - ``layers`` counts modules: one is a weight and its bias, the two tensors of the released default.
    - Theta^ runs in training mode while W is learnt, with batch statistics; the running ones that
      this moves are thrown away.
    - Clients that take no part in a round adapt what they are evaluated with, and keep nothing of it.
    """

    name = "fedala"
    title = "FedALA"
    reference = "Zhang et al., AAAI 2023"
    stage = "trained"
    numerics = 2

    class Hyper(SampleWeights):
        share: float = tunable(
            0.8, search=[0.05, 0.2, 0.5, 0.8, 1.0], gt=0, le=1, description="s: share of items that adapt W"
        )
        layers: int = tunable(
            1, search=[1, 2, 3], ge=1, description="p: how many of the highest layers are mixed by W"
        )
        eta: float = tunable(
            1.0, search=[0.1, 1.0, 10.0], ge=0, description="learning rate of the mixing weights"
        )
        max_passes: int = Field(50, ge=1, description="largest number of passes of the first adaptation")

    hyper: Hyper

    def setup_server(self) -> None:
        """Set up FedAvg, and the names of the upper layers' parameters."""
        super().setup_server()
        layers = list(self.task.layers.values())[-self.hyper.layers :]
        self.upper = [name for names in layers for name in names]

    def add_parameters(self, models: Stack) -> Stack:
        """Add W, which is 1 at the start."""
        weights = {
            name: torch.ones_like(models[name], memory_format=torch.contiguous_format) for name in self.upper
        }
        return {
            **models,
            **prefixed(WEIGHTS, weights),
            ADAPTED: self.task.train_sizes.new_zeros(self.task.clients),
        }

    def load(self, clients: Clients, own: Stack, message: Message) -> Stack:
        """Take the lower layers of Theta_g and learn W for the upper ones. Round 0 takes all of Theta_g."""
        if self.round == 0:
            return {**own, **message.model}
        lower = {name: value for name, value in message.model.items() if name not in self.upper}
        received = {**own, **lower}
        w = self.learn(clients, received, message)
        theta_hat = self.theta_hat(received, message.model, w)
        return {**received, **theta_hat, **prefixed(WEIGHTS, w), ADAPTED: torch.ones_like(own[ADAPTED])}

    def theta_hat(self, theta: Stack, theta_g: Stack, w: Stack) -> Stack:
        """Theta^ = Theta + (Theta_g - Theta) * W, which is Theta_g's own bits where W is 1."""
        return {name: torch.lerp(theta[name], theta_g[name], w[name]) for name in self.upper}

    def learn(self, clients: Clients, received: Stack, message: Message) -> Stack:
        """Learn W by this round's passes."""
        theta_g = {name: message.model[name] for name in self.upper}
        models = {name: value.clone() for name, value in received.items()}
        w = part(WEIGHTS, models)
        items, no_items = self.slices(clients), np.zeros(0, np.int64)
        learns = torch.ones_like(received[ADAPTED], dtype=torch.bool)
        losses: list[Tensor] = []
        while learns.any() and len(losses) < self.hyper.max_passes:
            loss = received[ADAPTED].new_zeros(clients.count)
            pairs = zip(items, learns.tolist(), strict=True)
            some = [positions if is_open else no_items for positions, is_open in pairs]
            for batch in clients.batches(some):
                own, common = batch.of(models), batch.of(theta_g)
                leaves = {name: value.clone().requires_grad_() for name, value in batch.of(w).items()}
                theta_hat = self.theta_hat(own, common, leaves)
                entropy = batch.cross_entropy(batch.forward({**own, **theta_hat}).logits)
                gradients = torch.autograd.grad(entropy.sum(), list(leaves.values()))
                for (name, value), gradient in zip(leaves.items(), gradients, strict=True):
                    w[name][batch.rows] = (value.detach() - self.hyper.eta * gradient).clamp(0, 1)
                loss[batch.rows] = entropy.detach()
            losses.append(loss)
            learns = learns & (received[ADAPTED] == 0)
            if len(losses) > RECENT:
                learns &= torch.stack(losses[-RECENT:]).std(dim=0, correction=0) >= SETTLED
        return w

    def slices(self, clients: Clients) -> list[NDArray[np.int64]]:
        """Draw for every client a ``share`` of neighbouring training items, and return their positions."""
        slices = []
        for rng, items in zip(clients.generators("fedala slice"), clients.training, strict=True):
            count = max(int(self.hyper.share * len(items)), 1)
            start = int(rng.integers(0, max(len(items) - count, 0) + 1))
            slices.append(items[start : start + count])
        return slices

    def update(self, clients: Clients, received: Stack, message: Message) -> Update:
        """Train the adapted model for the local epochs."""
        return self.upload(clients.fit(received, trainable=self.shared()))
