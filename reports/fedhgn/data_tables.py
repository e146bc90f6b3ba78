"""How FedHGN describes its data sets: hypergraphs, and what hangs on the partition, over several of them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from typing import Protocol, Self, runtime_checkable

import numpy as np

from bench.data import FAMILIES, Data, Family, Graph, Hypergraph
from bench.federation import scenarios
from bench.federation.prepared import Prepared
from bench.federation.statistics import border_hyperedges, cross_client_edges, holders
from bench.sources import Sources
from bench.studies.dataset_tables import WHOLE, DataTable, Measured


@runtime_checkable
class CleanedOnLoading(Protocol):
    """A data set that can tell which hyperedges there were before cleaning."""

    def raw_hyperedges(self, sources: Sources) -> Sized:
        """The hyperedges as the raw files list them."""


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

    def at(self, scenario: str | None, clients: int | None, left_out: Collection[str] = ()) -> Self:
        """With this scenario, and this number of clients for every family."""
        counts = self.clients if clients is None else dict.fromkeys(FAMILIES, (clients,))
        return replace(self, scenario=scenario or self.scenario, clients=counts)

    def applies(self, data: Data) -> bool:
        """Hypergraphs, and graphs that have hyperedges."""
        return isinstance(data, Graph | Hypergraph) and data.hyperedges is not None

    def statistics(self, prepared_data: Prepared, sources: Sources) -> Iterator[Measured]:
        """The whole data set, then the counts that hang on the partition, by number of clients."""
        kind, data = prepared_data.dataset, prepared_data.data
        assert isinstance(data, Graph | Hypergraph)
        assert data.hyperedges is not None
        for quantity, value in self._whole_counts(prepared_data, sources).items():
            yield WHOLE, quantity, float(value), None
        for clients in self.clients.get(kind.family, ()):
            counts: dict[str, list[int]] = {}
            for seed in range(self.partitions):
                ids = scenarios.parse(self.scenario).draw(data, clients, seed, kind.protocol.split).ids
                holder = holders(ids, len(data.labels))
                counts.setdefault("border_hyperedges", []).append(border_hyperedges(data.hyperedges, holder))
                if isinstance(data, Graph):
                    crossing = cross_client_edges(data.edges, holder)
                    counts.setdefault("cross_client_edges", []).append(crossing)
            for quantity, values in counts.items():
                mean, deviation = float(np.mean(values)), float(np.std(values, ddof=1))
                yield (self.scenario, clients), quantity, mean, deviation

    def _whole_counts(self, prepared_data: Prepared, sources: Sources) -> dict[str, float]:
        kind, data = prepared_data.dataset(), prepared_data.data
        assert isinstance(data, Graph | Hypergraph)
        assert data.hyperedges is not None
        counts: dict[str, float] = {"nodes": len(data.labels)}
        if isinstance(data, Graph):
            counts["edges"] = data.edges.shape[1] // 2
        if isinstance(kind, CleanedOnLoading):
            counts["hyperedges"] = len(kind.raw_hyperedges(sources))
            counts["cleaned_hyperedges"] = len(data.hyperedges)
        else:
            counts["hyperedges"] = len(data.hyperedges)
        counts["classes"] = data.classes
        counts["features"] = data.features.shape[1]
        counts["training_ratio"] = kind.protocol.split[0] / 100
        return counts

    def remarks(self, family: Family) -> Sequence[str]:
        """How counts were averaged, and the family's own remark."""
        average_remark = f"Counts with std: over {self.partitions} partitions (ddof 1); the paper prints one."
        return average_remark, *filter(None, [self.notes.get(family)])
