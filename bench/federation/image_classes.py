"""Image clients that have some of the classes: FedAGHN's pathological setting and its case study."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.errors import RequestError
from bench.federation.images import ImageScenario, ReleasedScenario
from bench.streams import Stream

GROUPS = 5
"""Groups of clients in the case study."""

OWN = 80
"""Percent of a class that its group has to itself, s in the paper."""

FEWEST = 5
"""Classes that a client of the pathological setting has where a fifth of all would be fewer."""


def classes_a_client(classes: int) -> int:
    """Of so many classes, how many a client has in the pathological setting: 5 of 10, else a fifth."""
    return min(classes, max(FEWEST, classes // 5))


def shuffled_classes(labels: NDArray[np.int64], stream: Stream) -> list[NDArray[np.int64]]:
    """The positions of every class that there is, ascending, in random order."""
    return [stream.permutation(np.flatnonzero(labels == label)) for label in np.unique(labels)]


class Pathological(ImageScenario):
    """Every class is cut into equal shards, which are dealt at random (FedAGHN's released code, facts 1.4).

    With ``k`` shards a client, ``N`` clients and ``C`` classes a class has ``k N / C`` shards of
    ``floor(size / shards)`` images; images beyond those go to nobody. A client may get several shards of one
    class, and then has fewer classes than it has shards.
    """

    name = "pathological"

    def deal(self, labels: NDArray[np.int64], clients: int, stream: Stream) -> list[NDArray[np.int64]]:
        """Classes are shuffled, cut and dealt.

        Raises:
            RequestError: the classes cannot be cut into so many equal shards.
        """
        items = shuffled_classes(labels, stream)
        classes = len(items)
        per_client = classes_a_client(classes)
        if per_client * clients % classes:
            step = classes // math.gcd(per_client, classes)
            raise RequestError(
                f"clients: expected a multiple of {step}, so that {per_client} shards a client cut "
                f"each of {classes} classes alike, got {clients}"
            )
        cuts = per_client * clients // classes
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
        items = shuffled_classes(labels, stream)
        if len(items) % GROUPS:
            raise RequestError(
                f"scenario '{self.name}': expected a number of classes that {GROUPS} groups can share, got "
                f"{len(items)}; use another data set or scenario"
            )
        pieces: list[list[NDArray[np.int64]]] = [[] for _ in range(clients)]
        for rank, label in enumerate(stream.permutation(len(items)).tolist()):
            size = len(items[label])
            group_items, common_items = np.split(items[label], [size * OWN // 100])
            owners = np.flatnonzero(group == rank // (len(items) // GROUPS)).tolist()
            part = len(group_items) // len(owners)
            for client, piece in zip(
                owners, np.split(group_items, part * np.arange(1, len(owners))), strict=True
            ):
                pieces[client].append(piece)
            share = len(common_items) // clients
            for client in range(clients):
                pieces[client].append(common_items[client * share : (client + 1) * share])
        return [np.concatenate(parts) for parts in pieces]
