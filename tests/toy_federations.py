"""Small graph federations, specs and runs that several tests share; no data set is read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy import sparse
from torch import Tensor

from bench.contract.toys import (
    both_ways,
    copied,
    furthest,
    linked,
    make_spec,
    permuted,
    play,
    random_federation,
    same_counts,
)
from bench.engine.method import Message, Stack
from bench.engine.run import Run
from bench.federation.types import TEST, TRAIN, UNUSED, VALIDATION, Client, Federation

__all__ = [
    "PLAIN",
    "begun",
    "both_ways",
    "copied",
    "flat",
    "furthest",
    "linked",
    "make_spec",
    "permuted",
    "play",
    "random_federation",
    "same_counts",
    "tiny_federation",
    "uploads_of",
]

PLAIN = {"optimizer": "sgd", "learning_rate": 0.1, "weight_decay": 0.0, "dropout": 0.0}
"""Client settings of plain gradient descent."""


def tiny_federation() -> Federation:
    """Two clients by hand: a path of three nodes, and a triangle with an isolated fourth node."""
    path = Client(
        ids=np.array([0, 1, 2]),
        labels=np.array([0, 1, 0]),
        roles=np.array([TRAIN, TRAIN, TEST], np.int8),
        features=sparse.csr_matrix(np.array([[1, 0], [0, 2], [1, 1]], np.float32)),
        edges=both_ways([(0, 1), (1, 2)]),
    )
    triangle = Client(
        ids=np.array([3, 4, 5, 6]),
        labels=np.array([1, 1, 0, 1]),
        roles=np.array([TRAIN, VALIDATION, TEST, UNUSED], np.int8),
        features=sparse.csr_matrix(np.array([[0, 1], [1, 0], [2, 0], [0, 3]], np.float32)),
        edges=both_ways([(0, 1), (1, 2), (0, 2)]),
    )
    return Federation("toy", "by hand", "graph", 2, (path, triangle), "tiny")


def begun(
    method: str, federation: Federation, steps: int = 0, block_size: int | None = None, **settings: Any
) -> Run:
    """A run of a method that is warmed up and has made its first ``steps``; ``settings`` as of a spec."""
    it = Run(make_spec(method, federation, **settings), federation, block_size=block_size)
    it.warm_up()
    for round in range(steps):
        it.step(round)
    return it


def flat(stack: Stack, names: Iterable[str] | None = None) -> NDArray[np.float64]:
    """Every client's parameters as one row, by default all of them."""
    values = [stack[name] for name in names or stack]
    return torch.cat([value.detach().double().flatten(1) for value in values], dim=1).numpy()


def uploads_of(it: Run) -> list[Message]:
    """A list that takes up what clients send in every round from now on."""
    uploads: list[Message] = []
    aggregate = it.method.aggregate

    def watched(participants: Tensor, received: Stack, upload: Message) -> None:
        uploads.append(upload)
        aggregate(participants, received, upload)

    it.method.aggregate = watched  # type: ignore[method-assign]
    return uploads
