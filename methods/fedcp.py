"""FedCP: Separating Feature Information for Personalized Federated Learning via Conditional Policy.

Zhang et al., KDD 2023, Algorithm 1.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn import functional

from bench.engine.method import Batch, Clients, Message, Stack, Update
from bench.engine.stacks import part, prefixed, repeated
from bench.errors import NotApplicableError
from bench.hyper import tunable

from .fedavg import FedAvg, SampleWeights

POLICY = ("policy.weight", "policy.bias", "policy.norm.weight", "policy.norm.bias")
"""A linear layer from width to 2 x width and its layer normalisation."""

BANDWIDTHS = (10.0, 15.0, 20.0, 50.0)

GLOBAL = "global."
"""What the names begin with of the global head and of the running statistics of the global base."""

CONTEXT = "context"
"""The client's vector v."""


class FedCP(FedAvg):
    """A policy of each sample decides which features go to a personal head and which to a global one.

    Client i has a base B_i (the backbone), a personal head H_i and a policy CPN, and frozen copies of the
    average base B_g and the average head H_g. For the features r = B_i(x)

        m_p, m_g = CPN(r * v)   with m_p + m_g = 1,   logits = H_i(r * m_p) + H_g(r * m_g)

    v is the client's context: the sum over classes of its head's weights, of length 1. CPN is a linear
    layer to twice the width, layer normalisation and ReLU; the masks are a Gumbel softmax over the two values
    of a feature (temperature 1, not rounded). Trained are B_i, H_i and CPN, together, on

        cross-entropy + lambda MMD(r, B_g(x))     (``mmd``)

    whose second term moves B_i alone. Client i sends B_i, CPN and (H_i + H_g) / 2; the server averages by
    training items. What comes replaces B_i, B_g, CPN and H_g; H_i stays.

    What is open, or only in the released code, and what is done here:
    - v is made anew when a global head arrives. In round 0 none has: then it is a random vector (uniform
      in each place, scaled to length 1, one a client).
    - Masks are sampled in evaluation, too. Here with one stream for every client and round, so that a
      model's accuracy is one number; the released one is another number each time.
    - B_g runs in training mode beside B_i, and moves running statistics of its own, which stay.
    - In the study lambda is 5 for the CNN and 1 for ResNet-18; the release's own default is 0.

    Runs on graphs, too: MMD is then over all pairs of a client's training nodes.
    """

    name = "fedcp"
    title = "FedCP"
    reference = "Zhang et al., KDD 2023"
    stage = "trained"
    settings: ClassVar[dict[str, str]] = {"protocol.initial": "common"}

    class Hyper(SampleWeights):
        strength: float = tunable(
            5.0,
            search=[0.0, 0.1, 1.0, 5.0, 10.0],
            ge=0,
            description="lambda: weight of the MMD between global and personal features in the loss",
        )

    hyper: Hyper

    def setup_server(self) -> None:
        """Start with one random model and one policy."""
        matrices = [name for name in self.task.head if len(self.task.shapes[name]) == 2]
        if len(matrices) != 1:
            raise NotApplicableError(
                f"{self.name} reads its context from a head of one matrix, not {len(matrices)}"
            )
        (self.matrix,) = matrices
        policy = initial_policy(self.task.shapes[self.matrix][0], self.task.generator("policy"))
        self.policy = {name: value.to(self.task.device) for name, value in policy.items()}
        super().setup_server()

    def shared(self) -> Collection[str]:
        """Send the client model and the policy."""
        return (*self.task.parameters, *POLICY)

    def initial(self) -> Stack:
        """The common client model and policy."""
        return {**self.task.common(), **repeated(self.policy, self.task.clients)}

    def add_parameters(self, models: Stack) -> Stack:
        """Add CPN, H_g, running statistics for B_g, and a random v."""
        width = self.task.shapes[self.matrix][0]
        vectors = torch.rand(self.task.clients, width, 1, generator=self.task.generator("context"))
        head = {name: value for name, value in models.items() if name not in self.task.backbone}
        policy = repeated(self.policy, self.task.clients)
        return {
            **models,
            **policy,
            **prefixed(GLOBAL, head),
            CONTEXT: context(vectors.to(self.task.device)),
        }

    def load(self, clients: Clients, own: Stack, message: Message) -> Stack:
        """Replace B_i and CPN, keep H_i, and set H_g anew. From the second round on, set v anew, too."""
        heads = {name: message.model[name] for name in self.task.head}
        local_head = {name: own[name] for name in self.task.head}
        models = {**own, **message.model, **local_head, **prefixed(GLOBAL, heads)}
        return {**models, CONTEXT: context(own[self.matrix])} if self.round else models

    def update(self, clients: Clients, received: Stack, message: Message) -> Update:
        """Train base, head and policy for the local epochs."""
        streams = clients.generators("fedcp masks")
        global_base = {name: message.model[name] for name in self.task.backbone}

        def objective(models: Stack, batch: Batch) -> Tensor:
            with torch.no_grad():
                target = batch.embed({**part(GLOBAL, models), **batch.of(global_base)})
            features = batch.embed(models)
            lengths = batch.inputs.lengths.tolist()
            width = features.shape[2]
            draws = [
                torch.from_numpy(stream.random((length, width), "float32"))
                for stream, length in zip(batch.of(streams), lengths, strict=True)
            ]
            logits = self.routed(models, features, draws, batch)
            discrepancy = mmd(features, target, batch.weights)
            return batch.cross_entropy(logits) + self.hyper.strength * discrepancy

        trained = clients.fit(received, objective=objective, trainable=self.shared())
        uploads = {name: trained[name] for name in self.shared()}
        uploads |= {name: (trained[name] + received[GLOBAL + name]) / 2 for name in self.task.head}
        return Update(trained, Message(uploads))

    def routed(self, models: Stack, features: Tensor, draws: list[Tensor], batch: Batch) -> Tensor:
        """H_i(r * m_p) + H_g(r * m_g), the masks being sampled with uniform ``draws``."""
        noise = padded(draws, features.shape[1], features.device)
        mask = personal_mask(models, features * models[CONTEXT][:, None, :], noise)
        personal = batch.head(models, features * mask)
        return personal + batch.head(part(GLOBAL, models), features * (1 - mask))

    def logits(self, models: Stack, batch: Batch) -> Tensor:
        """Predict with masks from the client's and the round's own stream."""
        features = batch.embed(models)
        draws = [
            torch.rand(length, features.shape[2], generator=self.task.generator("masks", number, self.round))
            for number, length in zip(batch.block.numbers, batch.inputs.lengths.tolist(), strict=True)
        ]
        return self.routed(models, features, draws, batch)


