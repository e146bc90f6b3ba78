"""FedSage and the stand-in for FedSage+ of FedHGN's Table 3 (arXiv 2408.05160).

FedSage is FedAvg with GraphSAGE on the clients' own subgraphs (Zhang et al., NeurIPS 2021). What is
called FedSage+ in that table is not Zhang et al.'s: nothing is generated. The code extends a
client's graph by its true neighbours at other clients and adds noise to their features, as FedGCN's
repository does under the assumption that a generator has learnt its optimum. ``fedsage_plus`` is the
method with its generator.
"""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field

from bench.federation.foreign import Holders, extended, fetch, known_cross_edges
from bench.federation.traffic import TrafficMeter
from bench.federation.types import Client, Federation

from ._neighgen import identity
from .fedavg import FedAvg, SampleWeights


class FedSage(FedAvg):
    """Averaged GraphSAGE models (mean aggregator, no sampling) on induced subgraphs.

    Released: plain mean of the models (``weights = uniform``), two layers of width 16.
    """

    name = "fedsage"
    title = "FedSage"
    reference = "Zhang et al., NeurIPS 2021"
    families = ("graph",)
    settings: ClassVar[dict[str, str]] = {"client.model": "sage"}
    onboard = FedAvg.onboard

    Hyper = SampleWeights
    hyper: SampleWeights


class FedSagePlusStandIn(FedSage):
    """FedSage on graphs that are extended by true neighbours at other clients, with noisy features.

    As released:
    - Own features stay clean, foreign ones get independent noise N(0, noise^2).
    - Edges between own and foreign nodes are added; those among foreign nodes are not, since only
      edges that touch an own node are taken (FedGCN's second hop is what looks beyond).

    The code has all features in one place. Here every client asks for its foreign nodes' ids and rows, which
    are counted, and adds the noise itself: it stands for the error of a generator and protects nobody.
    """

    name = "fedsage_plus_standin"
    title = "FedSage+ stand-in (noisy true neighbours)"
    numerics = 2
    reference = "arXiv 2408.05160"

    class Hyper(SampleWeights):
        noise: float = Field(
            0.1,
            ge=0,
            description="standard deviation of the noise that is added to features of foreign neighbours",
        )

    hyper: Hyper

    def prepare_data(self, federation: Federation, traffic: TrafficMeter) -> Federation:
        """Extend every client's graph."""
        clients = federation.clients
        cross_lists = known_cross_edges(federation, self.name)
        holders = Holders.of(clients, self.name)
        if not any(cross.size for cross in cross_lists):
            return federation
        rows = [client.features for client in clients]
        id_lists = [np.unique(neighbours) for _, neighbours in cross_lists]
        feature_lists = fetch(holders, id_lists, rows, traffic, exchange=0)
        result = []
        for client, (positions, neighbours), ids, features in zip(
            clients, cross_lists, id_lists, feature_lists, strict=True
        ):
            links = np.stack([positions, len(client.ids) + np.searchsorted(ids, neighbours)])
            features += self._noise(client, features.shape)
            dense_client = replace(client, features=client.dense())
            result.append(extended(dense_client, ids, features, links))
        return replace(federation, clients=tuple(result))

    def _noise(self, client: Client, shape: tuple[int, ...]) -> NDArray[np.float32]:
        """Draw noise from a stream that follows the client, whatever its number is."""
        stream = self.task.generator("foreign noise", identity(client))
        noise: NDArray[np.float32] = (torch.randn(shape, generator=stream) * self.hyper.noise).numpy()
        return noise
