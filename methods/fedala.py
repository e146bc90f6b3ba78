"""FedALA: Adaptive Local Aggregation for Personalized Federated Learning.

Zhang et al., AAAI 2023, Algorithm 1.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor

from bench.engine.method import Batch, Clients, Message, Stack, Update
from bench.engine.optimiser import Optimiser
from bench.engine.stacks import part, prefixed
from bench.hyper import tunable

from .fedavg import FedAvg, SampleWeights

WEIGHTS = "weights."
"""What the names of W begin with, one entry for every parameter of the upper layers."""

ADAPTED = "adapted"
"""1 for a client that has learnt W at least once."""

RECENT = 10
SETTLED = 0.1
"""W has settled once the last ``RECENT`` losses have a standard deviation below this."""


class FedALA(FedAvg):
    """FedAvg, from whose average a client takes, element by element, as much as its data ask for.

    A client keeps its last model Theta and weights W in [0, 1], 1 at the start. When the average Theta_g
    comes, the lower layers become Theta_g's, and the upper ``layers`` (the paper's p) become

        Theta^ = Theta + (Theta_g - Theta) * W

    with W learnt beforehand on a ``share`` (the paper's s) of the client's training data, by
    W := clip(W - eta grad_W L(Theta^), 0, 1) after every batch, all else frozen. The first time,
    passes over these data go on until W has settled (the standard deviation of the last ten losses is
    below 0.1); then W persists, and one pass a round keeps it up to date. Local epochs and average are
    FedAvg's. In round 0 nobody has a model of its own, and all take Theta_g.

    *Received* is Theta^, the model after its adaptation, as in PFLlib.

    What paper and released code leave open, and what is done here:
    - The data are a new slice of neighbouring training items in every round, from the stream of client
      and round; its last batch is kept however short (but for a single item).
    - The released first phase has no bound: here at most ``max_passes``. A pass's loss is that of its
      last batch, and ten passes are needed for ten losses.
    - ``layers`` counts modules: one is a weight and its bias, the two tensors of the released default.
    - Theta^ runs in training mode while W is learnt, with batch statistics; the running ones that
      this moves are thrown away.
    - Clients that take no part in a round adapt what they are evaluated with, and keep nothing of it.
    """

    name = "fedala"
    title = "FedALA"
    reference = "Zhang et al., AAAI 2023"
    stage = "trained"

    class Hyper(SampleWeights):
        """``share``: s; ``layers``: p; ``eta``: W's learning rate; ``max_passes`` of the first adaptation."""

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
        """The upper layers' parameters."""
        super().setup_server()
        layers = list(self.task.layers.values())[-self.hyper.layers :]
        self.upper = [name for names in layers for name in names]

    def add_parameters(self, models: Stack) -> Stack:
        """W, for everybody 1."""
        weights = {
            name: torch.ones_like(models[name], memory_format=torch.contiguous_format) for name in self.upper
        }
        return {
            **models,
            **prefixed(WEIGHTS, weights),
            ADAPTED: self.task.train_sizes.new_zeros(self.task.clients),
        }

    def load(self, clients: Clients, own: Stack, message: Message) -> Stack:
        """The lower layers of Theta_g, and Theta^ with W learnt anew; in round 0 all of Theta_g."""
        if self.round == 0:
            return {**own, **message.model}
        lower = {name: value for name, value in message.model.items() if name not in self.upper}
        received = {**own, **lower}
        weights = self.learn(clients, received, message)
        stack = {**received, **weights, ADAPTED: torch.ones_like(received[ADAPTED])}
        return {**stack, **self.theta_hat(stack, message.model)}

    def theta_hat(self, models: Stack, theta_g: Stack) -> Stack:
        """Theta^, which is Theta_g's own bits where W is 1."""
        weights = part(WEIGHTS, models)
        return {name: torch.lerp(models[name], theta_g[name], weights[name]) for name in self.upper}

    def learn(self, clients: Clients, received: Stack, message: Message) -> Stack:
        """W after this round's passes."""
        names = [WEIGHTS + name for name in self.upper]
        theta_g = {name: message.model[name] for name in self.upper}
        weights = {name: received[name] for name in names}
        items, no_items = self.slices(clients), np.zeros(0, np.int64)
        open_mask = torch.ones_like(received[ADAPTED], dtype=torch.bool)
        losses: list[Tensor] = []
        while open_mask.any() and len(losses) < self.hyper.max_passes:
            loss = received[ADAPTED].new_zeros(clients.count)

            def objective(models: Stack, batch: Batch, loss: Tensor = loss) -> Tensor:
                theta_hat = self.theta_hat(models, batch.of(theta_g))
                entropy = batch.cross_entropy(batch.forward({**models, **theta_hat}).logits)
                loss[batch.rows] = entropy.detach()
                return entropy

            learning = open_mask.tolist()
            result = clients.fit(
                {**received, **weights},
                objective=objective,
                project=clip,
                trainable=names,
                epochs=1,
                items=[
                    positions if learns else no_items
                    for positions, learns in zip(items, learning, strict=True)
                ],
                short_batch=True,
                optimiser=Optimiser("sgd", self.hyper.eta),
                copy="weights",
            )
            weights = {name: result[name] for name in names}
            losses.append(loss)
            open_mask = open_mask & (received[ADAPTED] == 0)
            if len(losses) >= RECENT:
                open_mask &= torch.stack(losses[-RECENT:]).std(dim=0, correction=0) >= SETTLED
        return weights

    def slices(self, clients: Clients) -> list[NDArray[np.int64]]:
        """For every client the positions of neighbouring training items, a ``share`` of them."""
        slices = []
        for rng, items in zip(clients.generators("fedala slice"), clients.training, strict=True):
            count = max(int(self.hyper.share * len(items)), 1)
            start = int(rng.integers(0, max(len(items) - count, 0) + 1))
            slices.append(items[start : start + count])
        return slices

    def update(self, clients: Clients, received: Stack, message: Message) -> Update:
        """Local epochs on the adapted model."""
        return self.upload(clients.fit(received, trainable=self.shared()))


def clip(models: Stack, batch: Batch) -> None:
    """Keep W in [0, 1]."""
    for value in part(WEIGHTS, models).values():
        value.clamp_(0, 1)
