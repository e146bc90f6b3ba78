"""Claims on made-up runs: those that hold, that do not, and that can't be told."""

from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np
import pytest
from fake_database import FakeDatabase
from scipy import stats
from study_cells import cells_in, plan_of

from bench.grids import expand, load_grid
from bench.report.cells import Cells
from bench.report.claim_views import FAILS, HOLDS, OPEN, answer, claims
from bench.report.claims import Claim, Claims
from bench.report.measures import TOTAL_MEGABYTES
from bench.report.results import Results
from bench.reports.fedaghn import FedAGHN
from bench.reports.fedaghn.claims import ALONE, CLAIMS, PERSONALISED, SHARED
from bench.spec import RunSpec

REDUCED, WHOLE = "table1_reduced", "table1"
CLIENTS = 20
PLACE = ("cifar10-sample", "dirichlet0.1-released", "CNN")
WAVE = np.where(np.arange(CLIENTS) % 2, 1, -1)
"""A pattern over clients whose mean is 0."""


def tables(
    scores: Mapping[str, Sequence[int]],
    name: str = REDUCED,
    place: tuple[str, str, str] = PLACE,
    seeds: int = 1,
    **more: int,
) -> tuple[dict[str, Cells], Results]:
    """An experiment in which the methods of one place have these counts of 100 by client."""
    database = FakeDatabase()
    for (column, line, point), planned in plan_of(FedAGHN, name).runs.items():
        if (column.dataset, column.scenario, point.label) == place and line.runs in scores and not line.reads:
            for seed in range(seeds):
                database.add(
                    line.runs,
                    seed,
                    list(scores[line.runs]),
                    spec=spec_of(planned.hashes[seed], name),
                    bytes_up=more.get(line.runs, 0),
                )
    results = Results(database, {})
    return {each: cells_in(FedAGHN, each, results) for each in (REDUCED, WHOLE)}, results


@cache
def specs(grid: str) -> dict[str, RunSpec]:
    return {run.spec.hash: run.spec for run in expand(load_grid(grid)) if run.spec}


def spec_of(digest: str, name: str) -> RunSpec:
    return specs({REDUCED: "fedaghn_reduced", WHOLE: "fedaghn_main"}[name])[digest]


def flat(level: int) -> list[int]:
    return [level] * CLIENTS


def above(first: str, second: str, **more: object) -> Claim:
    return Claim("first above second", (first,), (second,), (WHOLE,), (REDUCED,), **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("ditto", "expected"),
    [(flat(53), HOLDS), (flat(47), FAILS), ((50 + 9 * WAVE).tolist(), OPEN)],
)
def test_a_difference_above_zero_holds_below_does_not_and_around_it_cannot_be_told(
    ditto: list[int], expected: str
) -> None:
    here, results = tables({"ditto": ditto, "local": (50 + WAVE).tolist()})
    found = answer(FedAGHN(), above("Ditto", "Local"), here, results)
    ran = [finding for finding in found.findings if finding.difference is not None]
    assert [finding.answer for finding in ran] == [expected]
    assert ran[0].difference == pytest.approx(np.mean(ditto) - 50)
    assert found.reduced


def test_the_interval_is_students_over_clients_of_the_mean_of_seeds() -> None:
    ditto, local = (60 + 3 * WAVE).tolist(), flat(55)
    here, results = tables({"ditto": ditto, "local": local}, seeds=2)
    (ran,) = [
        each
        for each in answer(FedAGHN(), above("Ditto", "Local"), here, results).findings
        if each.interval is not None
    ]
    half = stats.t.ppf(0.975, CLIENTS - 1) * np.std(3 * WAVE, ddof=1) / np.sqrt(CLIENTS)
    assert ran.units == CLIENTS
    assert ran.interval == pytest.approx((5 - half, 5 + half))


def test_groups_are_compared_by_their_means() -> None:
    here, results = tables({"local": flat(60), "fedamp": flat(50), "pfedhn": flat(40), "ditto": flat(45)})
    claim = Claim("", ("Local", "FedAMP", "pFedHN"), ("Ditto",), (WHOLE,), (REDUCED,))
    (ran,) = [
        each for each in answer(FedAGHN(), claim, here, results).findings if each.difference is not None
    ]
    assert ran.difference == pytest.approx((60 + 50 + 40) / 3 - 45)
    # CIFAR-10, Dirichlet 0.1, of Table 1: the published means of the same lines
    assert ran.published == pytest.approx((85.00 + 85.07 + 83.60) / 3 - 86.77)


