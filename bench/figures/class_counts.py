"""What clients have of each class, from labels alone: of the complete set, also where a sample is at hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from bench.data import Images
from bench.errors import RequestError
from bench.federation import scenarios
from bench.federation.images import ImageScenario
from bench.federation.prepared import Prepared
from bench.federation.statistics import class_counts
from bench.figures.layout import Figure
from bench.figures.plots import Dots


def class_figure(prepared_data: Prepared, names: Sequence[str], clients: int) -> Figure:
    """Dots for every scenario of these names, drawn with the data set's own partition seed.

    Raises:
        RequestError: the data are no images, or a scenario is unknown, not one of images, or cannot give that
            many clients.
    """
    kind, data = prepared_data.dataset, prepared_data.data
    if not isinstance(data, Images):
        raise RequestError(f"data set {kind.name}: expected images, whose clients are drawn by labels alone")
    labels = data.labels if data.population is None else data.population
    frames = {}
    for name in names:
        scenario = scenarios.parse(name)
        if not isinstance(scenario, ImageScenario):
            raise RequestError(f"scenario '{name}': expected one of images")
        shares = scenario.shares(labels, clients, kind.protocol.partition_seed)
        counts = np.asarray(class_counts([labels[share] for share in shares], data.classes))
        client, number = np.indices(counts.shape)
        frames[name] = pd.DataFrame(
            {
                "dataset": kind.name,
                "scenario": name,
                "clients": clients,
                "client": client.ravel(),
                "class": number.ravel(),
                "items": counts.ravel(),
            }
        )
    most_items = max(int(frame["items"].max()) for frame in frames.values())
    panels = [Dots(f"{kind.title}, {name}", frame, most_items=most_items) for name, frame in frames.items()]
    caption = (
        f"Items of each class that every client has of the complete data set; the largest dot stands for "
        f"{most_items}, areas are proportional."
    )
    return Figure(f"{kind.name}_classes", caption, panels, "Items of each class by client")
