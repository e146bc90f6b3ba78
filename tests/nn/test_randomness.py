"""Dropout masks of clients; dropout and initial weights of a server's networks."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from bench import streams
from bench.nn.randomness import DropoutMasks, dropout, seeded

CPU = torch.device("cpu")


def masks_of(
    clients: list[int], lengths: list[int], items: int, *, rate: float = 0.5, epochs: int = 2, seed: int = 0
) -> list[list[Tensor]]:
    """Mask by epoch and site of a block, ``[clients, items, width]``, widths 6 and 10."""
    generators = [streams.generator(seed, "dropout", client, 0, 0) for client in clients]
    masks = DropoutMasks(generators, lengths, (6, 10), epochs, rate, items, CPU)
    drawn = []
    for epoch in range(epochs):
        masks.begin_epoch(epoch)
        drawn.append(
            [masks(torch.ones(len(clients), items, width), site) for site, width in enumerate((6, 10))]
        )
    return drawn


@pytest.mark.parametrize("rate", [0.1, 0.3, 0.5, 0.6, 0.9])
def test_rate_and_scale(rate: float) -> None:
    """Bytes under round(256 p) are dropped; what stays is scaled so that the mean is kept."""
    (sites,) = masks_of([0], [20_000], 20_000, rate=rate, epochs=1)
    effective = round(256 * rate) / 256
    assert abs(effective - rate) <= 1 / 512
    for mask in sites:
        kept = mask > 0
        assert torch.allclose(mask[kept], torch.tensor(1 / (1 - effective)))
        deviation = np.sqrt(effective * (1 - effective) / mask.numel())
        assert abs(float(kept.float().mean()) - (1 - effective)) < 5 * deviation
        assert abs(float(mask.mean()) - 1) < 5 * deviation / (1 - effective)


@settings(max_examples=40)
@given(st.lists(st.integers(1, 9), min_size=1, max_size=5), st.integers(0, 4))
def test_neither_block_nor_padding_changes_a_clients_mask(lengths: list[int], more_padding: int) -> None:
    clients = list(range(len(lengths)))
    together = masks_of(clients, lengths, max(lengths) + more_padding)
    for client, length in zip(clients, lengths, strict=True):
        alone = masks_of([client], [length], length)
        for epoch in range(2):
            for site in range(2):
                assert torch.equal(together[epoch][site][client, :length], alone[epoch][site][0])
                assert (together[epoch][site][client, length:] == 0).all()


def test_masks_differ_between_epochs_sites_clients_and_seeds() -> None:
    seen = {
        tuple(site[client, :, :6].flatten().tolist())
        for seed in range(2)
        for epoch in masks_of([0, 1], [50, 50], 50, epochs=3, seed=seed)
        for site in epoch
        for client in range(2)
    }
    assert len(seen) == 3 * 2 * 2 * 2


def test_server_dropout_is_named_and_inverted() -> None:
    x = torch.ones(400, 100)
    assert torch.equal(dropout(x, 0.3, None), x)
    assert torch.equal(dropout(x, 0.0, torch.Generator().manual_seed(1)), x)
    one = dropout(x, 0.3, torch.Generator().manual_seed(1))
    assert torch.equal(one, dropout(x, 0.3, torch.Generator().manual_seed(1)))
    assert not torch.equal(one, dropout(x, 0.3, torch.Generator().manual_seed(2)))
    assert torch.allclose(one[one > 0], torch.tensor(1 / 0.7))
    assert abs(float((one == 0).float().mean()) - 0.3) < 5 * np.sqrt(0.21 / x.numel())


def test_seeded_networks_leave_the_global_stream_alone() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    with seeded(1):
        one = torch.nn.Linear(2, 2).weight
    with seeded(1):
        again = torch.nn.Linear(2, 2).weight
    assert torch.equal(one, again)
    assert torch.equal(torch.rand(3), expected)
