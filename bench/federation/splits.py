"""The papers' ways to give items their roles.

Counts use exact fractions of the percentages, so that no count depends on a rounding error.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

import numpy as np
from numpy.typing import NDArray

from bench.errors import RequestError
from bench.federation.scenario import Split
from bench.federation.types import TEST, TRAIN, UNUSED, VALIDATION


@cache  # every planned run asks, and there are few splits
def _exact_shares(split: Split) -> tuple[Fraction, Fraction, Fraction]:
    train, validation, test = (Fraction(str(float(share))) / 100 for share in split)
    return train, validation, test


def check_split(split: Split) -> None:
    """Refuse shares that are not positive, are fractions of one, or add up to more than 100 percent."""
    if not all(math.isfinite(share) and share > 0 for share in split) or sum(_exact_shares(split)) > 1:
        raise RequestError(
            f"protocol.split: expected positive percentages (train, validation, test) that add up to "
            f"100 at most, got {tuple(split)}"
        )
    if sum(split) <= 1:
        raise RequestError(
            f"protocol.split: expected percentages such as 40, 30, 30, got fractions {tuple(split)}"
        )


def _deal(order: NDArray[np.int64], train: int, validation: int, test: int) -> NDArray[np.int8]:
    """Return roles by item: the first of ``order`` train, the next test, the next validate; others unused."""
    roles = np.full(len(order), UNUSED, np.int8)
    roles[order[:train]] = TRAIN
    roles[order[train : train + test]] = TEST
    roles[order[train + test : train + test + validation]] = VALIDATION
    return roles


def roles_in_order(order: NDArray[np.int64], split: Split) -> NDArray[np.int8]:
    """One split of the whole graph, dealt in the given order of all its items (FedSheafHN, FED-PUB).

    The first ``round(train)`` train, the next ``round(test)`` test, and all others validate. If the shares
    add up to less than 100 %, only ``round(validation)`` validate. Not stratified (subgraph facts 1.6).
    """
    train, validation, test = _exact_shares(split)
    items = len(order)
    n_train, n_test = round(train * items), round(test * items)
    is_complete = train + validation + test == 1
    n_validation = items - n_train - n_test if is_complete else round(validation * items)
    return _deal(order, n_train, n_validation, n_test)


def global_roles(items: int, split: Split, stream: np.random.Generator) -> NDArray[np.int8]:
    """``roles_in_order`` of a random permutation."""
    return roles_in_order(stream.permutation(items), split)


def floored_roles(items: int, split: Split, stream: np.random.Generator) -> NDArray[np.int8]:
    """One client's split with counts rounded down, the rest unused (FedHGN; hypergraph facts 1.4)."""
    train, validation, test = (math.floor(share * items) for share in _exact_shares(split))
    return _deal(stream.permutation(items), train, validation, test)


def _ceiled_counts(items: int, split: Split) -> tuple[int, int, int]:
    """How many of a client's items train, validate and test by FedAGHN's two cuts (image facts 1.3).

    Test is its share of the items, rounded up; validation its share of what is left, rounded up;
    the remainder trains. The shares must therefore add up to 100.
    """
    train, validation, test = _exact_shares(split)
    if train + validation + test != 1:
        raise RequestError(
            f"protocol.split: image clients use every image, expected shares that add up to 100, "
            f"got {tuple(split)}"
        )
    n_test = math.ceil(test * items)
    n_validation = math.ceil(validation / (train + validation) * (items - n_test))
    return items - n_test - n_validation, n_validation, n_test


def ceiled_roles(items: int, split: Split, stream: np.random.Generator) -> NDArray[np.int8]:
    """One client's split by FedAGHN's two cuts of a random permutation."""
    return _deal(stream.permutation(items), *_ceiled_counts(items, split))


def reseeded_roles(items: int, split: Split, seed: int) -> NDArray[np.int8]:
    """One client's split by the same cuts, each of a permutation from NumPy's legacy generator of one seed.

    This is what scikit-learn's ``train_test_split`` with that ``random_state`` does twice (FedAGHN's
    released code).
    """
    _, n_validation, n_test = _ceiled_counts(items, split)
    test, remainder = np.split(np.random.RandomState(seed).permutation(items), [n_test])
    validation = remainder[np.random.RandomState(seed).permutation(len(remainder))[:n_validation]]
    roles = np.full(items, TRAIN, np.int8)
    roles[test] = TEST
    roles[validation] = VALIDATION
    return roles
