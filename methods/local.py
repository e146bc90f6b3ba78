"""Local training: every client on its own, no messages."""

from __future__ import annotations

from collections.abc import Collection

from torch import Tensor

from bench.engine.clients import Clients
from bench.engine.method import Method, Stack


class Local(Method):
    """Each client trains its own model from its own initialisation; nothing is shared.

    Optimiser state is kept over rounds, so a run of R rounds with E local epochs is one training
    of R x E steps, looked at every E steps.
    """

    name = "local"
    title = "Local"

    def shared(self) -> Collection[str]:
        """Nothing."""
        return ()

    def welcome(self, newcomers: Clients, reports: Tensor | None) -> Stack:
        """Nothing: newcomers, too, are on their own."""
        return {}
