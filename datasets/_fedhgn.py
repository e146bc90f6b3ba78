"""What the data sets of the FedHGN study (arXiv 2408.05160) have in common."""

from __future__ import annotations

from abc import ABC, abstractmethod

from bench.dataset import Dataset
from bench.sources import Sources
from bench.spec import ClientSettings, Protocol


def fedhgn_protocol(train: float) -> Protocol:
    """The study's protocol, with ``train`` percent of every client's nodes to train on (facts 1.4, 6)."""
    return Protocol(rounds=200, local_epochs=3, split=(train, 20, 40), initial="common", evaluate="epoch")


class CleanedHypergraph(Dataset, ABC):
    """A data set whose raw files list hyperedges, which are cleaned on loading (facts 1.1)."""

    family = "hypergraph"
    scenarios = ("label-dirichlet",)
    client = ClientSettings(model="hgnn", hidden=16)

    @abstractmethod
    def raw_hyperedges(self, sources: Sources) -> list[list[int]]:
        """The node ids of every hyperedge before cleaning; raises as ``load`` does."""


class NeighbourhoodGraph(Dataset, ABC):
    """A simple graph whose hyperedges are its distinct closed neighbourhoods (facts 1.1)."""

    family = "graph"
    scenarios = ("label-dirichlet", "non-overlapping")
    client = ClientSettings(model="gcn", hidden=16)
