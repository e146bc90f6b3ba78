"""Published statistics of data sets beside measured ones."""

import math

import pandas as pd
import pytest
from scipy.stats import t

from bench.report.dataset_documents import CLOSE, dataset_document, verdicts
from bench.reports.fedaghn import FedAGHN
from bench.reports.fedsheafhn import FedSheafHN

HALF = t.ppf(0.975, 9) * 20 * math.sqrt(1 + 1 / 10)
"""Where one more draw would lie around the mean of ten with a deviation of 20."""


@pytest.mark.parametrize(
    ("measured", "published", "quantity", "rest", "verdict"),
    [
        (890.6, 891.0, "edges", {}, "reproduced"),
        (0.2594, 0.259, "clustering", {}, "reproduced"),
        (0.2597, 0.259, "clustering", {}, "compatible"),
        (None, 891.0, "edges", {}, "no data"),
        (1000 * (1 + CLOSE), 1000.0, "edges", {}, "compatible"),
        (1000 * (1 + CLOSE) + 1, 1000.0, "edges", {}, "above"),
        (1000 * (1 - CLOSE) - 1, 1000.0, "edges", {}, "below"),
        (1001.0, 1000.0, "edges", {"scenario": "global"}, "above"),
        (500.0, 500 + HALF - 0.1, "edges", {"deviation": 20.0}, "compatible"),
        (500.0, 500 + HALF + 0.1, "edges", {"deviation": 20.0}, "below"),
    ],
)
def test_a_verdict_by_printed_digits_one_draw_or_several(
    measured: float | None, published: float, quantity: str, rest: dict[str, object], verdict: str
) -> None:
    row = {"scenario": "s", "deviation": math.nan, "quantity": quantity, **rest}
    rows = pd.DataFrame([{**row, "measured": measured, "published": published}])
    numbers = {"measured": float, "published": float}
    assert verdicts(rows.astype(numbers)).tolist() == [verdict]


def test_every_published_statistic_has_a_row() -> None:
    document = dataset_document(FedSheafHN())
    assert document is not None
    (records,) = document.records.values()
    # Both versions print 2 tables of 6 graphs: 6 classes, 18 nodes, edges and clusterings, 12 distances.
    assert len(records) == 2 * 2 * (6 + 3 * 18 + 12)
    cora = {
        (row["scenario"], row["quantity"]): (row["measured"], row["verdict"])
        for row in records.to_dict("records")
        if (row["paper"], row["dataset"], row["clients"]) == ("fedsheafhn_final", "cora", 1)
    }
    assert cora["global", "nodes"] == (2485.0, "reproduced")
    papers = {FedSheafHN().paper_title(paper) for paper in records["paper"]}
    assert all(any(view.title.startswith(paper) for paper in papers) for view in document.views)
    assert f"{100 * CLOSE:g} %" in " ".join(document.fine_print)


def test_a_paper_without_such_numbers_has_no_document() -> None:
    assert dataset_document(FedAGHN()) is None
