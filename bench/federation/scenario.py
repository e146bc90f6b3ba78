"""The base class of scenarios: how a data set is spread over clients."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from bench.data import Data, Family
from bench.registry import Kind, own_sources

D = TypeVar("D", bound=Data)

Split = tuple[float, float, float]
"""Shares of training, validation and test items, in percent."""


@dataclass(frozen=True, eq=False)
class Assignment:
    """The items of each client, in order, with their roles. Everything else follows from the data.

    ``ids[c]`` ``[n_c]`` int64 are item ids, ``roles[c]`` ``[n_c]`` int8 (see ``bench.federation.types``).
    """

    ids: tuple[NDArray[np.int64], ...]
    roles: tuple[NDArray[np.int8], ...]


class Scenario(ABC, Generic[D]):
    """A way to draw clients from some families of data.

    The registry finds every subclass with a ``name`` of its own. If the name continues with a parameter,
    as in ``dirichlet0.1``, ``name`` is the part before it, ``parameters`` are examples of it (an empty
    one if the name alone is allowed), and ``parse`` reads it.

    Attributes:
        disjoint: no two clients share an item.
        samples: the number of neighbouring clients that are samples of one part of the data. They are
            not independent, so tests between methods count them as one unit.
        papers_own: every client has the items with which a paper measured its published numbers.
    """

    name: ClassVar[str]
    parameters: ClassVar[tuple[str, ...]] = ("",)
    families: ClassVar[tuple[Family, ...]]
    disjoint: ClassVar[bool] = True
    samples: ClassVar[int] = 1
    papers_own: ClassVar[bool] = False

    @classmethod
    def parse(cls, parameter: str) -> Self:
        """The scenario with this ``parameter``, which is empty for the name alone.

        It is called if ``parameters`` has such an example. Default: there is no parameter.

        Raises:
            ValueError: what was expected instead. The request is refused with it in one line.
        """
        return cls()

    def deals_roles(self, split: Split) -> bool:
        """True if the partition seed deals the roles of the papers' own items. Default: False."""
        return False

    def recipe(self, partition_seed: int) -> dict[str, Any]:
        """Libraries and options that decide the draw in addition to the request.

        The key of a stored draw contains them. Default: the source files of a scenario from outside the
        suite; nothing for the suite's own scenarios.
        """
        files = own_sources(type(self))
        return {"sources": sorted(files)} if files else {}

    @abstractmethod
    def draw(self, data: D, clients: int, partition_seed: int, split: Split) -> Assignment:
        """Draw the items and roles of every client from streams of ``partition_seed``.

        Raises:
            RequestError: the scenario cannot give that many clients.
        """

    def groups(self, clients: int) -> NDArray[np.int64] | None:
        """The group of every client ``[clients]``, from 0, if the draw makes some clients alike.

        Reports compare clients of one group with the others. Default: there are no groups.

        Raises:
            RequestError: the scenario cannot give that many clients.
        """
        return None

    def check(self, data: D, assignment: Assignment) -> None:
        """Refuse clients that the scenario does not allow, drawn or imported. Default: allow all.

        Raises:
            RequestError: which client, and why.
        """


SCENARIOS: Kind[Scenario[Any]] = Kind("scenario", "bench.federation", "bench.federation.scenario:Scenario")
"""By name. If a name continues with a parameter, by the part before the parameter."""


def positive_number(text: str) -> float:
    """Read a parameter that is a number above 0. Every number has one spelling, else there would be two
    scenarios.

    Raises:
        ValueError: the text is no such number, or has padding (``0.10``) or an exponent.
    """
    if re.fullmatch(r"[0-9]+(\.[0-9]+)?", text, re.ASCII):
        value = float(text)
        if value > 0 and text == np.format_float_positional(value, trim="-"):
            return value
    raise ValueError(
        f"expected a positive number without padding, got '{text}'" if text else "a number is missing"
    )
