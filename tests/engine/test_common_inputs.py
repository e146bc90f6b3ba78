"""Embeddings of all clients' models on one client's data, against the same data handed to each."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from toy_federations import make_spec, random_federation

from bench.engine.run import Run
from bench.nn.base import ClientModel
from bench.nn.gcn import CommonGraph


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("chosen", [1, 3])
def test_embeddings_on_common_data(dense: bool, chosen: int) -> None:
    federation = random_federation(dense=dense)
    common = federation.clients[chosen]
    it = Run(make_spec("local", federation), federation, block_size=2)
    everywhere = replace(federation, clients=(common,) * len(federation))
    expected = Run(make_spec("local", everywhere), everywhere, block_size=2).clients.embeddings(it.own)
    assert torch.allclose(it.clients.embeddings(it.own, on=common), expected, atol=1e-5)
    own = it.clients.embeddings(it.own)
    assert torch.allclose(own[chosen], expected[chosen], atol=1e-5)
    assert not torch.allclose(own, expected, atol=1e-2)


def test_common_features_are_held_once() -> None:
    client = random_federation().clients[2]
    one, many = (CommonGraph(client, count, torch.device("cpu")) for count in (1, 7))
    assert one.dense is not None
    assert many.dense is not None
    assert many.dense.shape == (7, *one.dense.shape[1:])
    assert many.dense.untyped_storage().nbytes() == one.dense.untyped_storage().nbytes()


def test_one_layout_is_as_good_as_a_copy_for_every_client() -> None:
    federation = random_federation()
    it = Run(make_spec("local", federation), federation)
    client, device = federation.clients[1], torch.device("cpu")
    shared = it.model.collate_common(client, len(federation), device)
    copies = ClientModel.collate_common(it.model, client, len(federation), device)
    for one, other in zip(
        it.model.forward(it.own, shared, None), it.model.forward(it.own, copies, None), strict=True
    ):
        assert torch.allclose(one, other, atol=1e-5)
