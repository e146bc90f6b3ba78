"""Clients that papers published: nothing but a split may be drawn."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bench.data import Family, Graph
from bench.errors import RequestError
from bench.federation.scenario import Assignment, Scenario, Split
from bench.federation.splits import roles_in_order


def legacy_permutation(items: int, seed: int, number: int = 1) -> NDArray[np.int64]:
    """The ``number``-th ``torch.randperm(items)`` after ``torch.manual_seed(seed)`` on a CPU.

    torch shuffles as Fisher and Yates do, with one draw of a Mersenne twister for every place but the last.
    """
    twister: Any = np.random.MT19937()
    twister.state = np.random.RandomState(seed).get_state(legacy=False)
    twister.random_raw((number - 1) * (items - 1))
    order = np.arange(items)
    for place, draw in enumerate(twister.random_raw(items - 1)):
        target = place + int(draw) % (items - place)
        order[place], order[target] = order[target], order[place]
    return order


FEDPUB = (20.0, 40.0, 40.0)
"""FED-PUB's split, whose roles are published."""


class Published(Scenario[Graph]):
    """The METIS parts that FED-PUB, FedSheafHN and later papers trained on, one a client, nodes ascending.

    A split of 20/40/40 has FED-PUB's roles, which do not depend on ``partition_seed``. For 5 and 10 clients
    they are those of a run over all of its data sets, for 20 clients those of a run with 20 clients alone,
    because its printed values agree with these. A split of 40/30/30 has the roles of FedSheafHN's released
    code: it seeds torch with the partition seed (123 there and by default) and deals in the order of
    ``torch.randperm``, by the first permutation for 10 clients, by the second for 20 (facts 1.6, 11.1).
    """

    name = "published"
    papers_own = True
    families: ClassVar[tuple[Family, ...]] = ("graph",)

    def deals_roles(self, split: Split) -> bool:
        """True for all splits but FED-PUB's, whose roles are published."""
        return split != FEDPUB

    def recipe(self, partition_seed: int) -> dict[str, Any]:
        """Edition of the published clients: the second has FedSheafHN's second permutation."""
        return {"edition": 2}

    def draw(self, data: Graph, clients: int, partition_seed: int, split: Split) -> Assignment:
        """Return the published clients for this number of clients and this split.

        Raises:
            RequestError: no such clients are published; the message names the published ones.
        """
        published = data.published.get((self.name, clients, split))
        if published is None:
            known = [
                f"{number} clients with split {'/'.join(f'{share:g}' for share in shares)}"
                for name, number, shares in data.published
                if name == self.name
            ]
            expected = ", ".join(known) or "a graph of which clients are published (use non-overlapping)"
            raise RequestError(f"scenario {self.name}: expected {expected}, got {clients} with split {split}")
        roles = published.roles
        if roles is None:
            order = legacy_permutation(len(data.labels), partition_seed, published.permutation)
            roles = roles_in_order(order, split)
        return Assignment(published.ids, tuple(roles[ids] for ids in published.ids))


class PublishedFresh(Published):
    """FED-PUB's parts with the roles of a run that began with this data set, split 20/40/40.

    Other repositories that commit FED-PUB's clients have these roles, such as that of FedAux.
    """

    name = "published-fresh"


class PublishedOverlapping(Published):
    """Five published half-samples of every METIS part, in the order in which they were drawn.

    A split of 20/40/40 has FED-PUB's samples and roles. A split of 40/30/30 has FedSheafHN's samples; their
    roles are dealt by the first permutation for 30 clients and by the second for 50, as in ``published``.
    """

    name = "published-overlapping"
    disjoint: ClassVar[bool] = False
    samples: ClassVar[int] = 5
