"""Data sets' pages: statistics with verdicts, from what ships."""

from __future__ import annotations

import pytest
from stored_runs import save

from bench.dataset import DATASETS
from bench.leaderboard.build import build
from bench.leaderboard.folder import dataset_page
from bench.report.dataset_documents import shipped_statistics
from bench.store import open_store
from bench.studies.experiment import Comparison, Experiment
from bench.studies.settings import Column
from bench.studies.source import MergedSource
from bench.studies.study import STUDIES

from .pages import Page, records
from .site_database import COMPETITORS, Tiny, done, spec

FEDSHEAFHN = STUDIES.all()["fedsheafhn"]


TEN, THIRTY = (Column("photo", *place) for place in (("non-overlapping", 10), ("overlapping", 30)))


class Photos(Tiny):
    """One table on a data set whose raw files do not ship, described as FedSheafHN's papers do."""

    experiments = (
        Experiment("table1", "Table 1", (Comparison("Table 1"),), main=True, columns=(TEN, THIRTY)),
    )
    papers = FEDSHEAFHN.papers
    data_table = FEDSHEAFHN.data_table
    paper_titles = FEDSHEAFHN.paper_titles


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Page:
    """The page of a data set with one run."""
    folder = tmp_path_factory.mktemp("photos")
    with open_store(f"sqlite:///{folder / 'bench.db'}", create=True) as store:
        save(store, spec(TEN, "local", 0), done(60, TEN.clients))
        build(MergedSource(store, []), {"tiny": Photos}, COMPETITORS, folder / "site")
    return Page(folder / "site" / dataset_page("photo"))


def test_measured_statistics_stand_beside_published_ones_with_a_verdict(page: Page) -> None:
    rows = {(row["Clients"], row["Quantity"]): row for row in records(page.tables[0])}
    measured = {
        (row.setting, row.quantity.replace("_", " ")): row
        for row in shipped_statistics()
        if row.dataset == "photo" and row.measured is not None and row.published is not None
    }
    assert set(rows) == set(measured)
    for place, row in measured.items():
        assert row.measured is not None
        assert row.published is not None
        is_equal = f"{row.measured:.3f}" == f"{row.published:.3f}"
        shown = [float(rows[place][name].replace(",", "")) for name in ("Measured", "Published")]
        assert shown == pytest.approx([row.measured, row.published], abs=0.06)
        verdict = rows[place]["Verdict"].split(maxsplit=1)[1]
        if is_equal:
            assert verdict == "reproduced"
        elif abs(row.measured / row.published - 1) > 0.02 and abs(row.measured - row.published) > 0.5:
            assert verdict == ("above" if row.measured > row.published else "below")
    assert {"reproduced", "compatible"} <= {row["Verdict"].split()[-1] for row in rows.values()}


def test_papers_go_by_their_titles(page: Page) -> None:
    assert FEDSHEAFHN.data_table is not None
    name = FEDSHEAFHN.data_table.paper
    assert FEDSHEAFHN.paper_titles[name] in page.text
    assert name not in page.text


def test_every_data_set_of_the_suite_says_under_what_terms_its_source_gives_it(page: Page) -> None:
    suite = {
        name: kind for name, kind in DATASETS.all().items() if kind.__module__.startswith("bench.datasets.")
    }
    assert {"cora", "cifar10", "ogbn-arxiv", "news20", "tiny-imagenet"} <= set(suite)
    assert [name for name, kind in suite.items() if not (kind.licence and kind.homepage)] == []
    assert "MIT" in suite["photo"].licence
    assert suite["photo"].licence in page.text
    assert suite["photo"].homepage in page.links
