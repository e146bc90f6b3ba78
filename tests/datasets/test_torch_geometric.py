"""``pyg:NAME``: data sets of torch-geometric, and graphs of one's own by ``Dataset.from_pyg``."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from bench.data import Graph
from bench.dataset import DATASETS
from bench.errors import NoDataError, RequestError
from bench.federation.build import build
from bench.federation.prepared import Prepared, prepare

SPLIT = (40.0, 30.0, 30.0)


def prepared(name: str, root: Path) -> Prepared:
    return prepare(name, (root,), download=False)


def test_a_data_set_without_files_is_shared_out_as_any_other(home: Path) -> None:
    """Zachary's karate club: 34 members, 78 friendships, 4 communities."""
    data = prepared("pyg:KarateClub", home).data
    assert isinstance(data, Graph)
    assert (len(data.labels), data.edges.shape[1], data.classes) == (34, 2 * 78, 4)
    federation = build("pyg:KarateClub", "non-overlapping", 3, 0, SPLIT, ())
    assert sorted(node for client in federation.clients for node in client.ids.tolist()) == list(range(34))
    with pytest.raises(RequestError, match="34 nodes"):
        build("pyg:KarateClub", "non-overlapping", 40, 0, SPLIT, ())


@pytest.mark.parametrize("folder", ["Minesweeper", "Tolokers"])
def test_files_at_hand_are_read_by_torch_geometrics_own_class(
    home: Path, data_root: Path, tmp_path: Path, folder: str
) -> None:
    from torch_geometric.datasets import HeterophilousGraphDataset

    raw = data_root / "heterophilous" / f"{folder.lower()}.npz"
    if not raw.is_file():
        pytest.skip(f"BENCH_DATA names no folder with {raw.name}")
    for root in (tmp_path / "pyg" / "HeterophilousGraphDataset", tmp_path / "alone"):
        (root / folder.lower() / "raw").mkdir(parents=True)
        shutil.copy(raw, root / folder.lower() / "raw")
    data = prepared(f"pyg:HeterophilousGraphDataset/{folder}", tmp_path).data
    assert isinstance(data, Graph)
    theirs = HeterophilousGraphDataset(str(tmp_path / "alone"), folder)[0]
    assert np.array_equal(data.features, theirs.x.numpy())  # connected: no node is left out
    assert np.array_equal(data.labels, theirs.y.numpy())
    order = np.lexsort(theirs.edge_index.numpy()[::-1])
    assert np.array_equal(data.edges, theirs.edge_index.numpy()[:, order])


@pytest.mark.parametrize(
    ("name", "error", "words"),
    [
        ("pyg:KarateCub", RequestError, "KarateClub"),
        ("pyg:Coauthor", RequestError, "pyg:Coauthor/NAME"),
        ("pyg:KarateClub/x", RequestError, "pyg:KarateClub"),
        ("pyg:WikiCS", NoDataError, "downloads are switched off"),
        ("pyg:Coauthor/Physik", NoDataError, "Coauthor/Physik"),
        ("pyg:GEDDataset", RequestError, "pyg:GEDDataset/NAME"),
        ("pyg:FakeHeteroDataset", RequestError, "kinds of nodes"),
    ],
)
def test_what_is_no_such_data_set_is_refused(
    home: Path, name: str, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        prepared(name, home)


OWN = """
import torch
from torch_geometric.data import Data

from bench.dataset import Dataset

ring = torch.arange(60)
Mine = Dataset.from_pyg(
    Data(x=torch.eye(60), y=ring % 3 + 4, edge_index=torch.stack([ring, (ring + 1) % 60])), name="mine"
)
"""


def test_a_graph_of_ones_own_is_found_in_a_plug_in(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plugins: None
) -> None:
    (tmp_path / "mine.py").write_text(OWN)
    monkeypatch.setenv("BENCH_PLUGINS", str(tmp_path / "mine.py"))
    from bench import registry

    registry.forget()
    assert DATASETS.named("mine").__module__.startswith("bench_plugin_mine")
    federation = build("mine", "non-overlapping", 4, 0, SPLIT, ())
    assert (len(federation), federation.classes) == (4, 3)
    assert sum(len(client.ids) for client in federation.clients) == 60
