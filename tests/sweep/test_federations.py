"""Federations as workers get them, and where they build them themselves."""

import os
from pathlib import Path
from typing import Any

import pytest
from toy_federations import random_federation, tiny_federation

from bench.federation.build import build
from bench.federation.identity import federation_hash
from bench.federation.types import Federation
from bench.resolve import resolve
from bench.sweep.execution import execute
from bench.sweep.federations import FederationCopy, FederationFile, build_all
from bench.sweep.order import Order, attempt


def content_hash(federation: Federation) -> str:
    """Over ids, roles, labels and edges, of arrays as they are now."""
    features = federation.clients[0].features.toarray().tobytes().hex()
    return federation_hash("toy", "by hand", 2, federation.clients, features)


def test_what_a_worker_reads_is_what_was_built() -> None:
    file = FederationFile()
    built = [random_federation(), tiny_federation()]
    copies = [file.add(federation) for federation in built]
    for federation, copy in zip(built, copies, strict=True):
        assert copy is not None
        assert content_hash(copy.read()) == content_hash(federation)
        assert copy.read().hash == federation.hash


def test_what_has_no_room_is_left_out_and_hurts_nothing_else() -> None:
    file = FederationFile(room=100_000)
    first, large, last = file.add(tiny_federation()), file.add(Large()), file.add(tiny_federation())
    assert large is None
    assert first is not None
    assert last is not None
    assert first.read().hash == last.read().hash == "tiny"


class Large:
    """Begins like a federation that fits."""

    def __init__(self) -> None:
        self.parts = [os.urandom(1000) for _ in range(200)]


def test_the_file_has_no_name_and_ends_with_the_sweep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    file = FederationFile()
    copy = file.add(tiny_federation())
    assert copy is not None
    assert not list(tmp_path.iterdir())
    del file
    with pytest.raises(OSError, match="No such file"):
        copy.read()


def test_a_worker_that_cannot_read_the_file_builds() -> None:
    spec = resolve("cora", "non-overlapping", 3, "majority", 0)
    here = build(*spec.federation_key).hash
    gone = FederationCopy("/proc/0/fd/0", 0)
    order = Order(spec, (), "cpu", 1, clients=here, federation=gone)
    result = attempt(execute, order, None, True)
    assert (result.state, result.partition_hash) == ("done", here), result.reason


def test_every_distinct_federation_is_built_once() -> None:
    keys = []

    def counted(*key: Any, roots: tuple[Path, ...]) -> Federation:
        keys.append(key)
        return tiny_federation()

    specs = [
        resolve("cora", "non-overlapping", clients, "local", seed) for clients in (3, 5) for seed in (0, 1)
    ]
    federations = build_all(specs, (), counted)
    assert keys == [specs[0].federation_key, specs[2].federation_key]
    assert federations.copies == dict.fromkeys(keys), "nobody asked for copies"
