"""Randomness outside the clients: dropout of a server's networks and their initial weights."""

from __future__ import annotations

import numpy as np
import torch

from bench.nn.randomness import dropout, seeded


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
