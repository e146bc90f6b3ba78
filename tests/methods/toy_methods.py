"""Three small methods that show the seam: a second model, mixtures by layer, and prototypes.

bench check-method tests/methods/toy_methods.py
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

import torch
from pydantic import Field
from torch import Tensor
from torch.nn import functional

from bench.engine.method import Batch, Clients, Message, Method, Stack, Update
from bench.engine.stacks import by_layer, cosines, mix, part, prefixed, repeated, replaced
from bench.errors import NotApplicableError
from bench.hyper import HyperParameters
from bench.methods.fedavg import FedAvg

PERSONAL = "personal."
"""What the names of a client's second model begin with."""


class SecondModel(FedAvg):
    """FedAvg, and beside it a personal model that is held near the average (Ditto, Li et al., 2021).

    Client i trains the received w as in FedAvg, and sends it. Its own v_i, which predicts, minimises
    F_i(v) + pull/2 ||v - W||^2, W being w as received; it has an optimiser and running statistics of
    its own, and never leaves the client.
    """

    name = "toy_second_model"
    title = "Second model"
    stage = "trained"

    class Hyper(FedAvg.Hyper):
        """``pull`` towards the average, and the personal model's learning rate."""

        pull: float = Field(0.1, ge=0)
        personal_rate: float = Field(0.02, gt=0)

    hyper: Hyper

    def add_parameters(self, models: Stack) -> Stack:
        """The personal model starts where the client's other one does."""
        return {**models, **prefixed(PERSONAL, models)}

    def update(self, clients: Clients, received: Stack, message: Message) -> Update:
        """Local epochs on each of the two models."""
        if clients.spec.protocol.evaluate == "epoch":
            raise NotApplicableError(f"{self.name} trains two models, one after the other")

        def pull(gradients: Mapping[str, Tensor], models: Stack, batch: Batch) -> None:
            for name, average in batch.of(message.model).items():
                gradients[name].add_(models[name] - average, alpha=self.hyper.pull)

        own = {name: value for name, value in received.items() if not name.startswith(PERSONAL)}
        trained = clients.fit(own)
        personal = clients.fit(
            part(PERSONAL, received),
            adjust=pull,
            optimiser=replace(clients.optimiser, learning_rate=self.hyper.personal_rate),
            copy="personal",
        )
        return self.upload({**trained, **prefixed(PERSONAL, personal)})

    def logits(self, models: Stack, batch: Batch) -> Tensor:
        """Predictions of the personal model."""
        return batch.forward(part(PERSONAL, models)).logits


class LayerMixing(Method):
    """Every layer of a client's model is the client's own mixture of that layer of all models.

    Client i's weights in a layer are softmax_j(cos(u_i, u_j) / temperature), u being what the round
    changed in this layer, over the clients that took part.
    """

    name = "toy_layer_mixing"
    title = "Mixtures by layer"
    stage = "trained"

    class Hyper(HyperParameters):
        """``temperature`` -> infinity is FedAvg, -> 0 training alone."""

        temperature: float = Field(0.5, gt=0)

    hyper: Hyper

    def setup_server(self) -> None:
        """One model for all; no layer is mixed yet."""
        common = self.task.common()
        self.models: Stack = {name: common[name] for name in self.shared()}
        alone = torch.eye(self.task.clients, device=self.task.device)
        self.weights = dict.fromkeys(self.task.layers, alone)

    def broadcast(self, round: int) -> Message:
        """Every client's own mixture."""
        return Message(self.models)

    def aggregate(self, participants: Tensor, received: Stack, upload: Message) -> None:
        """The weights of every layer, and the mixtures."""
        moved = {name: value - received[name] for name, value in upload.model.items()}
        weights = {
            layer: torch.softmax(cosines(updates) / self.hyper.temperature, dim=1).float()
            for layer, updates in by_layer(moved, self.task.layers).items()
        }
        mixed = mix(upload.model, weights, self.task.layers)
        self.models = {name: replaced(self.models[name], participants, mixed[name]) for name in mixed}
        for layer, value in weights.items():
            rows = value.new_zeros(len(value), self.task.clients).index_copy(1, participants, value)
            self.weights[layer] = replaced(self.weights[layer], participants, rows)

    def artefacts(self) -> dict[str, Tensor]:
        """Every client's weights in its last round, ``[layers, clients, clients]``."""
        return {"mixing": torch.stack(list(self.weights.values()))}


class Prototypes(Method):
    """Clients agree on what a class looks like, and send no model (FedProto, Tan et al., 2022).

    A client's prototype of a class is the mean embedding of its training items of that class. The
    server averages them by the number of items. From the second round on a client minimises
    F_i(w) + strength * mean over its items of ||h(x) - prototype of x's class||^2 / width.
    """

    name = "toy_prototypes"
    title = "Prototypes"
    stage = "trained"

    class Hyper(HyperParameters):
        """``strength`` of the pull towards the prototypes."""

        strength: float = Field(0.1, ge=0)

    hyper: Hyper

    def setup_server(self) -> None:
        """Nothing is known of any class."""
        self.known: dict[str, Tensor] = {}

    def shared(self) -> Collection[str]:
        """No parameter leaves its client."""
        return ()

    def broadcast(self, round: int) -> Message:
        """The global prototypes, and which classes have one."""
        return Message(extras=repeated(self.known, self.task.clients))

    def update(self, clients: Clients, received: Stack, message: Message) -> Update:
        """Local epochs, then the prototypes of what was trained."""

        def objective(models: Stack, batch: Batch) -> Tensor:
            embedding = batch.embed(models)
            entropy = batch.cross_entropy(batch.head(models, embedding))
            return entropy + self.hyper.strength * distance(embedding, batch) if message.extras else entropy

        def distance(embedding: Tensor, batch: Batch) -> Tensor:
            known = batch.of(message.extras)
            label = batch.labels.clamp_min(0)
            wanted = known["prototypes"].gather(1, label[:, :, None].expand_as(embedding))
            squares = (embedding - wanted).square().mean(dim=2)
            return (squares * batch.weights * known["present"].gather(1, label)).sum(dim=1)

        trained = clients.fit(received, objective=objective)
        return self.upload(
            trained,
            prototypes=clients.reduce(trained, class_means),
            counts=clients.reduce(trained, lambda models, batch: batch.label_counts),
        )

    def aggregate(self, participants: Tensor, received: Stack, upload: Message) -> None:
        """Means over the clients that took part, by their numbers of items."""
        counts = upload.extras["counts"][:, :, None]
        total = counts.sum(dim=0)
        means = (counts * upload.extras["prototypes"]).sum(dim=0) / total.clamp_min(1)
        self.known = {"prototypes": means, "present": (total > 0).squeeze(1).float()}


def class_means(models: Stack, batch: Batch) -> Tensor:
    """Mean embedding of every client's training items by class ``[c, classes, width]``; 0 without any."""
    members = functional.one_hot(batch.labels + 1, batch.block.classes + 1)[:, :, 1:].float()
    return members.transpose(1, 2) @ batch.embed(models) / batch.label_counts.clamp_min(1)[:, :, None]
