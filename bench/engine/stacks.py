"""Arithmetic on stacks that several methods use: means, mixtures and similarities of clients.

A stack maps a parameter's name to a tensor ``[clients, ...]``. Functions treat all parameters of a client
in the stack together. For one layer alone, give them the stack of that layer (``by_layer``).
"""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from bench.engine.batch import Stack

Layers = Mapping[str, tuple[str, ...]]
"""Layer name -> names of its parameters."""


def by_layer(stack: Stack, layers: Layers) -> dict[str, Stack]:
    """Cut a stack into one for each layer. Layers without a parameter in the stack are left out."""
    cut = {layer: {name: stack[name] for name in names if name in stack} for layer, names in layers.items()}
    return {layer: part for layer, part in cut.items() if part}


def repeated(model: Mapping[str, Tensor], clients: int) -> dict[str, Tensor]:
    """One model for all clients: ``[...]`` -> ``[clients, ...]`` without copies."""
    return {name: value.expand(clients, *value.shape) for name, value in model.items()}


def prefixed(prefix: str, stack: Stack) -> dict[str, Tensor]:
    """The same models under longer names, to keep them in a stack with others."""
    return {prefix + name: value for name, value in stack.items()}


def part(prefix: str, stack: Stack) -> dict[str, Tensor]:
    """The models that ``prefixed`` put into a stack, under their own names."""
    return {name.removeprefix(prefix): value for name, value in stack.items() if name.startswith(prefix)}


def replaced(value: Tensor, clients: Tensor, rows: Tensor) -> Tensor:
    """Replace the rows of some clients in ``value`` ``[all clients, ...]``; ``rows`` if they are all."""
    return rows if len(rows) == len(value) else value.index_copy(0, clients, rows)


def average(value: Tensor, shares: Tensor) -> Tensor:
    """The weighted mean over clients: ``[clients, ...]`` and ``[clients]`` -> ``[...]``."""
    return (shares @ value.flatten(1)).view(value.shape[1:])


def mix(stack: Stack, weights: Tensor) -> Stack:
    """Mix all models for every row i of ``weights`` ``[mixtures, clients]``: ``sum_j weights_ij model_j``."""
    return {name: (weights @ value.flatten(1)).view(-1, *value.shape[1:]) for name, value in stack.items()}


def inner_products(stack: Stack, other_stack: Stack) -> Tensor:
    """Inner products of every client of a stack with every client of another one, float64 ``[c, d]``.

    Products within a parameter have the precision of the stacks. The sum over parameters is in float64.
    """
    products = [value.flatten(1) @ other_stack[name].flatten(1).T for name, value in stack.items()]
    return torch.stack(products).double().sum(dim=0)


def centred(stack: Stack) -> Stack:
    """Every client's difference from the mean of all, so that small differences keep their digits."""
    return {name: value - value.mean(dim=0) for name, value in stack.items()}


def squared_distances(stack: Stack) -> Tensor:
    """Squared Euclidean distances of any two clients, float64 ``[clients, clients]``; 0 on the diagonal."""
    differences = centred(stack)
    products = inner_products(differences, differences)
    squares = products.diagonal()
    return (squares[:, None] + squares[None, :] - 2 * products).clamp_min(0).fill_diagonal_(0)


def cosines(stack: Stack) -> Tensor:
    """Cosines between any two clients, float64 ``[clients, clients]``; 1 on the diagonal, 0 beside a zero."""
    products = inner_products(stack, stack)
    lengths = products.diagonal().sqrt().clamp_min(torch.finfo(products.dtype).tiny)
    return (products / lengths[:, None] / lengths[None, :]).fill_diagonal_(1)


def norms(stack: Stack) -> Tensor:
    """The Euclidean norm of every client's parameters, ``[clients]``."""
    parameter_norms = [torch.linalg.vector_norm(value.flatten(1), dim=1) for value in stack.values()]
    result: Tensor = torch.linalg.vector_norm(torch.stack(parameter_norms), dim=0)
    return result


def softmax_over_others(scores: Tensor) -> Tensor:
    """Softmax over every row of ``[..., clients, clients]`` without the client itself, whose share is 0."""
    diagonal = torch.eye(scores.shape[-1], dtype=torch.bool, device=scores.device)
    return scores.masked_fill(diagonal, -torch.inf).softmax(dim=-1)


def project_onto_simplex(z: Tensor) -> Tensor:
    """For every row of ``z`` ``[rows, n]`` the nearest x with x >= 0 and sum x = 1 (Held et al., 1974).

    x = max(z - t, 0), where the threshold t makes the entries above it sum to 1.
    """
    z = z - z.amax(dim=1, keepdim=True)  # this keeps digits, and the projection is the same
    largest = z.sort(dim=1, descending=True).values
    excess = largest.cumsum(dim=1) - 1
    count = torch.arange(1, z.shape[1] + 1, dtype=z.dtype, device=z.device)
    positive = (count * largest > excess).sum(dim=1, keepdim=True)
    t = excess.gather(1, positive - 1) / positive
    return (z - t).clamp_min(0)
