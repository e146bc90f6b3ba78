"""Two copies of the studies' GCN, and a policy that routes every node through one or the other.

The policy is an MLP on the node's own features, with one exit a gated layer (Flow, Panchal et al.):
three hidden layers for the two convolutions and the head, exit k reading hidden layer k.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from bench.nn.base import Drop
from bench.nn.gcn import GraphInputs

Stack = Mapping[str, Tensor]

LAYERS = ("conv1", "conv2", "head")
"""The gated layers, in order."""

GLOBAL, LOCAL = 0, 1
"""Columns of a gate."""


def initial_policy(features: int, width: int) -> dict[str, Tensor]:
    """torch's default weights of one policy, drawn from the stream that is set around the call."""
    parameters = {}
    for layer in LAYERS:
        sizes = {"hidden": (features if layer == LAYERS[0] else width, width), "exit": (width, 2)}
        for part, (fan_in, fan_out) in sizes.items():
            linear = nn.Linear(fan_in, fan_out)
            parameters[f"policy.{layer}.{part}.weight"] = linear.weight.detach().t().contiguous()
            parameters[f"policy.{layer}.{part}.bias"] = linear.bias.detach()
    return parameters


def soft_gates(policy: Stack, inputs: GraphInputs) -> Tensor:
    """Probabilities of the global and the local copy, ``[clients, nodes, layers, 2]``."""
    products = inputs.first_layer(policy["policy.conv1.hidden.weight"])
    hidden = (
        products.view(len(inputs.lengths), inputs.items, -1) + policy["policy.conv1.hidden.bias"][:, None, :]
    )
    exits: list[Tensor] = []
    for layer in LAYERS:
        if exits:
            hidden = _linear(policy, f"policy.{layer}.hidden", hidden)
        hidden = torch.relu(hidden)
        exits.append(_linear(policy, f"policy.{layer}.exit", hidden))
    return torch.stack(exits, dim=2).softmax(dim=3)


def hard_gates(gates: Tensor) -> Tensor:
    """The likelier copy alone, of the same shape; the global one where both are equally likely."""
    local = (gates[..., LOCAL] > gates[..., GLOBAL]).to(gates.dtype)
    return torch.stack([1 - local, local], dim=-1)


def routed_gcn(
    shared: Stack, personal: Stack, gates: Tensor, inputs: GraphInputs, drop: Drop | None
) -> Tensor:
    """Logits ``[clients, nodes, classes]`` of the mixed model.

    Layer k maps x to ``g[k, 0] shared_k(x) + g[k, 1] personal_k(x)`` with the node's own gates g;
    activation and dropout follow the mixture, so neighbours' messages are of mixed states.
    """
    clients, nodes = len(inputs.lengths), inputs.items

    def propagate(hidden: Tensor) -> Tensor:
        return inputs.propagate(hidden.reshape(clients * nodes, -1)).view(clients, nodes, -1)

    def mixed(layer: int, apply: Callable[[Stack], Tensor]) -> Tensor:
        gate = gates[:, :, layer]
        return gate[..., :1] * apply(shared) + gate[..., 1:] * apply(personal)

    hidden = mixed(
        0,
        lambda copy: propagate(inputs.first_layer(copy["conv1.weight"])) + copy["conv1.bias"][:, None, :],
    )
    hidden = torch.relu(hidden)
    messages = propagate(drop(hidden, 0) if drop else hidden)
    hidden = torch.relu(mixed(1, lambda copy: _linear(copy, "conv2", messages)))
    features = drop(hidden, 1) if drop else hidden
    return mixed(2, lambda copy: _linear(copy, "head", features))


def _linear(stack: Stack, name: str, x: Tensor) -> Tensor:
    return torch.baddbmm(stack[f"{name}.bias"][:, None, :], x, stack[f"{name}.weight"])
