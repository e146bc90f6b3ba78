"""The data sets as they are declared."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse

from bench.data import Data, Graph, Hypergraph, Images, Ragged
from bench.dataset import DATASETS, Dataset
from bench.errors import RequestError
from bench.federation.prepared import _prepare
from bench.sources import Sources
from bench.spec import ClientSettings, Protocol


def test_finding_the_data_sets_loads_no_torch() -> None:
    code = "import sys; from bench.dataset import DATASETS; DATASETS.all(); print('torch' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "False\n"


@pytest.mark.parametrize("name", list(DATASETS.all()))
def test_every_data_set_is_completely_described(name: str) -> None:
    kind = DATASETS.named(name)
    assert kind.title
    assert kind.homepage.startswith("https://")
    assert kind.scenarios
    assert kind.embedded == (not kind.files)
    for file in kind.files:
        assert file.checksum or (file.archive and file.archive.sha256)


# Final FedSheafHN paper, facts 2.1 and 2.2.
@pytest.mark.parametrize(
    ("name", "rounds", "epochs"),
    [
        ("cora", 100, 3),
        ("citeseer", 100, 3),
        ("pubmed", 100, 15),
        ("computers", 100, 10),
        ("photo", 150, 10),
        ("ogbn-arxiv", 150, 10),
    ],
)
def test_protocol_of_the_subgraph_study(name: str, rounds: int, epochs: int) -> None:
    protocol = DATASETS.named(name).protocol
    assert (protocol.rounds, protocol.local_epochs, protocol.split) == (rounds, epochs, (40, 30, 30))


FEATURES = np.ones((3, 2), np.float32)
LABELS = np.array([0, 1, 1])
PIXELS = np.zeros((3, 1, 16, 16), np.uint8)
NO_EDGES = np.zeros((2, 0), np.int64)
NO_HYPEREDGES = Ragged.of([])


def loaded(data: Data, family: str, listed: tuple[str, ...] = ()) -> Data:
    class Own(Dataset):
        name = "own"
        title = "Own"
        scenarios = listed
        protocol = Protocol()
        client = ClientSettings()

        def load(self, sources: Sources) -> Data:
            return data

    Own.family = family  # type: ignore[assignment]
    return _prepare(Own, (), download=False).data


def with_last(values: np.ndarray, last: float) -> np.ndarray:
    changed = values.copy()
    changed[-1] = last
    return changed


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (with_last(LABELS, -1), "expected labels of 0 to 1, got -1 to 1"),
        (with_last(LABELS, 2), "expected labels of 0 to 1, got 0 to 2"),
        (LABELS[:2], "expected a label for every item, got 2 for 3"),
    ],
)
def test_labels_that_are_no_classes_are_refused_in_every_family(labels: np.ndarray, message: str) -> None:
    for data, family in (
        (Graph(FEATURES, labels, NO_EDGES, 2), "graph"),
        (Hypergraph(FEATURES, labels, NO_HYPEREDGES, 2), "hypergraph"),
        (Images(PIXELS, labels, 2), "images"),
    ):
        with pytest.raises(RequestError, match=f"^data set own: {message}"):
            loaded(data, family)


@pytest.mark.parametrize("last", [np.nan, np.inf])
def test_features_that_are_not_finite_are_refused(last: float) -> None:
    features = with_last(FEATURES, last)
    for matrix in (features, sparse.csr_matrix(features)):
        with pytest.raises(RequestError, match="data set own: feature 0 of node 2 is"):
            loaded(Graph(matrix, LABELS, NO_EDGES, 2), "graph")


def test_data_of_another_sort_or_form_are_refused() -> None:
    graph = Graph(FEATURES, LABELS, NO_EDGES, 2)
    assert np.array_equal(loaded(graph, "graph").labels, LABELS)
    with pytest.raises(RequestError, match="data set own: expected Hypergraph, got Graph"):
        loaded(graph, "hypergraph")
    with pytest.raises(RequestError, match="0 to 255 as uint8, got float32"):
        loaded(Images(PIXELS.astype(np.float32), LABELS, 2), "images")


def test_a_scenario_that_there_is_not_or_that_is_for_other_data_is_refused() -> None:
    graph = Graph(FEATURES, LABELS, NO_EDGES, 2)
    assert np.array_equal(loaded(graph, "graph", ("non-overlapping",)).labels, LABELS)
    with pytest.raises(RequestError, match=r"^data set own .* did you mean 'non-overlapping'\?"):
        loaded(graph, "graph", ("nonoverlapping",))
    with pytest.raises(RequestError, match=r"data set own .* is for images data, but own is graph data"):
        loaded(graph, "graph", ("case-study",))
