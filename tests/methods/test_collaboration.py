"""GCN and GAT on the collaboration graph against a computation node by node, and FedSheafHN's ablation."""

from __future__ import annotations

import math

import pytest
import torch
from toy_federations import make_spec

from bench.engine.execute import run
from bench.engine.run import Run
from bench.federation.types import Federation
from bench.methods._collaboration import GraphAttention, GraphConvolution, ResidualGraphNetwork

PATH = torch.tensor([[0.0, 1, 0], [1, 0, 1], [0, 1, 0]])


def test_convolution_weighs_neighbours_by_degrees() -> None:
    """A path of three nodes: degrees with loops 2, 3, 2."""
    layer = GraphConvolution(2)
    x = torch.randn(3, 2)
    degrees = [2, 3, 2]
    rows = []
    for u, near in enumerate(([0, 1], [0, 1, 2], [1, 2])):
        mixed = sum(x[v] / math.sqrt(degrees[u] * degrees[v]) for v in near)
        rows.append(layer.linear.weight @ mixed + layer.linear.bias)
    assert torch.allclose(layer(x, PATH), torch.stack(rows), atol=1e-6)


def test_attention_is_a_softmax_over_neighbours_and_oneself() -> None:
    layer = GraphAttention(2)
    x = torch.randn(3, 2)
    h = [layer.linear.weight @ x[v] + layer.linear.bias for v in range(3)]
    rows = []
    for u, near in enumerate(([0, 1], [0, 1, 2], [1, 2])):
        scores = []
        for v in near:
            raw = (layer.mine.weight[0] @ h[u] + layer.other.weight[0] @ h[v]).item()
            scores.append(math.exp(raw if raw > 0 else 0.2 * raw))
        rows.append(sum(s / sum(scores) * h[v] for s, v in zip(scores, near, strict=True)))
    assert torch.allclose(layer(x, PATH), torch.stack(rows), atol=1e-6)


@pytest.mark.parametrize("layer", [GraphConvolution, GraphAttention])
def test_networks_know_no_client_numbers(
    layer: type[GraphConvolution] | type[GraphAttention],
) -> None:
    network = ResidualGraphNetwork(layer, 5, 4, 0.3)
    x, order = torch.randn(3, 5), torch.tensor([2, 0, 1])
    straight = network(x, PATH, None)
    other = network(x[order], PATH[order][:, order], None)
    assert torch.allclose(straight[order], other, atol=1e-6)


@pytest.mark.parametrize(
    "hyper",
    [
        {"inputs": "one-hot", "collaboration": "none", "attention": "none"},
        {"collaboration": "none", "attention": "none", "refresh": 0},
        {"attention": "none", "refresh": 0},
        {"refresh": 0},
        {"collaboration": "gcn"},
        {"collaboration": "gat"},
        {"collaboration": "none"},
    ],
)
def test_every_row_of_the_ablation_learns(federation: Federation, hyper: dict[str, object]) -> None:
    spec = make_spec("fedsheafhn", federation, client={"hidden": 8}, rounds=4, hyper=hyper)
    it = Run(spec, federation)
    it.warm_up()
    before = [parameter.clone() for parameter in (*it.method.theta, *it.method.phi)]
    first = it.method.x0.clone()
    for round in range(4):
        it.step(round)
    learnt = [*it.method.theta, *it.method.phi]
    assert all(not torch.equal(a, b) for a, b in zip(before, learnt, strict=True) if b.grad is not None)
    assert any(parameter.grad is not None for parameter in it.method.phi)
    assert torch.equal(first, it.method.x0)  # refresh is 5 or never
    assert run(spec, federation).state == "done"


def test_one_hot_inputs_carry_a_number_and_nothing_of_the_data(federation: Federation) -> None:
    spec = make_spec(
        "fedsheafhn",
        federation,
        client={"hidden": 8},
        rounds=7,
        hyper={"inputs": "one-hot", "collaboration": "none", "attention": "none"},
    )
    it = Run(spec, federation)
    it.warm_up()
    for round in range(7):
        it.step(round)
    assert torch.equal(it.method.x0, torch.eye(len(federation)))
