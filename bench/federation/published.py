"""Clients that papers published: the parts are a data set's own, nothing but the split is drawn."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bench.data import Family, Graph
from bench.errors import RequestError
from bench.federation.scenario import Assignment, Scenario, Split
from bench.federation.splits import roles_in_order


def legacy_permutation(items: int, seed: int) -> NDArray[np.int64]:
    """``torch.randperm(items)`` after ``torch.manual_seed(seed)`` on a CPU: Fisher and Yates' shuffle."""
    twister: Any = np.random.MT19937()
    twister.state = np.random.RandomState(seed).get_state(legacy=False)
    order = np.arange(items)
    for place, number in enumerate(twister.random_raw(items)):
        target = place + int(number) % (items - place)
        order[place], order[target] = order[target], order[place]
    return order


class Published(Scenario[Graph]):
    """The parts of the graph that papers trained on, one a client, nodes in ascending order.

    Where the data set has published roles for the shares that are asked for, these are the roles (FED-PUB's
    20/40/40 of Cora); ``partition_seed`` then decides nothing. Otherwise they are dealt as FedSheafHN's
    released code does, in the order of one ``torch.randperm`` over the graph after seeding torch with the
    partition's seed, which is 123 there and by default (subgraph facts 1.6, 11.1).
    """

    name = "published"
    papers_own = True
    families: ClassVar[tuple[Family, ...]] = ("graph",)

    def draw(self, data: Graph, clients: int, partition_seed: int, split: Split) -> Assignment:
        """The published parts of that number."""
        if clients not in data.published:
            counts = ", ".join(map(str, sorted(data.published)))
            raise RequestError(
                f"scenario published: expected {counts} clients, whose parts are published, got {clients}"
                if counts
                else "scenario published: no parts of this graph are published: use non-overlapping"
            )
        published = data.published[clients]
        if split == published.split:
            roles = published.roles
        else:
            roles = roles_in_order(legacy_permutation(len(data.labels), partition_seed), split)
        ids = [np.flatnonzero(published.parts == client) for client in range(clients)]
        return Assignment(tuple(ids), tuple(roles[part] for part in ids))
