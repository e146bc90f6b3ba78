"""The linear HGNN of the hypergraph study (FedHGN, arXiv 2408.05160): ``Dropout(Z Theta1) Theta2``.

``Z`` are features that the method has propagated over hyperedges before training, so that the
client model sees rows only. No biases; dropout between the two matrices and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bench.federation.types import TRAIN, Client
from bench.nn.base import ClientModel, Drop, Inputs, fan_in_uniform
from bench.nn.sparse import RowsInUse
from bench.spec import ClientSettings


class RowInputs(Inputs):
    """Feature rows of a block of clients, padded with zero rows to the longest client.

    A step of training needs the training rows alone, a tenth of all rows in the study.
    """

    def __init__(self, clients: Sequence[Client], device: torch.device) -> None:
        sizes = [len(client.ids) for client in clients]
        self.lengths = torch.tensor(sizes, device=device)
        self.items = max(sizes)
        rows = np.zeros((len(clients), self.items, clients[0].features.shape[1]), np.float32)
        for index, client in enumerate(clients):
            rows[index, : sizes[index]] = client.dense()
        self.rows = torch.from_numpy(rows).to(device)
        self.training = RowsInUse(self.rows, [np.flatnonzero(client.roles == TRAIN) for client in clients])

    def product(self, weight: Tensor, training: bool) -> Tensor:
        """``z_c w_c`` for every client, ``[clients, width, hidden]`` -> ``[clients, items, hidden]``.

        In training the rows of other items are zero.
        """
        return self.training.product(weight) if training else torch.bmm(self.rows, weight)


class HGNN(ClientModel):
    """Two matrices on propagated features; the embedding is the product with the first."""

    name = "hgnn"
    families = ("hypergraph", "graph")
    head = frozenset({"theta2"})

    def __init__(self, clients: Sequence[Client], classes: int, settings: ClientSettings) -> None:
        super().__init__(clients, classes, settings)
        self.dropout_widths = (self.hidden,)

    def initial(self, rng: np.random.Generator) -> dict[str, NDArray[np.float32]]:
        """Uniform within ``1 / sqrt(fan_in)``."""
        return {
            "theta1": fan_in_uniform(rng, self.inputs, (self.inputs, self.hidden)),
            "theta2": fan_in_uniform(rng, self.hidden, (self.hidden, self.classes)),
        }

    def collate(self, clients: Sequence[Client], device: torch.device) -> RowInputs:
        """Dense rows."""
        return RowInputs(clients, device)

    def embed(self, stack: Mapping[str, Tensor], inputs: RowInputs, drop: Drop | None) -> Tensor:
        """``Z Theta1``; in training zero but for training items."""
        return inputs.product(stack["theta1"], training=drop is not None)

    def classify(
        self, stack: Mapping[str, Tensor], embedding: Tensor, inputs: RowInputs, drop: Drop | None
    ) -> Tensor:
        """The product with the second matrix."""
        hidden = drop(embedding, 0) if drop else embedding
        return torch.bmm(hidden, stack["theta2"])


class HGNNRelu(HGNN):
    """The same with a ReLU on the logits (the sigma of the paper's Eq. 6, as the released code has it)."""

    name = "hgnn_relu"

    def classify(
        self, stack: Mapping[str, Tensor], embedding: Tensor, inputs: RowInputs, drop: Drop | None
    ) -> Tensor:
        """Classes whose logit is negative get no gradient; of equal logits the first class wins."""
        return torch.relu(super().classify(stack, embedding, inputs, drop))