def test_each_compares_the_lowest_of_the_first_with_the_highest_of_the_second() -> None:
    here, results = tables({"local": flat(60), "fedamp": flat(50), "ditto": flat(52), "cfl": flat(40)})
    claim = Claim("", ("Local", "FedAMP"), ("Ditto", "CFL"), (WHOLE,), (REDUCED,), each=True)
    (ran,) = [
        each for each in answer(FedAGHN(), claim, here, results).findings if each.difference is not None
    ]
    assert (ran.first, ran.second, ran.difference) == (("FedAMP",), ("Ditto",), pytest.approx(-2))


def test_a_place_where_a_line_was_not_run_says_nothing() -> None:
    here, results = tables({"local": flat(60)})
    found = answer(FedAGHN(), above("Ditto", "Local"), here, results)
    assert found.verdict == OPEN
    assert {finding.difference for finding in found.findings} == {None}


def test_one_place_of_three_is_not_every_place_nor_most() -> None:
    here, results = tables({"ditto": flat(60), "local": flat(50)})
    for most in (False, True):
        assert answer(FedAGHN(), above("Ditto", "Local", most=most), here, results).verdict == OPEN
    here, results = tables({"ditto": flat(40), "local": flat(50)})
    assert answer(FedAGHN(), above("Ditto", "Local"), here, results).verdict == FAILS
    assert answer(FedAGHN(), above("Ditto", "Local", most=True), here, results).verdict == OPEN


def test_runs_of_the_whole_protocol_come_before_reduced_ones() -> None:
    here, results = tables({"ditto": flat(60), "local": flat(50)}, WHOLE, ("cifar10", PLACE[1], "CNN"))
    found = answer(FedAGHN(), above("Ditto", "Local"), here, results)
    assert not found.reduced
    assert {finding.table for finding in found.findings} == {WHOLE}


@pytest.mark.parametrize(("ditto", "expected"), [(5_000_000, HOLDS), (6_000_000, FAILS)])
def test_numbers_without_spread_are_compared_as_they_are(ditto: int, expected: str) -> None:
    counts = {"ditto": flat(60), "local": flat(50)}
    here, results = tables(counts, ditto=ditto, local=5_000_000)
    claim = above("Local", "Ditto", exact=True, measure=TOTAL_MEGABYTES)
    (ran,) = [
        each for each in answer(FedAGHN(), claim, here, results).findings if each.difference is not None
    ]
    assert ran.difference == pytest.approx((5_000_000 - ditto) / 1e6)
    assert ran.answer == expected


def test_a_document_lists_every_claim_and_there_is_none_without_runs() -> None:
    listed = Claims("few", "few", (above("Ditto", "Local"), above("FedPAC", "Local")))
    here, results = tables({"ditto": flat(60), "local": flat(50)})
    made = claims(FedAGHN(), listed, tuple(here.values()), results)
    assert made is not None
    assert [len(view.rows) for view in made.document.views] == [2, 1]
    here, results = tables({"ditto": flat(60)})
    assert claims(FedAGHN(), listed, tuple(here.values()), results) is None


def test_the_studys_claims_name_tables_lines_and_points_that_there_are() -> None:
    plans = {experiment.name: plan_of(FedAGHN, experiment.name) for experiment in FedAGHN.experiments}
    for listed in CLAIMS:
        for claim in listed.claims:
            for name in (*claim.tables, *claim.reduced):
                titles = {FedAGHN().line_title(line) for line in plans[name].lines}
                points = {point.label for point in plans[name].experiment.points}
                assert titles.issuperset((*claim.first, *claim.second)), claim.text
                assert points.issuperset(claim.points or ()), claim.text


def test_the_registered_groups_hold_every_method_of_the_main_table_once() -> None:
    titles = {
        FedAGHN().line_title(line) for line in plan_of(FedAGHN, WHOLE).lines if line.method != "majority"
    }
    groups = [*SHARED, *ALONE, *PERSONALISED]
    assert sorted(groups) == sorted(titles)
