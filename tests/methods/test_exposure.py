from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import astuple, fields
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from toy_hypergraphs import clients_of, federation_of, hypergraph, learnable, partitioned, spec

from bench.data import Hypergraph
from bench.engine.execute import run
from bench.federation.clients import assigned_clients
from bench.federation.dirichlet import LabelDirichlet
from bench.methods._exposure import Exposure, determined, exposure
from bench.reports.fedhgn.measures import EXPOSURE


def rank(rows: list[list[int]]) -> int:
    """Of a matrix of whole numbers, by elimination with fractions."""
    left, count = [[Fraction(value) for value in row] for row in rows], 0
    for column in range(len(rows[0]) if rows else 0):
        pivot = next((row for row in left if row[column]), None)
        if pivot is None:
            continue
        count += 1
        left = [
            [value - row[column] / pivot[column] * other for value, other in zip(row, pivot, strict=True)]
            for row in left
            if row is not pivot
        ]
    return count


def spanned(sums: Sequence[Collection[int]], nodes: int) -> list[int]:
    """Nodes whose unit vector does not raise the rank of the equations."""
    rows = [[list(part).count(node) for node in range(nodes)] for part in sums]
    whole = rank(rows)
    units = ([int(node == unit) for node in range(nodes)] for unit in range(nodes))
    return [unit for unit, row in enumerate(units) if rows and rank([*rows, row]) == whole]


@settings(deadline=None, max_examples=60)
@given(st.lists(st.lists(st.integers(0, 6), min_size=1, max_size=6), max_size=8))
def test_a_node_counts_in_an_equation_as_often_as_it_is_named(sums: list[list[int]]) -> None:
    assert determined([np.array(part) for part in sums]).tolist() == spanned(sums, 7)


def test_exposure_of_repeated_members_by_hand() -> None:
    # A = {0, 1}, B = {2, 3}. A uploads 2a, a + b and 2b: both nodes alone. B uploads c, c + d, c + d.
    edges = [[0, 0, 2], [0, 1, 2, 3], [1, 1, 2, 3]]
    clients = clients_of(hypergraph(np.eye(4), edges), [0, 0, 1, 1])
    # Sums: 2a + c, a + b + c + d, 2b + c + d. The first and the third less twice the second are -d.
    # A learns node 2 from the first, and with it 3 from the second; B learns 0 from the first and 1 from
    # the third.
    assert exposure(clients) == Exposure(
        border=4, alone=3, recoverable=4, recoverable_from_sums=1, peer=3, pairs=3, recoverable_by_peers=4
    )
    # With two nodes at least, a node that is named twice is still one: A sends a + b, B twice c + d.
    assert exposure(clients, least=2) == Exposure(
        border=4, alone=0, recoverable=0, recoverable_from_sums=0, peer=0, pairs=0, recoverable_by_peers=0
    )


@settings(deadline=None, max_examples=40)
@given(partitioned(), st.integers(1, 3))
def test_exposure_counts_as_defined(case: tuple[Hypergraph, list[int]], least: int) -> None:
    data, owner = case
    clients = clients_of(data, owner)
    edges = [set(data.hyperedges[index].tolist()) for index in range(len(data.hyperedges))]
    border = [edge for edge in edges if len({owner[node] for node in edge}) > 1]
    parts = [
        {number: {node for node in edge if owner[node] == number} for number in range(len(clients))}
        for edge in border
    ]
    sent = [{number: own for number, own in part.items() if own and len(own) >= least} for part in parts]
    uploads = [[frozenset(part[n]) for part in sent if n in part] for n in range(len(clients))]
    seen = [
        (number, frozenset().union(*(own for other, own in part.items() if other != number)))
        for part, whole in zip(sent, parts, strict=True)
        for number in range(len(clients))
        if whole[number]
    ]
    single = [nodes for _, nodes in seen if len(nodes) == 1]
    left = [[nodes for number, nodes in seen if number == client] for client in range(len(clients))]
    assert exposure(clients, least) == Exposure(
        border=len(set().union(*border)),
        alone=len({part for own in uploads for part in own if len(part) == 1}),
        recoverable=sum(len(spanned(own, len(owner))) for own in uploads),
        recoverable_from_sums=len(
            spanned([frozenset().union(*part.values()) for part in sent if part], len(owner))
        ),
        peer=len(set(single)),
        pairs=len(single),
        recoverable_by_peers=len({node for sums in left for node in spanned(sums, len(owner))}),
    )


@pytest.mark.parametrize(
    ("count", "border", "alone", "recoverable", "pairs"),
    [(3, 2258, 839, 1090, 688), (6, 2340, 1339, 1691, 739), (9, 2357, 1619, 1950, 779)],
)
def test_coraca_exposes_as_many_nodes_as_another_implementation_found(
    coraca: Hypergraph, count: int, border: int, alone: int, recoverable: int, pairs: int
) -> None:
    clients = assigned_clients(coraca, LabelDirichlet().draw(coraca, count, 0, (10.0, 20.0, 40.0)))
    result = exposure(clients)
    measured = (result.border, result.alone, result.recoverable, result.pairs)
    assert measured == pytest.approx((border, alone, recoverable, pairs), rel=0.06)  # another partition


@pytest.mark.parametrize("least", [1, 2])
def test_an_audited_run_keeps_what_its_own_messages_reveal(least: int) -> None:
    data, clients = learnable()
    hyper = {"audit": True, "least_upload": least}
    result = run(spec("fedhgn_hc", 3, rounds=1, hyper=hyper), federation_of(data, clients))
    assert result.artefacts["exposure"].tolist() == list(astuple(exposure(clients, least)))
    plain = run(spec("fedhgn_hc", 3, rounds=1), federation_of(data, clients))
    assert "exposure" not in plain.artefacts
    assert exposure(clients, 1).alone > exposure(clients, 2).alone == 0


def test_the_report_names_the_numbers_in_the_order_in_which_runs_keep_them() -> None:
    assert tuple(field.name for field in fields(Exposure)) == EXPOSURE
