"""Published statistics of data sets beside measured ones."""

import math
from typing import Any

import pytest
from scipy.stats import t

from bench.report.dataset_documents import CLOSE, dataset_document, judge_statistic, shipped_statistics
from bench.reports.fedaghn import FedAGHN
from bench.reports.fedsheafhn import FedSheafHN
from bench.studies.dataset_tables import Statistic


def statistic(measured: float | None, published: float, quantity: str = "edges", **rest: Any) -> Statistic:
    return Statistic("cora", rest.pop("scenario", "s"), 10, quantity, measured, published, **rest)


@pytest.mark.parametrize(
    ("measured", "quantity", "target", "verdict"),
    [
        (890.6, "edges", 891.0, "reproduced"),
        (0.2594, "clustering", 0.259, "reproduced"),
        (0.2597, "clustering", 0.259, "compatible"),
        (None, "edges", 891.0, "no data"),
    ],
)
def test_equal_is_what_the_printed_digits_say(
    measured: float | None, quantity: str, target: float, verdict: str
) -> None:
    assert judge_statistic(statistic(measured, target, quantity), 1) == verdict


def test_one_draw_of_clients_may_be_off_by_a_share() -> None:
    assert judge_statistic(statistic(1000 * (1 + CLOSE), 1000.0), 1) == "compatible"
    assert judge_statistic(statistic(1000 * (1 + CLOSE) + 1, 1000.0), 1) == "above"
    assert judge_statistic(statistic(1000 * (1 - CLOSE) - 1, 1000.0), 1) == "below"


def test_the_whole_data_set_leaves_nothing_to_chance() -> None:
    assert judge_statistic(statistic(1001.0, 1000.0, scenario="global"), 1) == "above"


def test_several_draws_say_where_one_more_would_lie() -> None:
    half = t.ppf(0.975, 9) * 20 * math.sqrt(1 + 1 / 10)
    assert judge_statistic(statistic(500.0, 500 + half - 0.1, deviation=20.0), 10) == "compatible"
    assert judge_statistic(statistic(500.0, 500 + half + 0.1, deviation=20.0), 10) == "below"


def test_every_published_statistic_has_a_row() -> None:
    document = dataset_document(FedSheafHN())
    assert document is not None
    (records,) = document.records.values()
    # Both versions print 2 tables of 6 graphs: 6 classes, 18 nodes, edges and clusterings, 12 distances.
    assert len(records) == 2 * 2 * (6 + 3 * 18 + 12)
    cora = {
        (row["scenario"], row["quantity"]): (row["measured"], row["verdict"])
        for row in records.to_dict("records")
        if (row["paper"], row["dataset"], row["clients"]) == ("fedsheafhn_final", "cora", "")
    }
    assert cora["global", "nodes"] == (2485.0, "reproduced")
    papers = {FedSheafHN().paper_title(paper) for paper in records["paper"]}
    assert all(any(view.title.startswith(paper) for paper in papers) for view in document.views)
    assert f"{100 * CLOSE:g} %" in " ".join(document.fine_print)


def test_a_paper_without_such_numbers_has_no_document() -> None:
    assert dataset_document(FedAGHN()) is None


def test_shipped_statistics_name_their_paper() -> None:
    assert {row.paper for row in shipped_statistics()} >= {"fedsheafhn_final", "fedhgn"}
