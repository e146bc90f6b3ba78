"""pFedHN: Personalized Federated Learning using Hypernetworks.

Shamsian et al., ICML 2021, Algorithm 1.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import torch
from pydantic import Field
from torch import Tensor, nn

from bench.engine.method import Message, Method, Stack
from bench.hyper import HyperParameters, tunable
from bench.nn.hypernetwork import Hypernetwork, clip_gradients


class PFedHN(Method):
    """A hypernetwork emits every client's whole model from a learned embedding of the client.

    theta_i = h(v_i; phi). After local training to theta~_i the server descends along
    (d theta_i / d phi)^T (theta_i - theta~_i): received minus trained, which moves the output
    towards the trained model. (The paper's Algorithm 1 prints the opposite difference; its
    released code has this one.)

    Here all clients take part in every round, as in the subgraph studies: their gradients are
    averaged into one step. The released trainer visits one random client a step: ``PFedHNOne``.
    Sizes, SGD and clipping are the released defaults: embeddings of 1 + N/4, three hidden layers
    of 100.
    """

    name = "pfedhn"
    title = "pFedHN"
    reference = "Shamsian et al., ICML 2021"
    numerics = 2

    class Hyper(HyperParameters):
        """Learning rate of the hypernetwork and of the embeddings (SGD with momentum)."""

        learning_rate: float = tunable(0.01, search=[0.001, 0.01, 0.05], gt=0)
        momentum: float = Field(0.9, ge=0, lt=1)
        weight_decay: float = Field(1e-3, ge=0)
        clip: float = Field(50.0, gt=0)

    hyper: Hyper

    def setup_server(self) -> None:
        """Embeddings v, hypernetwork h and their optimiser."""
        task = self.task
        width = int(1 + task.clients / 4)
        shapes = {name: task.shapes[name] for name in self.shared()}
        with task.seeded("hypernetwork"):
            self.embeddings = nn.Parameter(torch.randn(task.clients, width).to(task.device))
            network = Hypernetwork([width, 100, 100, 100, 100], shapes, dropout_rate=0.0, linear_end=True)
        self.network = network.to(task.device)
        self.parameters = [self.embeddings, *self.network.parameters()]
        self.optimiser = torch.optim.SGD(
            self.parameters,
            lr=self.hyper.learning_rate,
            momentum=self.hyper.momentum,
            weight_decay=self.hyper.weight_decay,
            fused=True,
        )

    def broadcast(self, round: int) -> Message:
        """theta_i = h(v_i; phi) for all clients."""
        self.round = round
        return Message(self.network.emit(self.network.features(self.embeddings, None)))

    def aggregate(self, participants: Tensor, received: Stack, upload: Message) -> None:
        """Steps along the mean of (d theta_i / d phi)^T (theta_i - theta~_i) over the clients of a step."""
        difference = {name: received[name] - trained for name, trained in upload.model.items()}
        for rows in self.steps(participants):
            self.step(participants[rows], {name: value[rows] for name, value in difference.items()})

    def steps(self, participants: Tensor) -> Iterable[Tensor]:
        """The rows of the clients of every step of a round: all of them in one."""
        return [torch.arange(len(participants), device=self.task.device)]

    def step(self, clients: Tensor, difference: Stack) -> None:
        """One step of v and phi for some clients, given their differences."""
        for parameter in (self.embeddings, *self.network.body.parameters()):
            parameter.grad = None
        features = self.network.features(self.embeddings[clients], None)
        gradient = {name: value / len(clients) for name, value in difference.items()}
        features.backward(self.network.pull_back(features.detach(), gradient))
        clip_gradients(self.parameters, self.hyper.clip)
        self.optimiser.step()


class PFedHNPC(PFedHN):
    """pFedHN-PC: the backbone is generated, the head stays with its client (Section 3.3)."""

    name = "pfedhn_pc"
    title = "pFedHN-PC"

    def shared(self) -> Collection[str]:
        """All but the head."""
        return self.task.backbone


class PFedHNOne(PFedHN):
    """pFedHN with as many steps a round as there are clients, one client each, in random order.

    All clients of a round train from what is generated at its start, so that they are trained
    together; the release generates a client's model when it is visited.

    A round costs some 25 times FedAvg's at 50 clients of Cora: every step goes through the
    hypernetwork's output layers forward and back and updates them, where pFedHN does so once.
    """

    name = "pfedhn_one"
    title = "pFedHN, one client a step"

    def steps(self, participants: Tensor) -> Iterable[Tensor]:
        """Every client on its own."""
        order = torch.randperm(len(participants), generator=self.task.generator("order", self.round))
        return list(order.to(self.task.device)[:, None])
