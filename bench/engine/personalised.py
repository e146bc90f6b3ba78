"""Base classes for methods whose server sends every client its own mixture of the clients' models."""

from __future__ import annotations

import torch
from torch import Tensor

from bench.engine.method import Message, Method, Stack
from bench.engine.stacks import by_layer, centred, inner_products, mix, replaced
from bench.errors import NotApplicableError


class Personalised(Method):
    """Every client is sent a mixture of the uploaded models. The hook ``weights`` says how they are mixed.

    Attributes:
        models: the models sent to clients, ``[clients, ...]``; at first one random model for all.
        collaboration: the weights of the last mixtures, ``[clients, clients]`` or ``[layers, clients,
            clients]``. Row i belongs to client i. Clients that take no part in a round keep their rows.
    """

    def setup_server(self) -> None:
        """Start with one model for all and equal weights."""
        start, clients = self.initial(), self.task.clients
        self.models: Stack = {name: start[name] for name in self.shared()}
        self.collaboration = torch.full((clients, clients), 1 / clients, device=self.task.device)

    @property
    def collaboration(self) -> Tensor:
        """The weights of the clients' last mixtures. They are kept with the run."""
        return self.records["collaboration"]

    @collaboration.setter
    def collaboration(self, weights: Tensor) -> None:
        self.record(collaboration=weights)

    def initial(self) -> Stack:
        """The model that all clients start from, ``[clients, ...]``, with the shared parameters at least."""
        return self.task.common()

    def broadcast(self) -> Message:
        """Send every client its own mixture."""
        return Message(self.models)

    def weights(self, participants: Tensor, received: Stack, upload: Message) -> Tensor:
        """The weights of the participants' models ``[p, p]`` or ``[layers, p, p]``, row i for client i."""
        raise NotImplementedError

    def mixtures(self, models: Stack, weights: Tensor) -> Stack:
        """Mix models by ``weights``."""
        return mix(models, weights)

    def aggregate(self, participants: Tensor, received: Stack, upload: Message) -> None:
        """Compute weights and mixtures among the participants."""
        weights = self.weights(participants, received, upload).float()
        rows = weights.new_zeros(*weights.shape[:-1], self.task.clients)
        rows = rows.index_copy(-1, participants, weights)
        self.collaboration = self.collaboration.index_copy(-2, participants, rows)
        mixtures = self.mixtures(upload.model, weights)
        self.models = {name: replaced(self.models[name], participants, mixtures[name]) for name in mixtures}


class Mixing(Personalised):
    """The server keeps every client's last model in ``models`` and mixes the models when it broadcasts.

    In the papers all clients take part in every round. Here mixtures hold an absent client's last model.
    """

    def setup_server(self) -> None:
        """Start with one model for all."""
        if self.task.clients < 2:
            raise NotApplicableError(f"{self.name} mixes models: it needs two clients at least")
        super().setup_server()
        self.layers = tuple(by_layer(self.models, self.task.layers))

    def mixtures(self, models: Stack, weights: Tensor) -> Stack:
        """Mix models by ``weights`` ``[layers, clients, clients]``."""
        parts = by_layer(models, self.task.layers)
        mixed: dict[str, Tensor] = {}
        for layer, layer_weights in zip(self.layers, weights.float(), strict=True):
            mixed |= mix(parts[layer], layer_weights)
        return {name: mixed[name] for name in models}

    def pull(self, participants: Tensor, updates: Stack) -> Tensor:
        """G_ij = <update_i, model_j> by layer, float64 ``[layers, clients, clients]``; 0 for absent clients.

        G_i is the gradient of <update_i, mixture_i> with respect to the weights of client i's mixture, up
        to a constant in each row. The constant has no effect, since the weights of a row sum to 1. So the
        mean of all models is subtracted first, which keeps the digits of their differences.
        """
        step, models = by_layer(updates, self.task.layers), by_layer(self.models, self.task.layers)
        products = torch.stack([inner_products(step[layer], centred(models[layer])) for layer in self.layers])
        result = products.new_zeros(len(self.layers), self.task.clients, self.task.clients)
        return result.index_copy(1, participants, products)

    def keep(self, participants: Tensor, trained: Stack) -> None:
        """Keep the participants' trained models."""
        self.models = {
            name: replaced(self.models[name], participants, value) for name, value in trained.items()
        }
