"""CFL: Clustered Federated Learning.

Sattler et al., IEEE Transactions on Neural Networks and Learning Systems, 2020.
"""

from __future__ import annotations

import torch
from pydantic import Field
from torch import Tensor

from bench.engine.method import Message, Stack
from bench.engine.personalised import Mixing
from bench.engine.stacks import cosines, mix, norms, replaced
from bench.hyper import HyperParameters, added, tunable


class CFL(Mixing):
    """Clients of a cluster share a model; a cluster whose clients pull apart is split in two, for good.

    All clients begin in one cluster. With dW_i what client i's training changed in its cluster's model,
    the server, for every cluster c,

    1. splits c in two  if  ||mean_c dW|| < eps1  (the cluster as a whole is near a stationary point)
       and  max_c ||dW_i|| > eps2  (but some client is not), by the cosines of dW;
    2. adds mean_c dW, after the split that of the new clusters, to the model of c.

    What the paper leaves open or public code has otherwise, and what is done here:
    - When. Clusters are split from ``start_round`` on, and only if they have more than ``min_cluster``
      clients, as in FL-bench, whose parameters the image studies quote.
    - How. Agglomeration by complete linkage on distance -cos, as in the released code; the paper's
      optimal bipartition is that of single linkage. (1 - cos is used, which merges the same.)
    - Means are not weighted by data. Norms are over whole models and all local epochs: thresholds
      belong to a model, a learning rate and an amount of data. Both norms of every client's cluster before a
      split are kept with the run (``mean_norm_by_round`` and ``largest_norm_by_round``).
    - Absent clients count in a split by their last update (one they never made has cosine 0); the
      thresholds and means are of the clients that took part.
    """

    name = "cfl"
    title = "CFL"
    reference = "Sattler et al., TNNLS 2020"

    class Hyper(HyperParameters):
        eps1: float = tunable(
            0.5,
            search=[0.4, 0.5],
            ge=0,
            description="norm of the clients' mean update below which a cluster is stationary and may be "
            "split",
        )
        eps2: float = tunable(
            0.5,
            search=[0.5, 1.6],
            ge=0,
            description="norm of the largest client update above which a stationary cluster is split",
        )
        min_cluster: int = Field(2, ge=1, description="clusters of so many clients or fewer stay whole")
        start_round: int | None = added(
            None,
            ge=0,
            description="first round, counted from 0, after which clusters are split; None: a tenth of "
            "the rounds, at least 1",
        )

    hyper: Hyper

    def setup_server(self) -> None:
        """Start with one cluster of all clients. ``models`` has, for every client, its cluster's model."""
        super().setup_server()
        self.cluster = torch.zeros(self.task.clients, dtype=torch.int64, device=self.task.device)
        self.updates: Stack = {name: torch.zeros_like(value) for name, value in self.models.items()}
        start = self.hyper.start_round
        self.start_round = max(self.task.rounds // 10, 1) if start is None else start

    def broadcast(self) -> Message:
        """Send every client its cluster's model."""
        mask = self.together().float()
        self.collaboration = mask / mask.sum(dim=1, keepdim=True)
        self.record(collaboration_by_round=self.collaboration)
        return Message(self.models)

    def together(self) -> Tensor:
        """Which clients are in the same cluster, bool ``[clients, clients]``."""
        return self.cluster[:, None] == self.cluster[None, :]

    def aggregate(self, participants: Tensor, received: Stack, upload: Message) -> None:
        """Split clusters and update their models: steps 1 and 2."""
        updates = {name: trained - received[name] for name, trained in upload.model.items()}
        self.updates = {
            name: replaced(self.updates[name], participants, value) for name, value in updates.items()
        }
        means = self.means(participants, updates)
        mean_norm = norms(means)
        largest_norm = (self.together()[:, participants] * norms(updates)).amax(dim=1)
        self.record(mean_norm_by_round=mean_norm, largest_norm_by_round=largest_norm)
        is_split = (mean_norm < self.hyper.eps1) & (largest_norm > self.hyper.eps2)
        if self.round >= self.start_round:
            for cluster in self.cluster[is_split].unique().tolist():
                members = torch.nonzero(self.cluster == cluster).flatten()
                if len(members) > self.hyper.min_cluster:
                    self.cluster[members[self.halves(members)]] = self.cluster.max() + 1
            means = self.means(participants, updates)
        self.models = {name: value + means[name] for name, value in self.models.items()}

    def means(self, participants: Tensor, updates: Stack) -> Stack:
        """The mean update ``[participants, ...]`` of every client's cluster; 0 if no participant is in it."""
        shares = self.together()[:, participants].float()
        return mix(updates, shares / shares.sum(dim=1, keepdim=True).clamp_min(1))

    def halves(self, members: Tensor) -> Tensor:
        """In which of two clusters each member ends, bool ``[members]``."""
        # imported when it is needed, since it takes a sixth of a second whenever methods are named
        from scipy.cluster.hierarchy import cut_tree, linkage

        cosine = cosines({name: value[members] for name, value in self.updates.items()})
        # every pair once, in SciPy's order
        rows, columns = torch.triu_indices(len(members), len(members), 1)
        distances = (1 - cosine)[rows, columns].clamp_min(0).cpu().numpy()
        halves = cut_tree(linkage(distances, "complete"), n_clusters=2).ravel() > 0
        return torch.from_numpy(halves).to(self.task.device)
