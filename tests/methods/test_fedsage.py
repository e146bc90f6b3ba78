"""FedSage and the stand-in for FedSage+: whose features, which edges, what noise."""

from __future__ import annotations

import numpy as np
import pytest
from split_graphs import edges, edges_of, fed, random_split, split_graph

from bench.federation.types import UNUSED, Federation


@pytest.fixture
def triangle() -> Federation:
    """0 - 1 at one client, 2 - 3 - 4 at the other; 1 has neighbours 2 and 3, 0 has 3; 5 is isolated."""
    features = np.diag(np.arange(1, 7))
    return split_graph(features, [(0, 1), (2, 3), (3, 4), (1, 2), (1, 3), (0, 3)], [0, 0, 1, 1, 1, 1])


def test_the_extended_graph_by_hand(triangle: Federation) -> None:
    first, second = fed("fedsage_plus_standin", triangle, noise=0.0)
    assert first.ids.tolist() == [0, 1, 2, 3]
    assert edges_of(first) == edges((0, 1), (1, 2), (1, 3), (0, 3))  # not 23, which touches no own node
    assert second.ids.tolist() == [2, 3, 4, 5, 0, 1]
    assert edges_of(second) == edges((2, 3), (3, 4), (1, 2), (1, 3), (0, 3))
    for client, own in zip((first, second), triangle.clients, strict=True):
        size = len(own.ids)
        np.testing.assert_array_equal(client.features, np.diag(np.arange(1, 7))[client.ids])
        assert client.labels.tolist() == [*own.labels.tolist(), *[-1] * (len(client.ids) - size)]
        assert client.roles.tolist() == [*own.roles.tolist(), *[UNUSED] * (len(client.ids) - size)]


@pytest.mark.parametrize("scale", [0.1, 0.5])
def test_noise_is_on_foreign_features_alone(scale: float) -> None:
    federation, features, _ = random_split(0, nodes=300)
    off = []
    for client, own in zip(
        fed("fedsage_plus_standin", federation, noise=scale), federation.clients, strict=True
    ):
        size = len(own.ids)
        assert isinstance(client.features, np.ndarray)
        assert client.features.dtype == np.float32
        np.testing.assert_array_equal(client.features[:size], features[own.ids])
        off.append(client.features[size:] - features[client.ids[size:]])
    noise = np.concatenate(off)
    # of some 3,000 numbers: three standard errors
    assert abs(noise.mean()) < 3 * scale / np.sqrt(noise.size)
    assert noise.std() == pytest.approx(scale, rel=3 / np.sqrt(2 * noise.size))
    assert abs(np.corrcoef(noise.T) - np.eye(6)).max() < 4 / np.sqrt(len(noise))


def test_a_node_has_other_noise_at_every_client() -> None:
    federation, _, _ = random_split(1)
    straight = fed("fedsage_plus_standin", federation)
    seen: dict[int, list[bytes]] = {}
    for client, own in zip(straight, federation.clients, strict=True):
        for place in range(len(own.ids), len(client.ids)):
            seen.setdefault(int(client.ids[place]), []).append(client.features[place].tobytes())  # type: ignore[union-attr]
    assert max(map(len, seen.values())) > 1
    assert all(len(set(rows)) == len(rows) for rows in seen.values())
