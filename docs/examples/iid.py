"""A scenario in one file: nodes dealt at random, so that all clients are alike but for chance.

BENCH_PLUGINS=docs/examples/iid.py bench sweep -d cora -s iid -k 10 -m local -m fedavg --set protocol.rounds=8
"""

from __future__ import annotations

import numpy as np

from bench import streams
from bench.data import Graph
from bench.federation.scenario import Assignment, Scenario, Split
from bench.federation.splits import global_roles


class Iid(Scenario[Graph]):
    """Every node goes to a client drawn at random, sizes as equal as they can be.

    A control for scenarios that follow communities: clients have the same classes, and hardly any
    edges.
    """

    name = "iid"
    families = ("graph",)

    def draw(self, data: Graph, clients: int, partition_seed: int, split: Split) -> Assignment:
        """Random parts, ids ascending; one split of all nodes, as in the other graph scenarios."""
        nodes = len(data.labels)
        shuffled = streams.generator(partition_seed, "partition", self.name).permutation(nodes)
        roles = global_roles(nodes, split, streams.generator(partition_seed, "split"))
        ids = tuple(np.sort(part) for part in np.array_split(shuffled, clients))
        return Assignment(ids, tuple(roles[part] for part in ids))
