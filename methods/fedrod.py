"""FedRoD: On Bridging Generic and Personalized Federated Learning for Image Classification.

Chen and Chao, ICLR 2022.
"""

from __future__ import annotations

import torch
from torch import Tensor

from bench.engine.method import Batch, Clients, Message, Stack, Update
from bench.engine.stacks import part, prefixed

from .fedavg import FedAvg, SampleWeights

PERSONAL = "personal."
"""What the names of the personal head's parameters begin with."""

NONE_OF_A_CLASS = -1e4
"""Stands for the logarithm of no items: finite, so that nothing becomes NaN, and 0 after a softmax."""


class FedRoD(FedAvg):
    """A generic and a personal head on one body: the first for all classes, the second for the client's.

    Body f and generic head G are averaged; every client keeps a personal head H_i, a copy of G at the start.
    With features z = f(x) and n_iy training items of class y at client i, it minimises the sum of

        balanced:  CE(G(z) + ln n_iy, y)               over f and G (balanced softmax, Eq. 5)
        personal:  CE(stop(G(z)) + H_i(stop(z)), y)    over H_i alone

    and predicts by G(z) + H_i(z) (the paper's G-FL by G(z)). The losses have gradients for different
    parameters: a step on their sum is the two steps of PFLlib's two optimisers.

    What differs between paper and code, and what is done here:
    - There is no official code; PFLlib's is followed. It counts n_iy over the batches that an epoch
      leaves whole, here over all training items. It evaluates received models alone; here both stages are,
      *trained* being the paper's personal model.
    - The paper also generates H_i from the client's class shares by a hypernetwork, and has other losses for
      the generic part; not here.
    - In training a dropped unit is dropped for both heads.
    """

    name = "fedrod"
    title = "FedRoD"
    reference = "Chen and Chao, ICLR 2022"
    stage = "trained"
    onboard = FedAvg.onboard
    Hyper = SampleWeights

    def add_parameters(self, models: Stack) -> Stack:
        """Add H_i, a copy of the server's G."""
        clients = len(next(iter(models.values())))
        head = {name: self.model[name].expand(clients, *self.model[name].shape) for name in self.task.head}
        return {**models, **prefixed(PERSONAL, head)}

    def update(self, clients: Clients, received: Stack, message: Message) -> Update:
        """Train on the sum of both losses for the local epochs."""
        counts = clients.reduce(received, lambda models, batch: batch.label_counts)
        priors = torch.where(counts > 0, counts.log(), NONE_OF_A_CLASS)

        def both(models: Stack, batch: Batch) -> Tensor:
            features = batch.embed(models)
            generic = batch.head(models, features)
            personal = batch.head({**models, **part(PERSONAL, models)}, features.detach())
            entropy = batch.cross_entropy(generic.detach() + personal)  # of what predicts: the one to log
            return entropy + batch.cross_entropy(generic + batch.of(priors)[:, None, :])

        return self.upload(clients.fit(received, objective=both))

    def logits(self, models: Stack, batch: Batch) -> Tensor:
        """Predict with G(z) + H_i(z)."""
        features = batch.embed(models)
        personal = batch.head({**models, **part(PERSONAL, models)}, features)
        return batch.head(models, features) + personal
