"""What clients have of each class, from labels alone: of the complete set, also where a sample is at hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bench.data import Images
from bench.errors import RequestError
from bench.federation import scenarios
from bench.federation.images import ImageScenario
from bench.federation.prepared import Prepared
from bench.federation.statistics import class_counts
from bench.report.figures import Figure
from bench.report.panels.dots import DotPanel
from bench.report.settings import Column


def classes(prepared: Prepared, names: Sequence[str], clients: int) -> Figure:
    """A dot plot for every scenario of these names, drawn with the data set's own partition seed.

    Raises:
        RequestError: the data are no images, or a scenario is unknown, not one of images, or cannot give that
            many clients.
    """
    kind, data = prepared.dataset, prepared.data
    if not isinstance(data, Images):
        raise RequestError(f"data set {kind.name}: expected images, whose clients are drawn by labels alone")
    labels = data.labels if data.population is None else data.population
    found = {}
    for name in names:
        scenario = scenarios.parse(name)
        if not isinstance(scenario, ImageScenario):
            raise RequestError(f"scenario '{name}': expected one of images")
        shares = scenario.shares(labels, clients, kind.protocol.partition_seed)
        found[name] = class_counts([labels[share] for share in shares], data.classes)
    largest = max(int(counts.max()) for counts in found.values())
    panels = [
        DotPanel(f"{kind.title}, {name}", Column(kind.name, name, clients), np.asarray(counts), largest)
        for name, counts in found.items()
    ]
    caption = (
        f"Items of each class that every client has of the complete data set; the largest dot stands for "
        f"{largest}, areas are proportional."
    )
    return Figure("", f"{kind.name}_classes", caption, panels)
