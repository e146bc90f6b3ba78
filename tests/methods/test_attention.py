"""Attention between clients, by hand."""

from __future__ import annotations

import math

import torch

from bench.methods._collaboration import ClientAttention, FreeMatrix
from bench.nn.randomness import seeded


def test_attention_is_equation_10_with_scaling_and_residual() -> None:
    with seeded(0):
        attention = ClientAttention(4, residual=True)
        plain = ClientAttention(4, residual=False)
        x = torch.randn(3, 4)
        for parameter in attention.parameters():
            parameter.data = torch.randn(4, 4)
    plain.load_state_dict(attention.state_dict())
    q, k, v = (x @ matrix for matrix in (attention.query, attention.key, attention.value))
    expected = torch.zeros(3, 4)
    for i in range(3):
        weights = [math.exp(float(q[i] @ k[j]) / 2) for j in range(3)]  # sqrt(4) = 2
        for j in range(3):
            expected[i] += weights[j] / sum(weights) * v[j].detach()
    assert torch.allclose(plain(x), expected, atol=1e-5)
    assert torch.allclose(attention(x), x + expected, atol=1e-5)


def test_attention_starts_near_a_plain_mean_beside_the_client_itself() -> None:
    with seeded(0):
        attention = ClientAttention(16, residual=True)
        x = torch.randn(5, 16)
    assert torch.allclose(attention(x), x + x.mean(dim=0), atol=0.1)


def test_the_free_matrix_starts_as_the_identity() -> None:
    free, x, noise = FreeMatrix(4), torch.randn(4, 6), torch.randn(4, 4)
    assert torch.equal(free(x), x)
    free.matrix.data += noise
    assert torch.allclose(free(x), (torch.eye(4) + noise) @ x)


def test_printed_attention_is_the_plain_softmax() -> None:
    x = torch.randn(5, 16)
    attention = ClientAttention(16, residual=False, scaled=False)
    scores = (x @ attention.query) @ (x @ attention.key).t()
    assert torch.allclose(attention(x), torch.softmax(scores, dim=1) @ x @ attention.value, atol=1e-6)
    assert not torch.allclose(attention(x), ClientAttention(16, residual=False)(x))
