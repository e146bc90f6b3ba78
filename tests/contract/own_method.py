"""A method of one's own for tests of the contract to change, and what is checked of it."""

from __future__ import annotations

import pytest
from torch import Tensor

from bench.contract.subject import Subject
from bench.data import Family
from bench.engine.method import Message, Method, Stack
from bench.engine.methods import METHODS
from bench.methods.fedavg import FedAvg


class Own(FedAvg):
    """FedAvg, to be changed."""

    name = "own"
    title = "Own"


def subject(kind: type[Method], monkeypatch: pytest.MonkeyPatch, family: Family | None = None) -> Subject:
    kinds = METHODS.all() | {"own": kind}
    monkeypatch.setattr(METHODS, "all", lambda: kinds)
    return Subject("own", family)


class Misspells(Own):
    """A hook that nobody calls."""

    def agregate(self, participants: Tensor, received: Stack, upload: Message) -> None:
        raise AssertionError("never called")
