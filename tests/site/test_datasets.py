"""Data sets' pages: statistics with verdicts, from what ships."""

from __future__ import annotations

from pathlib import Path

import pytest
from pages import Page, records

from bench.dataset import DATASETS
from bench.report.dataset_documents import shipped_statistics
from bench.reports.fedsheafhn import FedSheafHN
from bench.site.folder import dataset_page
from bench.studies.dataset_tables import settings


@pytest.fixture(scope="module")
def page(site: Path) -> Page:
    return Page(site / dataset_page("cora"))


def test_measured_statistics_stand_beside_published_ones_with_a_verdict(page: Page) -> None:
    rows = {(row["Clients"], row["Quantity"]): row for row in records(page.tables[0])}
    shipped = shipped_statistics().dropna(subset=["measured", "published"])
    shipped = shipped[(shipped["paper"] == "fedsheafhn_final") & (shipped["dataset"] == "cora")]
    places = zip(settings(shipped), shipped["quantity"].str.replace("_", " "), strict=True)
    measured = dict(zip(places, shipped.to_dict("records"), strict=True))
    assert set(rows) == set(measured)
    for place, row in measured.items():
        shown = [float(rows[place][name].replace(",", "")) for name in ("Measured", "Published")]
        assert shown == pytest.approx([row["measured"], row["published"]], abs=0.06)
        verdict = rows[place]["Verdict"].split(maxsplit=1)[1]
        assert (verdict == "above") <= (shown[0] > shown[1])
        assert (verdict == "below") <= (shown[0] < shown[1])
    assert rows["whole", "nodes"]["Verdict"] == "● reproduced"
    assert {"reproduced", "compatible"} <= {row["Verdict"].split()[-1] for row in rows.values()}


def test_papers_go_by_their_titles(page: Page) -> None:
    assert FedSheafHN.paper_titles["fedsheafhn_final"] in page.text
    assert "fedsheafhn_final" not in page.text


def test_every_data_set_of_the_suite_says_under_what_terms_its_source_gives_it(page: Page) -> None:
    suite = {
        name: kind for name, kind in DATASETS.all().items() if kind.__module__.startswith("bench.datasets.")
    }
    assert {"cora", "cifar10", "ogbn-arxiv", "news20", "tiny-imagenet"} <= set(suite)
    assert [name for name, kind in suite.items() if not (kind.licence and kind.homepage)] == []
    assert "MIT" in suite["photo"].licence
    assert suite["cora"].licence in page.text
    assert suite["cora"].homepage in page.links
