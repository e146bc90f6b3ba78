"""A client model of one's own: the GCN of the subgraph studies with a hidden layer twice as wide."""

from __future__ import annotations

from collections.abc import Sequence

from bench.federation.types import Client
from bench.nn.gcn import GCN
from bench.spec import ClientSettings


class Wide(GCN):
    """Twice ``client.hidden`` units."""

    name = "wide"

    def __init__(self, clients: Sequence[Client], classes: int, settings: ClientSettings) -> None:
        super().__init__(clients, classes, settings.model_copy(update={"hidden": 2 * settings.hidden}))
