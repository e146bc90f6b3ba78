"""Results by another metric than accuracy: values from counts by class, no verdict, and what lacks them."""

from __future__ import annotations

import pytest
from stored_runs import MemoryStore
from toy_study import ToyStudy

from bench.errors import RequestError
from bench.frames.whole_frames import whole_frame
from bench.report.report import compose
from bench.report.request import Request
from bench.resolve import resolve

MAJORITY = [[[90, 0], [10, 0]], [[0, 60], [0, 40]]]
"""Two clients for whose items one class is predicted: macro-F1 is (180 / 190) / 2 and (80 / 140) / 2."""

SHARP = [[[90, 0], [0, 10]], [[50, 10], [10, 30]]]
"""F1 is 1 and 1, then 100 / 120 and 60 / 80."""


def database() -> MemoryStore:
    """Two seeds of each, and an older run that keeps no counts by class."""
    found = MemoryStore()
    for method, correct, counts in (("local", [100, 80], SHARP), ("fedavg", [90, 40], MAJORITY)):
        for seed in (0, 1):
            spec = resolve("cora", "non-overlapping", 10, method, seed)
            found.add_run(spec, correct, confusion=counts)
    found.add_run(resolve("cora", "non-overlapping", 10, "fedper", 0), [70, 60])
    return found


def test_a_report_by_macro_f1_has_tables_and_ranks_and_no_verdict() -> None:
    request = Request(("toy",), ("cora",), (), (10,), metric="macro_f1")
    (part,) = compose(database(), request, {"toy": ToyStudy})
    assert part.counts.empty
    assert not any(document.figures for document in part.documents)
    assert "macro-F1" in part.title
    assert part.ranking is not None
    assert part.ranking.ranks["method"].tolist() == ["local", "fedavg"]
    table = next(document for document in part.documents if document.key == "toy_table1")
    assert any("macro-F1" in line for line in table.caption)
    cells = table.cells[table.cells["primary"]]
    assert cells[["published_mean", "difference", "margin"]].isna().all(axis=None)
    assert set(cells["measure"]) == {"macro_f1"}
    here = cells[cells["n"] > 0].set_index("method")
    assert set(here["verdict"]) == {"not published"}
    assert here.loc["local", "mean"] == pytest.approx(100 * (1 + (100 / 120 + 60 / 80) / 2) / 2)
    assert here.loc["fedavg", "mean"] == pytest.approx(100 * (180 / 190 / 2 + 80 / 140 / 2) / 2)
    assert "fedper" not in here.index


def test_clients_by_balanced_accuracy() -> None:
    clients = whole_frame("clients", database(), "balanced_accuracy")
    assert set(clients["split"]) == {"test"}
    one = clients[(clients["method"] == "fedavg") & (clients["seed"] == 0)]
    one = one[(one["stage"] == "trained") & (one["rule"] == "last")]
    assert one["balanced_accuracy"].tolist() == [50.0, 50.0]
    assert one["samples"].tolist() == [100, 100]


def test_runs_that_lack_a_metric() -> None:
    older = MemoryStore()
    older.add_run(resolve("cora", "non-overlapping", 10, "local", 0), [70, 80])
    for metric in ("macro_f1", "roc_auc"):
        with pytest.raises(RequestError, match=r"no finished run .*'bench sweep --grid NAME'"):
            whole_frame("clients", older, metric)
    with pytest.raises(RequestError, match="no finished run"):
        whole_frame("clients", database(), "roc_auc")
