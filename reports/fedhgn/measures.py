"""Measures of FedHGN's own experiments: the bytes of an exchange, and the nodes that it reveals."""

from __future__ import annotations

import pandas as pd

from bench.studies.measures import Measure
from bench.studies.members import Members


def _exchange_measure(layer: int, coding: int) -> Measure:
    """Megabytes of exchange ``layer``, dense (``coding`` 0) or as non-zeros (1); 0 for runs without it."""
    form = ("dense", "as non-zeros")[coding]

    def megabytes(members: Members) -> pd.Series[float]:
        kept = members.artefacts("exchanged_bytes")
        sums = kept[kept.map(len) > layer].map(lambda rows: float(rows[layer, coding].sum()) / 1e6)
        return sums.reindex(members.rows.index, fill_value=0.0).astype(float)

    return Measure(
        f"layer{layer + 1}_{('dense', 'coded')[coding]}",
        f"Layer {layer + 1}, {('MB', 'MB coded')[coding]}",
        f"megabytes of exchange {layer + 1} before training, both directions, ids included, {form}",
        megabytes,
        metric=f"exchanged_{layer}_{coding}",
        digits=1,
    )


EXPOSURE = (
    "border",
    "alone",
    "recoverable",
    "recoverable_from_sums",
    "peer",
    "pairs",
    "recoverable_by_peers",
)
"""Names of the counts in a run's artefact ``exposure``, in order; older runs have only the first counts."""


def _exposure(members: Members, name: str) -> pd.Series[float]:
    """The count ``name`` of every member that has this count."""
    counts = members.artefacts("exposure")
    place = EXPOSURE.index(name)
    return counts[counts.map(len) > place].map(lambda numbers: float(numbers[place])).astype(float)


def _exposure_measure(name: str, title: str, meaning: str) -> Measure:
    return Measure(
        name,
        title,
        f"border nodes {meaning}, in percent of all border nodes",
        lambda members: (100.0 * _exposure(members, name) / _exposure(members, "border")).dropna(),
        digits=1,
    )


MEASURES = (
    *(_exchange_measure(layer, coding) for layer in (0, 1) for coding in (0, 1)),
    _exposure_measure("alone", "Alone", "that a client uploads alone at least once"),
    _exposure_measure("recoverable", "Server", "that the server can compute from the clients' uploads"),
    _exposure_measure(
        "recoverable_from_sums",
        "Server, masked",
        "that it can compute from the sums over clients, all that secure aggregation shows it",
    ),
    _exposure_measure(
        "peer", "Peer, one sum", "that another client learns from one returned sum less its own part"
    ),
    _exposure_measure(
        "recoverable_by_peers", "Peer", "that another client can compute from all the sums that it gets"
    ),
    Measure(
        "pairs",
        "Pairs",
        "pairs of a client and a border hyperedge whose returned sum tells it another client's node",
        lambda members: _exposure(members, "pairs"),
        digits=0,
    ),
)
"""Measures of this study, in addition to the measures of all studies."""
