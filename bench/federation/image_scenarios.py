"""FedAGHN's settings: practical (label-Dirichlet), pathological (some classes a client), case study."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bench.errors import RequestError
from bench.federation.dirichlet import label_dirichlet
from bench.federation.images import ImageScenario, ReleasedScenario
from bench.federation.scenario import positive_number
from bench.streams import Stream

LEAST = 3
"""Fewest images that the split leaves one training image of. The released code asks for 1 and
would fail in its split below 3; on the full data sets no draw comes near either."""

RELEASED = "-released"

RELEASED_CONCENTRATIONS = ("0.1", "0.2", "0.5")
"""Those of the paper's tables."""

GROUPS = 5
"""Groups of clients in the case study."""

OWN = 80
"""Percent of a class that its group has to itself, s in the paper."""

FEWEST = 5
"""Classes that a client of the pathological setting has where a fifth of all would be fewer."""


class Dirichlet(ImageScenario):
    """Images by label-Dirichlet: every image goes to one client (facts 1.5)."""

    name = "dirichlet"
    parameters: ClassVar[tuple[str, ...]] = ("0.1", f"0.1{RELEASED}")

    def __init__(self, concentration: float) -> None:
        self.concentration = concentration

    @classmethod
    def parse(cls, parameter: str) -> Dirichlet:
        """The concentration; one of the released partitions where ``-released`` follows it."""
        number = parameter.removesuffix(RELEASED)
        if number == parameter:
            return cls(positive_number(parameter))
        if number not in RELEASED_CONCENTRATIONS:
            options = " or ".join(RELEASED_CONCENTRATIONS)
            raise ValueError(f"expected {options} before '{RELEASED}', got '{number}'")
        return DirichletReleased(float(number))

    def deal(self, labels: NDArray[np.int64], clients: int, stream: Stream) -> list[NDArray[np.int64]]:
        """See ``label_dirichlet``; ascending."""
        shares = label_dirichlet(labels, clients, self.concentration, LEAST, stream)
        return [np.sort(share) for share in shares]


class DirichletReleased(ReleasedScenario, Dirichlet):
    """The released partitions: ``dirichlet0.1-released`` and so on."""

    def deal(self, labels: NDArray[np.int64], clients: int, stream: Stream) -> list[NDArray[np.int64]]:
        """See ``label_dirichlet``; in its order, which the released split permutes."""
        return label_dirichlet(labels, clients, self.concentration, 1, stream)


def _shuffled_classes(labels: NDArray[np.int64], stream: Stream) -> list[NDArray[np.int64]]:
    """The positions of every class that there is, in random order."""
    return [stream.permutation(np.flatnonzero(labels == label)) for label in np.unique(labels)]


class Pathological(ImageScenario):
    """Every class is cut into equal shards, which are dealt at random (FedAGHN's released code, facts 1.4).

    A client has ``k`` shards: a fifth of the classes, or 5 where that would be fewer. With ``N`` clients and
    ``C`` classes a class has ``k N / C`` shards of ``floor(size / shards)`` images; images beyond those go to
    nobody. A client may get several shards of one class, and then has fewer classes than it has shards.
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

    Of every class ``floor(0.8 size)`` images are cut in equal parts for the clients of its group, the last
    of which takes the remainder; the rest is dealt evenly to all clients, and what remains then to nobody.
    """

    name = "case-study"

    def recipe(self, partition_seed: int) -> dict[str, Any]:
        """With the number of groups and what they have of their classes, in percent."""
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
        """Every class is shuffled, then the classes are; groups own consecutive ones.

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