def initial_policy(width: int, generator: torch.Generator) -> dict[str, Tensor]:
    """One client's network: torch's default linear layer, the identity as normalisation."""
    bound = 1 / math.sqrt(width)
    weight, bias = (
        (2 * torch.rand(*shape, generator=generator) - 1) * bound
        for shape in ((width, 2 * width), (2 * width,))
    )
    return dict(zip(POLICY, (weight, bias, torch.ones(2 * width), torch.zeros(2 * width)), strict=True))


def personal_mask(models: Stack, gate: Tensor, noise: Tensor) -> Tensor:
    """m_p, the personal share of every feature, in (0, 1); that of the global part is 1 - m_p.

    The network gives two values for every feature. A softmax of temperature 1 over both, with Gumbel
    noise on each, is a sigmoid of their difference with logistic noise, which is the difference of two
    Gumbel variables.

    Args:
        models: the policies.
        gate: what they read, ``[clients, items, width]``.
        noise: uniform in [0, 1), of the same shape.
    """
    weight, bias, scale, shift = (models[name] for name in POLICY)
    hidden = torch.baddbmm(bias[:, None, :], gate, weight)
    normal = functional.layer_norm(hidden, hidden.shape[-1:])
    personal, common = torch.relu(normal * scale[:, None, :] + shift[:, None, :]).chunk(2, dim=2)
    return torch.sigmoid(personal - common + torch.logit(noise, eps=1e-7))


def context(head: Tensor) -> Tensor:
    """v ``[clients, width]``: weights ``[clients, width, classes]`` summed over classes, of length 1."""
    return functional.normalize(head.sum(dim=2), dim=1)


def mmd(x: Tensor, y: Tensor, weights: Tensor) -> Tensor:
    """Squared maximum mean discrepancy of two sets of features, ``[clients]``.

    The kernel is sum_a exp(-||.||^2 / 2a) over ``BANDWIDTHS``.

    Args:
        x: features ``[clients, items, width]``.
        y: others of the same items.
        weights: of the items in the means, ``[clients, items]``.
    """
    pairs = weights[:, :, None] * weights[:, None, :]
    return ((kernel(x, x) + kernel(y, y) - 2 * kernel(x, y)) * pairs).sum(dim=(1, 2))


def kernel(x: Tensor, y: Tensor) -> Tensor:
    """Kernel values of any two items, ``[clients, items, items]``."""
    squares = x.square().sum(dim=2)[:, :, None] + y.square().sum(dim=2)[:, None, :]
    distances = torch.baddbmm(squares, x, y.transpose(1, 2), alpha=-2).clamp_min(0)
    return torch.stack([torch.exp(-0.5 / width * distances) for width in BANDWIDTHS]).sum(dim=0)


def padded(draws: Sequence[Tensor], items: int, device: torch.device) -> Tensor:
    """Draws ``[own items, width]`` of every client as ``[clients, items, width]``, 1/2 in the padding."""
    rows = [functional.pad(draw, (0, 0, 0, items - len(draw)), value=0.5) for draw in draws]
    return torch.stack(rows).to(device)
