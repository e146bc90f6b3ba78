"""Dot plots of what clients have of each class."""

import numpy as np
import pytest

from bench.data import Images
from bench.dataset import DATASETS
from bench.errors import RequestError
from bench.federation.prepared import Prepared, prepare
from bench.figures.charts import class_figure
from bench.figures.plots import Dots

LABELS = np.repeat(np.arange(10), 6000)

# Images of the released code's clients at concentrations 0.1 and 0.5.
RELEASED = {
    "dirichlet0.1-released": "3062 4229 1470 6097 2424 4649 933 443 5794 4254 "
    "1728 2968 3961 4104 1532 3353 3023 362 2990 2624",
    "dirichlet0.5-released": "3337 3402 3559 1892 3363 3068 3186 4262 2007 1887 "
    "4218 1940 3401 1862 4224 3040 3371 3203 3195 1583",
}


def sample() -> Prepared:
    """One image of CIFAR-10, which knows all the others' classes."""
    data = Images(np.zeros((1, 3, 32, 32), np.uint8), LABELS[:1], 10, LABELS, np.zeros(1, np.int64))
    return Prepared(DATASETS.named("cifar10-sample"), data, "", "")


def test_clients_of_a_sample_are_those_of_the_complete_set() -> None:
    figure = class_figure(sample(), tuple(RELEASED), 20)
    for panel, sizes in zip(figure.panels, RELEASED.values(), strict=True):
        counts = panel.data.pivot(index="client", columns="class", values="items")
        assert counts.shape == (20, 10)
        assert counts.sum(axis=1).tolist() == [int(size) for size in sizes.split()]
        assert (counts.sum(axis=0) <= 6000).all()


def test_the_numbers_behind_a_panel_are_all_counts_and_the_largest_is_shared() -> None:
    figure = class_figure(sample(), ("case-study", "pathological"), 20)
    largest = max(panel.data["items"].max() for panel in figure.panels)
    assert {panel.most_items for panel in figure.panels if isinstance(panel, Dots)} == {largest}
    # Two own classes a group: a quarter of 80 % of 6000, and a twentieth of the other 20 %, for each client.
    rows = figure.panels[0].data
    assert len(rows) == 200
    assert set(rows["items"]) == {1200 + 60, 60}


def test_graphs_and_their_scenarios_are_refused() -> None:
    with pytest.raises(RequestError, match="images"):
        class_figure(prepare("cora"), ("non-overlapping",), 10)
    with pytest.raises(RequestError, match="non-overlapping"):
        class_figure(sample(), ("non-overlapping",), 20)
