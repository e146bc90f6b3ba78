from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from torch.nn import functional
from toy_hypergraphs import (
    centralised,
    clients_of,
    federation_of,
    learnable,
    partitioned,
    rows_of,
    spec,
)

from bench.data import Hypergraph
from bench.engine.run import Run
from bench.federation.types import TRAIN, Client


def plain_training(
    rows: list[np.ndarray],
    clients: tuple[Client, ...],
    weights: list[torch.Tensor],
    shares: list[float] | None,
    rounds: int,
) -> list[list[torch.Tensor]]:
    """The released algorithm without dropout: one torch.optim.Adam a client, kept over rounds.

    Returns every client's two matrices after its last local step.
    """
    models = [[weight.clone().requires_grad_() for weight in weights] for _ in clients]
    optimisers = [torch.optim.Adam(model, lr=0.01, weight_decay=5e-4) for model in models]
    for round in range(rounds):
        for z, client, model, optimiser in zip(rows, clients, models, optimisers, strict=True):
            chosen = np.flatnonzero(client.roles == TRAIN)
            inputs, targets = torch.from_numpy(z[chosen]).float(), torch.from_numpy(client.labels[chosen])
            for _ in range(3):
                optimiser.zero_grad()
                functional.cross_entropy(torch.relu(inputs @ model[0] @ model[1]), targets).backward()
                optimiser.step()
        if shares is not None and round < rounds - 1:
            with torch.no_grad():
                for place in range(2):
                    mean = sum(share * model[place] for share, model in zip(shares, models, strict=True))
                    for model in models:
                        model[place].copy_(mean)
    return models


@pytest.mark.parametrize(
    ("method", "weights"), [("local_hgnn_hc", None), ("fedhgn_hc", "samples"), ("fedhgn_hc", "uniform")]
)
def test_training_is_the_released_loop_on_completed_features(method: str, weights: str | None) -> None:
    data, clients = learnable()
    hyper = {} if weights is None else {"weights": weights}
    settings = spec(method, 3, rounds=4, hyper=hyper, model="hgnn_relu", dropout=0.0)
    it = Run(settings, federation_of(data, clients))
    start = [it.own[name][0].clone() for name in ("theta1", "theta2")]
    for round in range(4):
        it.step(round)

    sizes = [client.count(TRAIN) for client in clients]
    assert len(set(sizes)) == 3
    shares = {None: None, "samples": [size / sum(sizes) for size in sizes], "uniform": [1 / 3] * 3}[weights]
    z = centralised(data)
    models = plain_training([z[client.ids] for client in clients], clients, start, shares, 4)
    for index, model in enumerate(models):
        for name, value in zip(("theta1", "theta2"), model, strict=True):
            torch.testing.assert_close(it.own[name][index], value.detach(), rtol=1e-4, atol=1e-5)


def test_one_local_client_is_the_global_model() -> None:
    data, parts = learnable()
    roles = np.zeros(len(data.labels), np.int8)
    for client in parts:
        roles[client.ids] = client.roles
    federation = federation_of(data, clients_of(data, np.zeros(len(roles), np.int64), roles))
    runs = [Run(spec(method, 1), federation) for method in ("local_hgnn", "global_hgnn")]
    for round in range(3):
        for it in runs:
            it.step(round)
    for name, value in runs[0].own.items():
        torch.testing.assert_close(value, runs[1].own[name])
    assert runs[1].traffic.bytes_up == runs[1].traffic.bytes_down == 0


@settings(deadline=None, max_examples=60)
@given(case=partitioned())
def test_trimming_with_true_sizes_and_degrees_is_a_block_of_the_whole(
    case: tuple[Hypergraph, list[int]],
) -> None:
    data, owner = case
    federation = federation_of(data, clients_of(data, owner))
    whole = centralised(replace(data, features=np.eye(len(owner))), layers=1)
    for client, rows in zip(
        federation.clients, rows_of("local_hgnn", federation, trimming="trimG"), strict=True
    ):
        block = whole[np.ix_(client.ids, client.ids)]
        np.testing.assert_allclose(rows, block @ block @ data.features[client.ids], atol=1e-6)


@pytest.mark.parametrize(("count", "share"), [(3, 0.248), (6, 0.375), (9, 0.465)])
def test_released_trimming_empties_many_coraca_nodes(coraca: Hypergraph, count: int, share: float) -> None:
    owner = np.random.default_rng(0).permutation(np.arange(len(coraca.labels)) % count)
    rows = rows_of("local_hgnn", federation_of(coraca, clients_of(coraca, owner)))
    empty = sum(int((~part.any(axis=1)).sum()) for part in rows)
    assert empty / len(owner) == pytest.approx(share, abs=0.02)  # a mean over ten partitions by others
