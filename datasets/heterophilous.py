"""Graphs whose neighbours are often of different classes.

Platonov et al., "A critical look at the evaluation of GNNs under heterophily", ICLR 2023: Minesweeper,
Tolokers, and Chameleon and Squirrel without their repeated nodes. Actor: Pei et al., "Geom-GCN", ICLR 2020.
Their ten splits play no part: clients have splits of their own.
"""

from __future__ import annotations

from abc import ABC

import numpy as np

from bench.data import Graph, largest_component, undirected
from bench.dataset import Dataset
from bench.sources import RawFile, Sources
from bench.spec import ClientSettings, Protocol

from ._prepare import raw_files


def _raw_file(name: str, sha256: str) -> tuple[RawFile, ...]:
    address = "https://github.com/yandex-research/heterophilous-graphs/raw/main/data"
    return raw_files("heterophilous", address, {f"{name}.npz": sha256})


class _Heterophilous(Dataset, ABC):
    family = "graph"
    homepage = "https://github.com/yandex-research/heterophilous-graphs"
    licence = "MIT (LICENSE of its repository)"
    scenarios = ("non-overlapping", "overlapping")
    protocol = Protocol()
    client = ClientSettings()

    def load(self, sources: Sources) -> Graph:
        """Load the largest component. Features are not changed."""
        with np.load(sources.get(self.files[0]), allow_pickle=False) as arrays:
            labels = arrays["node_labels"].astype(np.int64)
            edges = undirected(arrays["edges"].T, len(labels))
            features = arrays["node_features"].astype(np.float32)
        return largest_component(Graph(features, labels, edges, int(labels.max()) + 1))


class Minesweeper(_Heterophilous):
    """Minesweeper: a grid of 100 x 100 cells, a fifth of them mines; half tell of the mines beside them."""

    name = "minesweeper"
    title = "Minesweeper"
    protocol = Protocol(metric="roc_auc")
    files = _raw_file("minesweeper", "e664c8dacf1e8ac466c2c09ed4b237bd2c5541f47a6eae9c6092cb87f16412b3")


class Tolokers(_Heterophilous):
    """Tolokers: 11,758 crowd workers who shared tasks, a fifth of them banned from a project."""

    name = "tolokers"
    title = "Tolokers"
    protocol = Protocol(metric="roc_auc")
    files = _raw_file("tolokers", "dacf3ac94cec53d03cd2adb5255c08b33dee1656c33ca8164a464bd9450a1667")


class Actor(_Heterophilous):
    """Actor: 7,600 actors on common pages of Wikipedia, 932 words, 5 kinds."""

    name = "actor"
    title = "Actor"
    files = _raw_file("actor", "c350eef06b2c2a9bf8218be2b57cac6d4003d0922eb597a039e9123f75817816")


class Chameleon(_Heterophilous):
    """Chameleon, filtered: pages of Wikipedia on chameleons, 2,325 words, 5 classes of traffic."""

    name = "chameleon-filtered"
    title = "Chameleon (filtered)"
    files = _raw_file(
        "chameleon_filtered", "bf46f07e1fb5249280447e5fe3100f3e82fc4b93ad1e13ffcfdec924b6ac0bb5"
    )


class Squirrel(_Heterophilous):
    """Squirrel, filtered: pages of Wikipedia on squirrels, 2,089 words, 5 classes of traffic."""

    name = "squirrel-filtered"
    title = "Squirrel (filtered)"
    files = _raw_file("squirrel_filtered", "f06370ffb3116c5de8b7a600005400b2293c025e0ce2f6916d8201a825505ac7")
