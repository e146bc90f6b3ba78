from __future__ import annotations

import os
import tarfile
from pathlib import Path

import pytest

from bench.data import Hypergraph
from bench.federation.prepared import prepare

RAW = [f"hypergraph/coraca/{name}.pickle" for name in ("features", "hypergraph", "labels")]


@pytest.fixture(scope="session")
def coraca(tmp_path_factory: pytest.TempPathFactory) -> Hypergraph:
    """The real CoraCA, where its raw files are at hand."""
    root = Path(os.environ.get("BENCH_DATA") or "none")
    if not all((root / name).exists() for name in RAW):
        pack = Path(__file__).parents[3] / "shared" / "data" / "hypergraph-raw.tar.xz"
        if not pack.exists():
            pytest.skip("BENCH_DATA does not name a folder with the raw files of coraca")
        root = tmp_path_factory.mktemp("coraca")
        with tarfile.open(pack) as archive:
            for name in RAW:  # Python 3.11.2 knows no filter for what it extracts
                content = archive.extractfile(name)
                assert content is not None
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_bytes(content.read())
    data = prepare("coraca", (root,), download=False).data
    assert isinstance(data, Hypergraph)
    return data
