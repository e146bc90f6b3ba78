"""How FedHGN describes its data sets: hypergraphs, and what hangs on the partition, over several of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from bench.data import FAMILIES, Data, Family, Graph, Hypergraph
from bench.federation import scenarios
from bench.federation.prepared import Prepared
from bench.federation.statistics import border_hyperedges, cross_client_edges, holders
from bench.sources import Sources
from bench.studies.dataset_tables import WHOLE, DataTable, Measured


@dataclass(frozen=True, eq=False)
class PartitionCounts(DataTable):
    """Data with hyperedges, whole and shared out by ``scenario`` to numbers of ``clients`` by family.

    ``edges`` are counted once, ``hyperedges`` as listed (before cleaning where there is any), border
    hyperedges and cross-client edges over all clients: their mean and standard deviation over partition
    seeds ``0 .. partitions - 1``. ``notes`` by family go below the table.
    """

    scenario: str
    clients: Mapping[Family, tuple[int, ...]]
    notes: Mapping[Family, str] = field(default_factory=dict)

    def at(self, scenario: str | None, clients: int | None) -> Self:
        """With this scenario, and this number of clients for every family."""
        counts = self.clients if clients is None else dict.fromkeys(FAMILIES, (clients,))
        return replace(self, scenario=scenario or self.scenario, clients=counts)

    def applies(self, data: Data) -> bool:
        """Hypergraphs, and graphs that have hyperedges."""
        return isinstance(data, Graph | Hypergraph) and data.hyperedges is not None

    def statistics(self, prepared_data: Prepared, sources: Sources) -> Iterator[Measured]:
        """The whole data set, then the counts that hang on the partition, by number of clients."""
        dataset, data = prepared_data.dataset(), prepared_data.data
        assert isinstance(data, Graph | Hypergraph)
        assert data.hyperedges is not None
        whole: dict[str, float] = {"nodes": len(data.labels)}
        if isinstance(data, Graph):
            whole["edges"] = data.edges.shape[1] // 2
        whole["hyperedges"] = len(data.hyperedges)
        if hasattr(dataset, "raw_hyperedges"):
            whole["hyperedges"] = len(dataset.raw_hyperedges(sources))
            whole["cleaned_hyperedges"] = len(data.hyperedges)
        whole["classes"] = data.classes
        whole["features"] = data.features.shape[1]
        whole["training_ratio"] = dataset.protocol.split[0] / 100
        for quantity, value in whole.items():
            yield *WHOLE, quantity, float(value), None
        for clients in self.clients.get(dataset.family, ()):
            border, crossing = [], []
            for seed in range(self.partitions):
                scenario = scenarios.parse(self.scenario)
                ids = scenario.draw(data, clients, seed, dataset.protocol.split).ids
                holder = holders(ids, len(data.labels))
                border.append(border_hyperedges(data.hyperedges, holder))
                if isinstance(data, Graph):
                    crossing.append(cross_client_edges(data.edges, holder))
            for quantity, counts in (("border_hyperedges", border), ("cross_client_edges", crossing)):
                if counts:
                    mean, deviation = float(np.mean(counts)), float(np.std(counts, ddof=1))
                    yield self.scenario, clients, quantity, mean, deviation

    def remarks(self, family: Family) -> Sequence[str]:
        """How counts were averaged, and the family's own remark."""
        average_remark = f"Counts with std: over {self.partitions} partitions (ddof 1); the paper prints one."
        return average_remark, *filter(None, [self.notes.get(family)])
