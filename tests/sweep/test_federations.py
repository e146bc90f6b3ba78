"""Federations as workers get them, and where they build them themselves."""

from pathlib import Path
from typing import Any

import pytest
from toy_federations import random_federation, tiny_federation

from bench.federation.build import build
from bench.federation.identity import federation_hash
from bench.federation.types import Federation
from bench.resolve import resolve
from bench.sweep.execution import execute
from bench.sweep.federations import build_all, read
from bench.sweep.order import Order, attempt


def content_hash(federation: Federation) -> str:
    """Over ids, roles, labels and edges, of arrays as they are now."""
    features = federation.clients[0].features.toarray().tobytes().hex()
    return federation_hash("toy", "by hand", 2, federation.clients, features)


@pytest.mark.parametrize("built", [random_federation(), tiny_federation()])
def test_what_a_worker_reads_is_what_was_built(built: Federation, tmp_path: Path) -> None:
    spec = resolve("cora", "non-overlapping", 3, "local", 0)
    federations, _ = build_all([spec], (), lambda *_, **__: built, tmp_path)
    shared = federations[spec.federation_key]
    assert shared.file is not None
    assert content_hash(read(shared.file)) == content_hash(built)
    assert read(shared.file).hash == built.hash == shared.hash


def test_a_worker_that_cannot_read_the_file_builds(tmp_path: Path) -> None:
    spec = resolve("cora", "non-overlapping", 3, "majority", 0)
    here = build(*spec.federation_key).hash
    order = Order(spec, (), "cpu", 1, federation_hash=here, federation=tmp_path / "gone")
    result = attempt(execute, order)
    assert (result.state, result.partition_hash) == ("done", here), result.reason


def test_every_distinct_federation_is_built_once() -> None:
    keys = []

    def counted(*key: Any, roots: tuple[Path, ...]) -> Federation:
        keys.append(key)
        return tiny_federation()

    specs = [
        resolve("cora", "non-overlapping", clients, "local", seed) for clients in (3, 5) for seed in (0, 1)
    ]
    federations, missing_data = build_all(specs, (), counted)
    assert keys == list(federations) == [specs[0].federation_key, specs[2].federation_key]
    assert {shared.file for shared in federations.values()} == {None}, "nobody asked for files"
    assert missing_data == {}
