"""pFedHN: Personalized Federated Learning using Hypernetworks.

Shamsian et al., ICML 2021, Algorithm 1.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from bench.engine.method import Message, Method, Stack
from bench.hyper import HyperParameters, added, tunable
from bench.nn.hypernetwork import Hypernetwork, clip_gradients

WIDTH = 100
"""Of every hidden layer, and of what the output layers read."""

RESIDUAL_SCALE = 0.1
"""Of the output layers' initial weights where what they give is added to a model."""


class PFedHN(Method):
    """A hypernetwork emits every client's whole model from a learned embedding of the client.

    theta_i = h(v_i; phi). After local training to theta~_i the server descends along
    (d theta_i / d phi)^T (theta_i - theta~_i): received minus trained, which moves the output
    towards the trained model. (The paper's Algorithm 1 prints the opposite difference; its
    released code has this one.)

    The clients' gradients are averaged into one step, or summed with ``combine = "sum"``. The released
    trainer takes a step for every client, one after the other in random order. Sizes, SGD and clipping are
    the released defaults: embeddings of 1 + N/4, three hidden layers of 100.

    By default the whole model is generated, as released. torch's initial output layers then give every
    value the same range, so that the weights of a batch normalisation start near 0 and no layer as its
    fan-in asks. With ``output = "residual"`` theta_i = theta + h(v_i; phi), theta being one random model
    for all, h small at first (theta is the output layers' initial bias, which ``weight_decay`` reaches).

    The output layers have 101 weights for every one of the client model: 89 million for the image
    study's CNN, 1.1 billion for ResNet-18, 9 GB with gradients.
    """

    name = "pfedhn"
    title = "pFedHN"
    reference = "Shamsian et al., ICML 2021"
    numerics = 2

    class Hyper(HyperParameters):
        learning_rate: float = tunable(
            0.01, search=[0.001, 0.01, 0.05], gt=0, description="learning rate of hypernetwork and embeddings"
        )
        momentum: float = Field(0.9, ge=0, lt=1, description="momentum of its SGD")
        weight_decay: float = Field(1e-3, ge=0, description="weight decay of hypernetwork and embeddings")
        clip: float = Field(50.0, gt=0, description="largest norm of a step's gradients")
        output: Literal["whole", "residual"] = added(
            "whole",
            description="what is generated: the whole model, or what is added to one random model for all",
        )
        combine: Literal["mean", "sum"] = added(
            "mean", description="how clients' gradients of a round make a step"
        )

    hyper: Hyper

    def setup_server(self) -> None:
        """Set up the embeddings v, the hypernetwork h and their optimiser."""
        task = self.task
        width = int(1 + task.clients / 4)
        shapes = {name: task.shapes[name] for name in self.shared()}
        with task.seeded("hypernetwork"):
            self.embeddings = nn.Parameter(torch.randn(task.clients, width).to(task.device))
            network = Hypernetwork([width, *[WIDTH] * 4], shapes, dropout_rate=0.0, linear_end=True)
        self.network = network.to(task.device)
        if self.hyper.output == "residual":
            common = task.common()
            self.network.start_from({name: common[name][0] for name in shapes}, RESIDUAL_SCALE)
        self.parameters = [self.embeddings, *self.network.parameters()]
        self.optimiser = torch.optim.SGD(
            self.parameters,
            lr=self.hyper.learning_rate,
            momentum=self.hyper.momentum,
            weight_decay=self.hyper.weight_decay,
            fused=True,
        )

    def broadcast(self) -> Message:
        """Generate and send theta_i = h(v_i; phi)."""
        return Message(self.network.emit(self.network.features(self.embeddings, None)))

    def aggregate(self, participants: Tensor, received: Stack, upload: Message) -> None:
        """Step along the mean or sum of (d theta_i / d phi)^T (theta_i - theta~_i) over clients."""
        for parameter in (self.embeddings, *self.network.body.parameters()):
            parameter.grad = None
        features = self.network.features(self.embeddings[participants], None)
        parts = len(participants) if self.hyper.combine == "mean" else 1
        gradient = {name: (received[name] - trained) / parts for name, trained in upload.model.items()}
        features.backward(self.network.pull_back(features.detach(), gradient))
        clip_gradients(self.parameters, self.hyper.clip)
        self.optimiser.step()


class PFedHNPC(PFedHN):
    """pFedHN-PC: the backbone is generated, the head stays with its client (Section 3.3)."""

    name = "pfedhn_pc"
    title = "pFedHN-PC"

    def shared(self) -> Collection[str]:
        """Send everything but the head."""
        return self.task.backbone
