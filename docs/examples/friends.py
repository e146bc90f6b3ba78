"""A data set in one file: a graph from two CSV files (made up, in docs/examples/data).

BENCH_PLUGINS=docs/examples/friends.py bench datasets --data-root docs/examples/data
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from bench.data import Graph
from bench.dataset import Dataset
from bench.sources import RawFile, Sources
from bench.spec import ClientSettings, Protocol

PEOPLE = RawFile(
    "friends/people.csv",  # below a data root
    sha256="bd09e1618dddb71095e357979f25ea897801bc0f8be96bd18b3e6b9fb8185df5",
    url=None,  # where it can be downloaded
)
FRIENDSHIPS = RawFile(
    "friends/friendships.csv",
    sha256="738116e140df72aa96e23007d109990970153dbb9f1be4062fcae6ec07367b16",
)


class Friends(Dataset):
    """90 people of three schools, their hobbies, and who knows whom."""

    name = "friends"
    title = "Friends"
    family = "graph"
    homepage = "an example"
    scenarios = ("non-overlapping",)
    protocol = Protocol(rounds=20)
    client = ClientSettings(hidden=16)
    files = (PEOPLE, FRIENDSHIPS)

    def load(self, sources: Sources) -> Graph:
        """Hobbies as features, the school as class; checksums are verified before a file is opened."""
        people, friendships = sources.get_all(self.files)
        table = pd.read_csv(people)
        features = table.drop(columns=["person", "school"]).to_numpy(np.float32)
        labels = table["school"].to_numpy(np.int64)
        pairs = pd.read_csv(friendships).to_numpy(np.int64).T
        edges = np.concatenate([pairs, pairs[::-1]], axis=1)  # both directions, sorted
        edges = edges[:, np.lexsort((edges[1], edges[0]))]
        return Graph(features, labels, edges, classes=int(labels.max()) + 1)
