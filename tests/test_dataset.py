"""The data sets as they are declared."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest

from bench.data import Graph
from bench.dataset import DATASETS
from bench.errors import RequestError
from bench.federation.prepared import prepare


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
        assert file.sha256 or file.md5 or (file.archive and file.archive.sha256)


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


def test_data_that_are_not_as_promised_are_refused_with_the_data_set(use_toy: Callable[..., object]) -> None:
    edges = np.zeros((2, 0), np.int64)
    use_toy(Graph(np.full((2, 2), np.inf, np.float32), np.array([0, 1]), edges, 2))
    with pytest.raises(RequestError, match=r"^data set toy: feature 0 of node 0 is inf$"):
        prepare("toy")
