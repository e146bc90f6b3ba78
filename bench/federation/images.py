"""FedAGHN's ways to share out images: label-Dirichlet, pathological (some classes a client), case study."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bench import streams
from bench.data import Family, Images
from bench.errors import RequestError
from bench.federation.dirichlet import label_dirichlet
from bench.federation.scenario import Assignment, Scenario, Split, positive_number
from bench.federation.splits import ceiled_roles, reseeded_roles
from bench.streams import Stream

LEAST = 3
"""Fewest images of a client for which the split leaves one training image. The released code asks for 1, but
its split fails below 3. On the full data sets no draw comes near these numbers."""

RELEASED = "-released"

RELEASED_CONCENTRATIONS = ("0.1", "0.2", "0.5")
"""Concentrations in the paper's tables."""

RELEASED_SEEDS = {10: 66666, 100: 666, 200: 666}
"""Seed of the partition by number of classes: CIFAR-10, CIFAR-100, Tiny-ImageNet."""

RELEASED_SPLIT_SEED = 666

FEWEST = 5
"""Shards of a client in the pathological setting if a fifth of the classes would be fewer."""

GROUPS = 5
"""Groups of clients in the case study."""

OWN = 80
"""Percent of a class that only the group of the class gets; ``s`` in the paper."""


class ImageScenario(Scenario[Images]):
    """Images are dealt to clients by their labels alone, ids ascending. Every client is split by itself.

    If the data set is a sample, the clients of the complete set are drawn, each client keeps the images that
    the sample has, and then it is split (image facts 1.3, 10.5, 10.6).
    """

    families: ClassVar[tuple[Family, ...]] = ("images",)

    @abstractmethod
    def deal(self, labels: NDArray[np.int64], clients: int, stream: Stream) -> list[NDArray[np.int64]]:
        """The positions in ``labels`` that every client gets, no position twice.

        Raises:
            RequestError: the scenario cannot give that many clients.
        """

    def stream(self, classes: int, partition_seed: int) -> Stream:
        """The random stream for ``deal`` on data with this number of classes."""
        return streams.generator(partition_seed, "partition", self.name)

    def roles(self, items: int, split: Split, partition_seed: int, client: int) -> NDArray[np.int8]:
        """Roles of a client's items, in the order in which they were dealt."""
        return ceiled_roles(items, split, streams.generator(partition_seed, "split", client))

    def shares(self, labels: NDArray[np.int64], clients: int, partition_seed: int) -> list[NDArray[np.int64]]:
        """Deal the items of a complete set, from its labels alone and the scenario's own stream."""
        return self.deal(labels, clients, self.stream(len(np.unique(labels)), partition_seed))

    def draw(self, data: Images, clients: int, partition_seed: int, split: Split) -> Assignment:
        """Draw the clients of the population. Each client keeps the images that ``data`` contains."""
        here = np.arange(len(data.labels))
        population = data.labels if data.population is None else data.population
        image = np.full(len(population), -1, np.int64)
        image[here if data.positions is None else data.positions] = here
        ids, roles = [], []
        for client, share in enumerate(self.shares(population, clients, partition_seed)):
            members = image[share]
            members = members[members >= 0]
            order = np.argsort(members)
            ids.append(members[order])
            roles.append(self.roles(len(members), split, partition_seed, client)[order])
        return Assignment(tuple(ids), tuple(roles))


class ReleasedScenario(ImageScenario):
    """The partition of FedAGHN's released code, drawn by NumPy's legacy generator (image facts 1.7).

    The seeds are those of the released scripts. The partition seed of a run has no influence.
    """

    papers_own = True

    def recipe(self, partition_seed: int) -> dict[str, Any]:
        """Add the released seeds to the recipe."""
        seeds = {str(classes): seed for classes, seed in RELEASED_SEEDS.items()}
        return super().recipe(partition_seed) | {
            "seeds by classes": seeds,
            "split seed": RELEASED_SPLIT_SEED,
        }

    def stream(self, classes: int, partition_seed: int) -> Stream:
        """Return the stream of the released seed.

        Raises:
            RequestError: there is no seed for so many classes.
        """
        if classes not in RELEASED_SEEDS:
            raise RequestError(
                f"released partitions are of data sets of {', '.join(map(str, RELEASED_SEEDS))} classes, got "
                f"{classes}: use the scenario without '{RELEASED}'"
            )
        return np.random.RandomState(RELEASED_SEEDS[classes])

    def roles(self, items: int, split: Split, partition_seed: int, client: int) -> NDArray[np.int8]:
        """Return the same cuts for all clients with the same number of items."""
        return reseeded_roles(items, split, RELEASED_SPLIT_SEED)


