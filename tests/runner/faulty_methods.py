"""Methods that go wrong in their third round, each in its own way (``BENCH_PLUGINS``)."""

import time

import torch
from torch import Tensor

from bench.engine.method import Message, Stack
from bench.methods.fedavg import FedAvg

ROUND = 3


class Faulty(FedAvg):
    """FedAvg until the round in which it goes wrong."""

    def broadcast(self) -> Message:
        message = super().broadcast()
        return Message(self.wrong(message.model)) if self.round == ROUND else message

    def wrong(self, sent: Stack) -> Stack:
        raise NotImplementedError


class Raises(Faulty):
    """An exception."""

    name = title = "raises"

    def wrong(self, sent: Stack) -> Stack:
        raise ValueError("expected three heads")


class Diverges(Faulty):
    """NaN in every parameter."""

    name = title = "diverges"

    def wrong(self, sent: Stack) -> Stack:
        return {name: torch.full_like(value, torch.nan) for name, value in sent.items()}


class Allocates(Faulty):
    """More than any machine has: a pebibyte."""

    name = title = "allocates"

    def wrong(self, sent: Stack) -> Stack:
        waste: Tensor = torch.empty(2**50, dtype=torch.uint8)
        return {name: value + waste[0] for name, value in sent.items()}


class Hangs(Faulty):
    """Never comes back."""

    name = title = "hangs"

    def wrong(self, sent: Stack) -> Stack:
        while True:
            time.sleep(1)
