"""What methods have in common that send every client a mixture of all clients' models."""

from __future__ import annotations

import torch
from torch import Tensor

from bench.engine.method import Method, Stack
from bench.engine.stacks import by_layer, centred, inner_products, mix, replaced
from bench.errors import NotApplicableError


class Mixing(Method):
    """The server keeps every client's last model, at first one random model for all, and mixes them.

    In the papers all clients take part in every round. Where some do not, the others' mixtures hold
    their models of the last round that they took part in.
    """

    def setup_server(self) -> None:
        """One model for all, and its layers."""
        if self.task.clients < 2:
            raise NotApplicableError(f"{self.name} mixes models: it needs two clients at least")
        common = self.task.common()
        self.models: Stack = {name: common[name] for name in self.shared()}
        self.layers = tuple(by_layer(self.models, self.task.layers))
        self.records: dict[str, dict[int, Tensor]] = {}

    def mixtures(self, weights: Tensor) -> Stack:
        """Every client's mixture of the last models by ``weights`` ``[layers, clients, clients]``."""
        layer_weights = dict(zip(self.layers, weights.float(), strict=True))
        return mix(self.models, layer_weights, self.task.layers)

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

    def record(self, round: int, **values: Tensor) -> None:
        """Keep the weights (``collaboration``) of a round's mixtures, and what else is to be followed."""
        for name, value in values.items():
            self.records.setdefault(name, {})[round] = value.float()

    def artefacts(self) -> dict[str, Tensor]:
        """``collaboration``: the weights of the last round's mixtures, row i those of client i,
        ``[clients, clients]`` or ``[layers, clients, clients]`` in the order of ``Task.layers``; and
        whatever was recorded by round, ``NAME_by_round`` ``[rounds, ...]``."""
        by_round = {
            f"{name}_by_round": torch.stack(list(rounds.values())) for name, rounds in self.records.items()
        }
        return {"collaboration": by_round["collaboration_by_round"][-1], **by_round}