class Dirichlet(ImageScenario):
    """Images are dealt by label-Dirichlet; every image goes to one client (facts 1.5)."""

    name = "dirichlet"
    parameters: ClassVar[tuple[str, ...]] = ("0.1", f"0.1{RELEASED}")

    def __init__(self, concentration: float) -> None:
        self.concentration = concentration

    @classmethod
    def parse(cls, parameter: str) -> Dirichlet:
        """Read the concentration. If ``-released`` follows it, the partition is a released one."""
        number = parameter.removesuffix(RELEASED)
        if number == parameter:
            return cls(positive_number(parameter))
        if number not in RELEASED_CONCENTRATIONS:
            options = " or ".join(RELEASED_CONCENTRATIONS)
            raise ValueError(f"expected {options} before '{RELEASED}', got '{number}'")
        return DirichletReleased(float(number))

    def deal(self, labels: NDArray[np.int64], clients: int, stream: Stream) -> list[NDArray[np.int64]]:
        """See ``label_dirichlet``. Every client's items are sorted."""
        shares = label_dirichlet(labels, clients, self.concentration, LEAST, stream)
        return [np.sort(share) for share in shares]


class DirichletReleased(ReleasedScenario, Dirichlet):
    """The released partitions: ``dirichlet0.1-released`` and so on."""

    def deal(self, labels: NDArray[np.int64], clients: int, stream: Stream) -> list[NDArray[np.int64]]:
        """See ``label_dirichlet``. The items are not sorted: the released split permutes the dealt order."""
        return label_dirichlet(labels, clients, self.concentration, 1, stream)


def _shuffled_classes(labels: NDArray[np.int64], stream: Stream) -> list[NDArray[np.int64]]:
    """Return the positions of every class that ``labels`` contain, in random order."""
    return [stream.permutation(np.flatnonzero(labels == label)) for label in np.unique(labels)]


class Pathological(ImageScenario):
    """Every class is cut into equal shards, which are dealt at random (FedAGHN's released code, facts 1.4).

    A client gets ``k`` shards: a fifth of the number of classes, and at least 5. With ``N`` clients and ``C``
    classes, every class has ``k N / C`` shards of ``floor(size / shards)`` images. The images that are left
    belong to no client. A client that gets two shards of one class has fewer than ``k`` classes.
    """

    name = "pathological"

    def deal(self, labels: NDArray[np.int64], clients: int, stream: Stream) -> list[NDArray[np.int64]]:
        """Classes are shuffled, cut and dealt.

        Raises:
            RequestError: the classes cannot be cut into so many equal shards.
        """
        items = _shuffled_classes(labels, stream)
        classes = len(items)
        per_client = min(classes, max(FEWEST, classes // 5))
        cuts, rest = divmod(per_client * clients, classes)
        if rest:
            step = classes // math.gcd(per_client, classes)
            raise RequestError(
                f"clients: expected a multiple of {step}, so that {per_client} shards a client cut "
                f"each of {classes} classes alike, got {clients}"
            )
        shards = [shard for part in items for shard in np.split(part[: len(part) // cuts * cuts], cuts)]
        hands = np.split(stream.permutation(classes * cuts), clients)
        return [np.concatenate([shards[shard] for shard in hand]) for hand in hands]


class PathologicalReleased(ReleasedScenario, Pathological):
    """The released partition of the pathological setting."""

    name = "pathological-released"


class CaseStudy(ImageScenario):
    """Five groups of consecutive clients, each with a fifth of the classes as its own (facts 1.6).

    From every class, ``floor(0.8 size)`` images are cut into equal parts for the clients of its group, and
    the last one also takes the remainder. All clients get equal parts of the others; no client gets the rest.
    """

    name = "case-study"

    def recipe(self, partition_seed: int) -> dict[str, Any]:
        """Add the number of groups, and the percentage of a class that only its group gets."""
        return super().recipe(partition_seed) | {"groups": GROUPS, "own percent": OWN}

    def groups(self, clients: int) -> NDArray[np.int64]:
        """Clients ``0 .. clients / 5 - 1`` are group 0, and so on."""
        if clients % GROUPS or clients < GROUPS:
            raise RequestError(
                f"clients: the case study has {GROUPS} groups of as many clients, expected a multiple of "
                f"{GROUPS}, got {clients}"
            )
        return np.arange(clients) // (clients // GROUPS)

    def deal(self, labels: NDArray[np.int64], clients: int, stream: Stream) -> list[NDArray[np.int64]]:
        """Shuffle the items of every class, then the classes. Groups own consecutive classes.

        Raises:
            RequestError: five groups cannot share the classes or the clients.
        """
        group = self.groups(clients)
        items = _shuffled_classes(labels, stream)
        if len(items) % GROUPS:
            raise RequestError(
                f"scenario '{self.name}': expected a number of classes that {GROUPS} groups can share, got "
                f"{len(items)}; use another data set or scenario"
            )
        pieces: list[list[NDArray[np.int64]]] = [[] for _ in range(clients)]
        for rank, label in enumerate(stream.permutation(len(items)).tolist()):
            own, common = np.split(items[label], [len(items[label]) * OWN // 100])
            owners = np.flatnonzero(group == rank // (len(items) // GROUPS)).tolist()
            part, share = len(own) // len(owners), len(common) // clients
            cuts = part * np.arange(1, len(owners))
            for client, piece in zip(owners, np.split(own, cuts), strict=True):
                pieces[client].append(piece)
            for client in range(clients):
                pieces[client].append(common[client * share : (client + 1) * share])
        return [np.concatenate(parts) for parts in pieces]
