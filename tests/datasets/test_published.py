"""The clients that papers published, as the package ships them."""

from __future__ import annotations

from ctypes import CDLL, byref, c_int, c_void_p
from ctypes.util import find_library
from pathlib import Path

import numpy as np
import pytest

from bench.data import Graph
from bench.federation.build import build
from bench.federation.prepared import prepare

FEDPUB = (20.0, 40.0, 40.0)
FEDSHEAFHN = (40.0, 30.0, 30.0)


@pytest.mark.parametrize("name", ["cora", "citeseer", "pubmed", "computers", "photo"])
def test_clients_are_those_of_the_file_that_they_came_from(name: str, data_root: Path) -> None:
    roots = (data_root,)
    path = data_root / "partitions" / "published.npz"
    if not path.exists():
        pytest.skip("the data root has no published partitions")
    with np.load(path) as file:
        arrays = {key.removeprefix(f"{name}."): file[key] for key in file if key.startswith(f"{name}.")}
    for scenario, clients, split, nodes, roles in [
        ("published", 5, FEDPUB, "", "fedpub_role_inorder.5"),
        ("published", 10, FEDPUB, "", "fedpub_role_inorder.10"),
        ("published", 20, FEDPUB, "", "fedpub_role_alone"),
        *[("published-fresh", number, FEDPUB, "", f"fedpub_role_fresh.{number}") for number in (5, 10, 20)],
        *[("published", number, FEDSHEAFHN, "", f"fedsheafhn_role.{number}") for number in (10, 20)],
        *[
            ("published-overlapping", number, FEDPUB, f"fedpub_overlapping.{number}", "role_inorder")
            for number in (10, 30, 50)
        ],
        *[
            ("published-overlapping", number, FEDSHEAFHN, f"fedsheafhn_overlapping.{number}", "role")
            for number in (30, 50)
        ],
    ]:
        federation = build(name, scenario, clients, 123, split, roots)
        if nodes:
            starts = np.cumsum(arrays[f"{nodes}.sizes"])[:-1]
            expected_ids = np.split(arrays[f"{nodes}.nodes"], starts)
            expected_roles = arrays[f"{nodes}.{roles}"]
        else:
            expected_ids = [np.flatnonzero(arrays[f"part.{clients}"] == part) for part in range(clients)]
            expected_roles = arrays[roles]
        for client, ids in zip(federation.clients, expected_ids, strict=True):
            assert client.ids.tolist() == ids.tolist()
            assert client.roles.tolist() == expected_roles[ids].tolist()


def test_metis_5_1_makes_the_parts_again() -> None:
    path = find_library("metis")
    if path is None or not path.endswith(".so.5"):
        pytest.skip("no libmetis 5 (Debian: libmetis5) on this machine")
    metis = CDLL(path)
    for name in ("cora", "citeseer"):
        graph = prepare(name, ()).data
        assert isinstance(graph, Graph)
        nodes = len(graph.labels)
        starts = np.searchsorted(graph.edges[0], np.arange(nodes + 1)).astype(np.int32)
        neighbours = graph.edges[1].astype(np.int32)
        for clients in (5, 10, 20):
            parts, cut = np.zeros(nodes, np.int32), c_int()
            numbers = [byref(c_int(number)) for number in (nodes, 1, clients)]
            pointers = [array.ctypes.data_as(c_void_p) for array in (starts, neighbours, parts)]
            metis.METIS_PartGraphKway(
                *numbers[:2],
                *pointers[:2],
                None,
                None,
                None,
                numbers[2],
                *[None] * 3,
                byref(cut),
                pointers[2],
            )
            published = graph.published["published", clients, FEDPUB]
            assert [np.flatnonzero(parts == part).tolist() for part in range(clients)] == [
                ids.tolist() for ids in published.ids
            ]
