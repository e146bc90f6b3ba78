from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from toy_hypergraphs import (
    Recorder,
    clients_of,
    federation_of,
    hypergraph,
    rows_of,
)

from bench.data import Hypergraph
from bench.engine.methods import METHODS
from bench.errors import NotApplicableError
from bench.federation.clients import assigned_clients
from bench.federation.dirichlet import LabelDirichlet
from bench.federation.scenario import Assignment
from bench.federation.traffic import TrafficMeter
from bench.federation.types import Client
from bench.methods._completion import Propagation, complete


def partition(data: Hypergraph, count: int) -> tuple[Client, ...]:
    return assigned_clients(data, LabelDirichlet().draw(data, count, 0, (10.0, 20.0, 40.0)))


def test_features_are_replaced_and_nothing_else(coraca: Hypergraph) -> None:

    federation = federation_of(coraca, partition(coraca, 3))
    kind = METHODS.named("fedhgn_hc")
    method = object.__new__(kind)
    method.hyper = kind.Hyper()
    changed = method.prepare_data(federation, TrafficMeter())
    for before, after in zip(federation.clients, changed.clients, strict=True):
        assert isinstance(after.features, np.ndarray)
        assert after.features.dtype == np.float32
        assert replace(after, features=before.features).__dict__ == before.__dict__


def test_parts_below_the_least_upload_stay_at_their_client() -> None:
    # Hyperedge {0, 1, 2, 2}: A has 0 and 1, B has 2 alone, though twice. {3, 4, 5}: B has 3, C has 4 and 5.
    # {2, 6}: B, C.
    data = hypergraph([[1], [2], [4], [8], [16], [32], [64]], [[0, 1, 2, 2], [3, 4, 5], [2, 6]])
    clients, traffic = clients_of(data, [0, 0, 1, 1, 2, 2, 2]), Recorder()
    known = [client.hyperedges for client in clients if client.hyperedges is not None]
    rows = [client.dense() for client in clients]
    operators = [Propagation.of(own.members, len(x), own.sizes) for own, x in zip(known, rows, strict=True)]
    result = complete(known, operators, rows, traffic, 0, least_upload=2)
    assert [(ids.tolist(), sums.ravel().tolist()) for ids, sums in traffic.uploads] == [
        ([0], [3.0]),
        ([], []),
        ([1], [48.0]),
    ]
    assert [ids.tolist() for ids, _ in traffic.downloads] == [[0], [0, 1], [1]]
    # Node 2 has degree 3. A's sum lacks node 2; B adds its own part; {2, 6} is completed by nobody.
    two = 4 / np.sqrt(3)
    expected = [3 / 4, 3 / 4, (2 * (3 + 2 * two) / 4 + two / 2) / np.sqrt(3), 56 / 3, 16, 16, 32]
    assert np.concatenate(result).ravel() == pytest.approx(expected)


def test_exchanges_are_counted_by_layer_and_coding() -> None:
    traffic = TrafficMeter()
    matrix = np.array([[0, 0, 0, 5], [0, 0, 0, 0], [0, 0, 0, 0]], np.float32)
    traffic.upload(np.array([7, 8, 9]), matrix, exchange=0)
    traffic.download(np.array([7, 8, 9]), np.ones((3, 4), np.float32), exchange=1)
    traffic.upload(np.ones(2, np.float32))
    # Non-zeros: a count for each of 3 rows and a place with the value 5; a full matrix is sent whole.
    assert traffic.exchanges().tolist() == [[[24 + 48, 0], [24 + 12 + 8, 0]], [[0, 24 + 48], [0, 24 + 48]]]
    assert (traffic.bytes_up, traffic.bytes_down) == (72 + 8, 72)


@pytest.mark.parametrize(
    ("method", "held", "hyper", "words"),
    [
        ("fedhgn", [[0, 1], [1, 2, 3]], {}, "share no node"),
        ("fedhgn_hc", [[0, 1], [1, 2, 3]], {}, "share no node"),
        ("fedhgn_hc", [[0, 1], [2]], {}, "hyperedge 1 has nodes that no"),
        (
            "fedhgn_hc",
            [[0, 1], [2]],
            {"completion": "released"},
            "hyperedge 1 has nodes that no",
        ),
        ("fedhgn_hc", [[0, 1], [2, 3]], {"completion": "released", "least_upload": 2}, "raw features"),
    ],
)
def test_clients_that_a_method_cannot_serve_are_not_applicable(
    method: str, held: list[list[int]], hyper: dict[str, Any], words: str
) -> None:
    data = hypergraph(np.eye(4), [{0, 1}, {1, 2, 3}])
    parts = tuple(np.array(nodes) for nodes in held)
    assignment = Assignment(parts, tuple(np.zeros(len(part), np.int8) for part in parts))
    federation = federation_of(data, assigned_clients(data, assignment))
    with pytest.raises(NotApplicableError, match=words):
        rows_of(method, federation, **hyper)
    if method == "fedhgn_hc" and words != "share no node":
        rows_of("fedhgn", federation)  # which needs a client's own nodes alone
