"""A curriculum over the edges of a block's graphs, and a scale for a client's similarities (CUFL)."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from bench.engine.batch import Stack
from bench.nn.gcn import GraphInputs
from bench.nn.sparse import Propagate

STEPS = 5
"""Steps of Adam in every update of a mask."""

PATIENCE = 5
"""Rounds before the scale changes. Its losses are averaged over as many rounds."""

FACTOR = 1.25
"""The scale is multiplied or divided by this factor."""


class Edges:
    """The edges of a block's graphs, each once, padded to ``[c, width]``.

    A client's edges are ordered by their lower node, then by their higher one.
    """

    def __init__(self, inputs: GraphInputs, width: int) -> None:
        adjacency = inputs.adjacency
        self.inputs, self.clients, self.width = inputs, len(inputs.lengths), width
        self.columns = adjacency.col_indices().long()
        counts = adjacency.crow_indices().diff().long()
        self.rows = torch.arange(len(counts), device=counts.device).repeat_interleave(counts)
        self.between = self.rows != self.columns
        low, high = torch.minimum(self.rows, self.columns), torch.maximum(self.rows, self.columns)
        keys, edge = (low * len(counts) + high)[self.between].unique(return_inverse=True)
        self.low, self.high = keys // len(counts), keys % len(counts)
        client = self.low // inputs.items
        starts = torch.searchsorted(client, torch.arange(self.clients, device=client.device))
        self.slots = client * width + torch.arange(len(keys), device=keys.device) - starts[client]
        self.place = self.slots[edge]

    def padded(self, values: Tensor) -> Tensor:
        """Lay out one value for each edge, ``[edges]`` -> ``[c, width]``; 0 where there is no edge."""
        table = values.new_zeros(self.clients * self.width)
        return table.index_copy(0, self.slots, values).view(self.clients, self.width)

    def of_ends(self, nodes: Tensor) -> Tensor:
        """The product of the values at both ends, ``[c, items]`` -> ``[c, width]``."""
        values = nodes.flatten()
        return self.padded(values[self.low] * values[self.high])

    def difficulty(self, z: Tensor) -> Tensor:
        """(1 - p_e)^2, p_e = (cos(z_u, z_v) + 1) / 2: ``[c, items, d]`` -> ``[c, width]``; 1 for no edge."""
        unit = functional.normalize(z.flatten(0, 1), dim=1)
        p = ((unit[self.low] * unit[self.high]).sum(dim=1) + 1) / 2
        return (1 - self.padded(p)) ** 2

    def weighted(self, weights: Tensor) -> GraphInputs:
        """The same features with edge weights ``[c, width]`` in the graphs: D^-1/2 (W + I) D^-1/2."""
        values = torch.ones_like(self.inputs.adjacency.values())
        values[self.between] = weights.flatten()[self.place].to(values)
        scale = values.new_zeros(len(self.inputs.adjacency)).index_add(0, self.rows, values).rsqrt()
        own = self.inputs.adjacency
        weighted = torch.sparse_csr_tensor(
            own.crow_indices(),
            own.col_indices(),
            values * scale[self.rows] * scale[self.columns],
            size=own.shape,
        )
        return self.inputs.on(lambda hidden: Propagate.apply(hidden, weighted))


def unselected(example: Tensor, width: int) -> dict[str, Tensor]:
    """The first state of every client: the mask s of its edges, Adam's moments, and counts of selections."""
    clients = len(example)
    edges = {name: example.new_zeros(clients, width) for name in ("s", "first", "second", "selected")}
    return {**edges, "taken": example.new_zeros(clients), "selections": example.new_zeros(clients)}


def grown(state: Stack, difficulty: Tensor, pace: float, rate: float) -> dict[str, Tensor]:
    """The mask after ``STEPS`` steps of Adam on sum_e s_e (d_e - pace), clamped to [0, 1].

    The mask s grows for edges that are easier than the pace, and shrinks for others. ``difficulty`` is d
    ``[clients, width]``.
    """
    s, mean, square, count = (state[name] for name in ("s", "first", "second", "taken"))
    gradient = difficulty - pace
    for _ in range(STEPS):
        count = count + 1
        mean, square = 0.9 * mean + 0.1 * gradient, 0.999 * square + 0.001 * gradient**2
        mean_scale, square_scale = ((1 - beta**count)[:, None] for beta in (0.9, 0.999))
        s = (s - rate * (mean / mean_scale) / ((square / square_scale).sqrt() + 1e-8)).clamp(0, 1)
    return {**state, "s": s, "first": mean, "second": square, "taken": count}


def selected(state: Stack, threshold: float) -> dict[str, Tensor]:
    """Count one more selection of the edges whose s is above the threshold."""
    edges = state["selected"] + (state["s"] > threshold)
    return {**state, "selected": edges, "selections": state["selections"] + 1}


def shares(state: Stack, threshold: float) -> Tensor:
    """The share of past selections that include an edge, ``[clients, width]``; 1 before the first selection.

    The share is 0 for edges with s not above the threshold.
    """
    selections = state["selections"][:, None]
    share = torch.where(selections > 0, state["selected"] / selections.clamp_min(1), 1.0)
    return share * (state["s"] > threshold)


def pace(round: int, rounds: int) -> float:
    """lambda: edges of lower difficulty come in. After two thirds of the rounds lambda is 1."""
    end = 2 * rounds // 3
    return 1 / (end + 1 - round) if round < end else 1.0


def unscaled(example: Tensor, start: float) -> dict[str, Tensor]:
    """The scale of every client's similarities before its first loss."""
    zeros = example.new_zeros(len(example))
    return {
        "value": zeros + start,
        "direction": zeros + 1,
        "better": zeros,
        "worse": zeros,
        "best": zeros,
        "seen": zeros,
        "losses": example.new_zeros(len(example), PATIENCE),
    }


def scaled(state: Stack, loss: Tensor, least: float, greatest: float) -> dict[str, Tensor]:
    """The scale after one more loss ``[clients]``.

    If the mean of the last losses was a new best in ``PATIENCE`` rounds in a row, the scale changes in the
    same direction. If it was no new best in ``PATIENCE`` rounds in a row, the direction turns.
    """
    count = state["seen"] + 1
    losses = torch.cat([state["losses"][:, 1:], loss[:, None]], dim=1)
    mean = losses.sum(dim=1) / count.clamp_max(PATIENCE)
    is_better = (mean < state["best"]) | (count == 1)
    better_count = torch.where(is_better, state["better"] + 1, 0.0)
    worse_count = torch.where(is_better, 0.0, state["worse"] + 1)
    goes_on, goes_back = better_count >= PATIENCE, worse_count >= PATIENCE
    direction = torch.where(goes_back, -state["direction"], state["direction"])
    value = torch.where(goes_on | goes_back, state["value"] * FACTOR**direction, state["value"])
    return {
        "value": value.clamp(least, greatest),
        "direction": direction,
        "better": better_count.masked_fill(goes_on, 0.0),
        "worse": worse_count.masked_fill(goes_back, 0.0),
        "best": torch.where(is_better, mean, state["best"]),
        "seen": count,
        "losses": losses,
    }
