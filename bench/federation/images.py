"""The common part of all image scenarios: clients are drawn by labels and keep the images that are here."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from bench import streams
from bench.data import Family, Images
from bench.errors import RequestError
from bench.federation.scenario import Assignment, Scenario, Split
from bench.federation.splits import ceiled_roles, reseeded_roles
from bench.streams import Stream


class ImageScenario(Scenario[Images]):
    """Images are dealt to clients by their labels alone, ids ascending. Every client has its own split.

    Of a sample, the clients of the complete set are drawn, and each keeps the images that the sample has.
    Then it is split (image facts 1.3, 10.5, 10.6).
    """

    families: ClassVar[tuple[Family, ...]] = ("images",)

    @abstractmethod
    def deal(self, labels: NDArray[np.int64], clients: int, stream: Stream) -> list[NDArray[np.int64]]:
        """The positions in ``labels`` that every client gets, no position twice.

        Raises:
            RequestError: the scenario cannot give that many clients.
        """

    def shares(self, labels: NDArray[np.int64], clients: int, partition_seed: int) -> list[NDArray[np.int64]]:
        """``deal`` from the scenario's own stream: the clients of a complete set from its labels alone."""
        return self.deal(labels, clients, streams.generator(partition_seed, "partition", self.name))

    def roles(self, items: int, split: Split, partition_seed: int, client: int) -> NDArray[np.int8]:
        """Roles of a client's items, in the order in which they were dealt."""
        return ceiled_roles(items, split, streams.generator(partition_seed, "split", client))

    def draw(self, data: Images, clients: int, partition_seed: int, split: Split) -> Assignment:
        """The clients of the population, each with the images that are here."""
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
    """As FedAGHN's released code draws it, image by image: from NumPy's legacy generator (image facts 1.7).

    The seeds are those of the released scripts, which fix one partition and one split for each data
    set: the partition seed of a run has no influence.
    """

    papers_own = True

    SEEDS: ClassVar[dict[int, int]] = {10: 66666, 100: 666, 200: 666}
    """Seed of the partition by number of classes: CIFAR-10, CIFAR-100, Tiny-ImageNet."""

    SPLIT_SEED: ClassVar[int] = 666

    def recipe(self, partition_seed: int) -> dict[str, Any]:
        """With the released seeds."""
        seeds = {str(classes): seed for classes, seed in self.SEEDS.items()}
        return super().recipe(partition_seed) | {"seeds by classes": seeds, "split seed": self.SPLIT_SEED}

    def shares(self, labels: NDArray[np.int64], clients: int, partition_seed: int) -> list[NDArray[np.int64]]:
        """``deal`` from the released seed.

        Raises:
            RequestError: also where there is no seed for so many classes.
        """
        classes = len(np.unique(labels))
        if classes not in self.SEEDS:
            raise RequestError(
                f"released partitions are of data sets of {', '.join(map(str, self.SEEDS))} classes, got "
                f"{classes}: use the scenario without '-released'"
            )
        return self.deal(labels, clients, np.random.RandomState(self.SEEDS[classes]))

    def roles(self, items: int, split: Split, partition_seed: int, client: int) -> NDArray[np.int8]:
        """The same cuts for every client of so many items."""
        return reseeded_roles(items, split, self.SPLIT_SEED)
