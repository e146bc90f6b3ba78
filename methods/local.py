"""Local training: every client on its own, no messages."""

from __future__ import annotations

from collections.abc import Collection

from bench.engine.method import Clients, Message, Method


class Local(Method):
    """Each client trains its own model from its own initialisation; nothing is shared."""

    name = "local"
    title = "Local"

    def shared(self) -> Collection[str]:
        """Send nothing."""
        return ()

    def onboard(self, newcomers: Clients, message: Message) -> Message:
        """Send nothing: newcomers train alone, too."""
        return Message()
