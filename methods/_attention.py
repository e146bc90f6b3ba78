"""Attention between clients, in front of a hypernetwork (FedSheafHN, Section 3.3)."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn


class ClientAttention(nn.Module):
    """softmax(Q K^T / sqrt(width)) V over the clients' vectors ``[clients, width]`` (Eq. 10).

    The paper has no residual and no scaling (``scaled`` False); with torch's default weights its softmax
    is nearly uniform, every client gets nearly the same vector and the models cannot differ. V therefore
    starts at the identity, Q and K start small, and ``residual`` adds the input.
    """

    def __init__(self, width: int, residual: bool, scaled: bool = True) -> None:
        super().__init__()
        self.residual = residual
        self.scale = width**0.5 if scaled else 1.0
        self.query = nn.Parameter(0.01 * torch.randn(width, width))
        self.key = nn.Parameter(0.01 * torch.randn(width, width))
        self.value = nn.Parameter(torch.eye(width))

    def forward(self, x: Tensor) -> Tensor:
        """``[clients, width]`` -> ``[clients, width]``."""
        scores = (x @ self.query) @ (x @ self.key).t() / self.scale
        mixture = torch.softmax(scores, dim=1) @ (x @ self.value)
        return x + mixture if self.residual else mixture


class FreeMatrix(nn.Module):
    """The released code's attention: one free ``[clients, clients]`` matrix that starts at the identity.

    It belongs to the clients it was made for, so it cannot serve new ones.
    """

    def __init__(self, clients: int) -> None:
        super().__init__()
        self.matrix = nn.Parameter(torch.eye(clients))

    def forward(self, x: Tensor) -> Tensor:
        """``[clients, width]`` -> ``[clients, width]``."""
        return self.matrix @ x


def client_attention(
    kind: Literal["qkv", "matrix", "none"], width: int, clients: int, residual: bool, scaled: bool
) -> nn.Module:
    """The attention of that kind between ``clients`` vectors ``[clients, width]``."""
    if kind == "none":
        return nn.Identity()
    return FreeMatrix(clients) if kind == "matrix" else ClientAttention(width, residual, scaled)
