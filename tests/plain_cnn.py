"""The study's CNN for one client in plain torch, and small image clients to try it on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from bench import streams
from bench.federation.types import TEST, TRAIN, VALIDATION, Client, Federation
from bench.nn.base import ClientModel
from bench.spec import ClientSettings, Protocol, RunSpec

SIDE = 16
CLASSES = 4
HIDDEN = 12
BATCH = 8
RATE = 0.01

IMAGE_COUNTS = (4, 12, 40, 41, 70)
"""Images of each client: 3, 9, 28, 29 and 49 for training, so 1, 1, 3, 3 and 6 batches of 8."""

SETTINGS = ClientSettings(
    model="cnn",
    hidden=HIDDEN,
    dropout=0,
    optimizer="sgd",
    learning_rate=RATE,
    weight_decay=0,
    batch_size=BATCH,
)

MODULES = {"conv1": 0, "bn1": 1, "conv2": 4, "bn2": 5, "fc1": 9, "fc": 11}
"""Name of a layer in a stack -> its place in ``plain_cnn``."""


def plain_cnn(side: int = SIDE, hidden: int = HIDDEN, classes: int = CLASSES) -> nn.Sequential:
    """conv, BN, ReLU, pool, twice, and two linear layers."""
    left = ((side - 4) // 2 - 4) // 2
    return nn.Sequential(
        nn.Conv2d(3, 32, 5),
        nn.BatchNorm2d(32),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 5),
        nn.BatchNorm2d(64),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(64 * left * left, hidden),
        nn.ReLU(),
        nn.Linear(hidden, classes),
    )


def of_module(network: nn.Sequential, name: str) -> Tensor:
    """The tensor of a plain network that a stack calls ``name``."""
    layer, _, kind = name.partition(".")
    value: Tensor = getattr(network[MODULES[layer]], kind)
    return value


def turned(name: str, value: Tensor) -> Tensor:
    """A plain network's tensor as a stack holds it: linear weights are ``[inputs, outputs]`` there."""
    return value.T if name in ("fc1.weight", "fc.weight") else value


def plain_copy(stack: Mapping[str, Tensor], client: int) -> nn.Sequential:
    """A plain network with one client's weights and running statistics."""
    network = plain_cnn()
    with torch.no_grad():
        for name, value in stack.items():
            of_module(network, name).copy_(turned(name, value[client]))
    return network


def random_stack(model: ClientModel, clients: int) -> dict[str, Tensor]:
    """Models that differ in everything, running statistics and normalisation weights included."""
    rng = np.random.default_rng(3)
    drawn = [model.initial(rng) for _ in range(clients)]
    for values in drawn:
        for value in values.values():
            if np.ptp(value) == 0:  # as it starts, the same in all places and for everybody
                value[:] = rng.uniform(0.5, 1.5, value.shape)
    return {name: torch.from_numpy(np.stack([values[name] for values in drawn])) for name in model.shapes}


def normalised(pixels: NDArray[np.uint8]) -> Tensor:
    """ToTensor and Normalize(0.5, 0.5)."""
    return torch.from_numpy((pixels.astype(np.float32) / 255 - 0.5) / 0.5)


def image_client(images: int, seed: int, side: int = SIDE) -> Client:
    """A client whose images are tinted by their class, under noise."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, CLASSES, images)
    tint = np.random.default_rng(0).integers(40, 216, (CLASSES, 3, 1, 1))
    pixels = np.clip(tint[labels] + rng.normal(0, 25, (images, 3, side, side)), 0, 255).astype(np.uint8)
    places = np.arange(images) / images
    roles = np.select([places < 0.7, places < 0.7 + 0.1], [TRAIN, VALIDATION], TEST).astype(np.int8)
    return Client(np.arange(images), labels, rng.permutation(roles), pixels)


def federation(*sizes: int) -> Federation:
    """One client for each number of images."""
    clients = tuple(image_client(size, 100 + number) for number, size in enumerate(sizes))
    return Federation("toy", "dirichlet0.1", "images", CLASSES, clients, "toy")


def spec(method: str, clients: int, rounds: int = 2, epochs: int = 3, rate: float = RATE) -> RunSpec:
    """A short run on toy clients, everyone starting from one model."""
    return RunSpec(
        dataset="toy",
        scenario="dirichlet0.1",
        clients=clients,
        method=method,
        seed=5,
        protocol=Protocol(rounds=rounds, local_epochs=epochs, split=(70, 10, 20), initial="common"),
        client=SETTINGS.model_copy(update={"learning_rate": rate}),
    )


PlainObjective = Callable[[nn.Sequential, Tensor, Tensor], Tensor]
"""The loss of a network on a batch's images and labels."""


def plain_cross_entropy(network: nn.Sequential, images: Tensor, labels: Tensor) -> Tensor:
    """The mean over a batch."""
    return functional.cross_entropy(network(images), labels)


def plain_epochs(
    network: nn.Sequential,
    client: Client,
    key: tuple[int, int, int],
    epochs: int,
    layers: Sequence[str] = tuple(MODULES),
    objective: PlainObjective = plain_cross_entropy,
    items: NDArray[np.int64] | None = None,
) -> list[float]:
    """SGD on the weights of some layers, in training mode, on the shuffled batches of ``fit``.

    ``key`` is the client's number, the round and the fit of the round; ``items`` are those of ``fit``.

    Returns every epoch's mean loss.
    """
    weights = [value for layer in layers for value in network[MODULES[layer]].parameters()]
    training = np.flatnonzero(client.roles == TRAIN) if items is None else items
    network.train()
    means = []
    for epoch in range(epochs):
        order = streams.generator(5, "order", *key, epoch).permutation(training)
        losses = []
        for first in range(0, len(order), BATCH):
            batch = order[first : first + BATCH]
            if first > 0 and len(batch) < BATCH:
                continue
            images, labels = normalised(client.features[batch]), torch.from_numpy(client.labels[batch])
            loss = objective(network, images, labels)
            gradients = torch.autograd.grad(loss, weights)
            with torch.no_grad():
                for value, gradient in zip(weights, gradients, strict=True):
                    value -= RATE * gradient
            losses.append(loss.item())
        means.append(float(np.mean(losses)))
    return means
