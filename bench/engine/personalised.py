"""What methods have in common whose server sends every client a mixture of the clients' models."""

from __future__ import annotations

import torch
from torch import Tensor

from bench.engine.method import Message, Method, Stack
from bench.engine.stacks import by_layer, centred, inner_products, mix, replaced
from bench.errors import NotApplicableError


class Personalised(Method):
    """Every client is sent its own mixture of what was uploaded, by the hook ``weights``.

    ``models`` ``[clients, ...]`` are what clients are sent, at first one random model for all;
    ``collaboration`` ``[clients, clients]`` or ``[layers, clients, clients]`` are the weights of the clients'
    last mixtures, row i those of client i. Clients that take no part in a round keep their rows.
    """

    def setup_server(self) -> None:
        """One model for all, and even weights."""
        start, clients = self.initial(), self.task.clients
        self.models: Stack = {name: start[name] for name in self.shared()}
        self.collaboration = torch.full((clients, clients), 1 / clients, device=self.task.device)

    @property
    def collaboration(self) -> Tensor:
        """The weights of the clients' last mixtures; they are kept with the run."""
        return self.records["collaboration"]

    @collaboration.setter
    def collaboration(self, weights: Tensor) -> None:
        self.record(collaboration=weights)

    def initial(self) -> Stack:
        """The model that all start from, ``[clients, ...]``; it holds at least what is shared."""
        return self.task.common()

    def broadcast(self) -> Message:
        """The client's own mixture."""
        return Message(self.models)

    def weights(self, participants: Tensor, received: Stack, upload: Message) -> Tensor:
        """Weights of the participants' models in their mixtures, ``[p, p]`` or ``[layers, p, p]``.

        Row i are those of the i-th participant's mixture. The arguments are those of ``aggregate``.
        """
        raise NotImplementedError

    def mixtures(self, models: Stack, weights: Tensor) -> Stack:
        """Mixtures of models by ``weights``."""
        return mix(models, weights)

    def aggregate(self, participants: Tensor, received: Stack, upload: Message) -> None:
        """The weights and the mixtures, among the clients that took part."""
        weights = self.weights(participants, received, upload).float()
        rows = weights.new_zeros(*weights.shape[:-1], self.task.clients)
        rows = rows.index_copy(-1, participants, weights)
        self.collaboration = self.collaboration.index_copy(-2, participants, rows)
        mixtures = self.mixtures(upload.model, weights)
        self.models = {name: replaced(self.models[name], participants, mixtures[name]) for name in mixtures}


class Mixing(Personalised):
    """The server keeps every client's last model in ``models``, and mixes them when it broadcasts.

    In the papers all clients take part in every round. Where some do not, the others' mixtures hold
    their models of the last round that they took part in.
    """

    def setup_server(self) -> None:
        """One model for all, and its layers."""
        if self.task.clients < 2:
            raise NotApplicableError(f"{self.name} mixes models: it needs two clients at least")
        super().setup_server()
        self.layers = tuple(by_layer(self.models, self.task.layers))

    def mixtures(self, models: Stack, weights: Tensor) -> Stack:
        """Mixtures by ``weights`` ``[layers, clients, clients]``."""
        layer_weights = dict(zip(self.layers, weights.float(), strict=True))
        return mix(models, layer_weights, self.task.layers)

    def pull(self, participants: Tensor, updates: Stack) -> Tensor:
        """G_ij = <update_i, model_j> by layer, float64 ``[layers, clients, clients]``.

        It is the gradient of <update_i, mixture_i> with respect to the weights of i's mixture, up to a
        constant in each row, which weights of sum 1 do not feel: models are taken from their mean, so
        that their differences keep their digits. Rows of clients that did not take part are 0.
        """
        step, models = by_layer(updates, self.task.layers), by_layer(self.models, self.task.layers)
        products = torch.stack([inner_products(step[layer], centred(models[layer])) for layer in self.layers])
        result = products.new_zeros(len(self.layers), self.task.clients, self.task.clients)
        return result.index_copy(1, participants, products)

    def keep(self, participants: Tensor, trained: Stack) -> None:
        """The clients' last models; copies, since training uses its memory again."""
        self.models = {
            name: replaced(self.models[name], participants, value.clone()) for name, value in trained.items()
        }
