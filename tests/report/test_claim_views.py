"""Claims on made-up runs: those that hold, that do not, and that can't be told."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from stored_runs import MemoryStore
from study_cells import cells_in, plan_of

from bench.grids import expand, load_grid
from bench.grids.grid import ColumnMatch
from bench.report.claim_views import FAILS, HOLDS, OPEN, UNMEASURED, Answer, Finding, answer, claims
from bench.reports.fedaghn import FedAGHN
from bench.reports.fedaghn.claims import ALONE, PERSONALISED, SHARED
from bench.reports.fedhgn import FedHGN
from bench.reports.fedsheafhn import FedSheafHN
from bench.spec import RunSpec
from bench.studies.cells import Cells, Selection
from bench.studies.claims import Claim, Claims
from bench.studies.measures import SERVER_SECONDS, TOTAL_MEGABYTES
from bench.studies.results import Results
from bench.studies.study import Study

REDUCED, WHOLE = "table1_reduced", "table1"
CLIENTS = 20
PLACE = ("cifar10-sample", "dirichlet0.1-released", "CNN")
WAVE = np.where(np.arange(CLIENTS) % 2, 1, -1)
"""A pattern over clients whose mean is 0."""


def tables(
    scores: Mapping[str, Sequence[int]],
    name: str = REDUCED,
    place: tuple[str, str, str] = PLACE,
    seeds: int = 2,
    **more: int,
) -> dict[str, Cells]:
    """An experiment in which the methods of one place have these counts of 100 by client."""
    database = MemoryStore()
    for (column, line, point), planned in plan_of(FedAGHN, name).runs.items():
        if (column.dataset, column.scenario, point.label) == place and line.runs in scores and not line.reads:
            for seed in range(seeds):
                database.add_run(
                    spec_of(planned.hashes[seed], name),
                    list(scores[line.runs]),
                    bytes_up=more.get(line.runs, 0),
                )
    results = Results(database, {})
    return {name: cells_in(FedAGHN, name, results) for name in (REDUCED, WHOLE)}


@cache
def specs(grid: str) -> dict[str, RunSpec]:
    return {run.spec.hash: run.spec for run in expand(load_grid(grid))}


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
    here = tables({"ditto": ditto, "local": (50 + WAVE).tolist()})
    claim_answer = answer(above("Ditto", "Local"), here)
    (ran,) = claim_answer.measured_findings
    assert (ran.answer, claim_answer.verdict) == (expected, expected)
    assert ran.difference == pytest.approx(np.mean(ditto) - 50)
    assert claim_answer.is_reduced


def test_the_interval_is_students_over_clients_of_the_mean_of_seeds() -> None:
    ditto, local = (60 + 3 * WAVE).tolist(), flat(55)
    here = tables({"ditto": ditto, "local": local})
    (ran,) = answer(above("Ditto", "Local"), here).measured_findings
    half = stats.t.ppf(0.975, CLIENTS - 1) * np.std(3 * WAVE, ddof=1) / np.sqrt(CLIENTS)
    assert len(ran.differences) == CLIENTS
    assert ran.interval == pytest.approx((5 - half, 5 + half))


def test_clients_of_one_run_cannot_tell() -> None:
    here = tables({"ditto": flat(53), "local": (50 + WAVE).tolist()}, seeds=1)
    claim_answer = answer(above("Ditto", "Local"), here)
    (ran,) = claim_answer.measured_findings
    assert (len(ran.differences), ran.difference, ran.interval) == (CLIENTS, pytest.approx(3.0), None)
    assert (ran.answer, claim_answer.verdict) == (OPEN, OPEN)


def test_groups_are_compared_by_their_means() -> None:
    here = tables({"local": flat(60), "fedamp": flat(50), "pfedhn": flat(40), "ditto": flat(45)})
    claim = Claim("", ("Local", "FedAMP", "pFedHN"), ("Ditto",), (WHOLE,), (REDUCED,))
    (ran,) = answer(claim, here).measured_findings
    assert ran.difference == pytest.approx((60 + 50 + 40) / 3 - 45)
    # CIFAR-10, Dirichlet 0.1, of Table 1: the published means of the same lines
    assert ran.published == pytest.approx((85.00 + 85.07 + 83.60) / 3 - 86.77)


def test_each_compares_the_lowest_of_the_first_with_the_highest_of_the_second() -> None:
    here = tables({"local": flat(60), "fedamp": flat(50), "ditto": flat(52), "cfl": flat(40)})
    claim = Claim("", ("Local", "FedAMP"), ("Ditto", "CFL"), (WHOLE,), (REDUCED,), each=True)
    (ran,) = answer(claim, here).measured_findings
    assert [cell.title for cell in (*ran.first, *ran.second)] == ["FedAMP", "Ditto"]
    assert ran.difference == pytest.approx(-2)


def test_a_place_where_a_line_was_not_run_says_nothing() -> None:
    here = tables({"local": flat(60)})
    claim_answer = answer(above("Ditto", "Local"), here)
    assert (claim_answer.verdict, claim_answer.measured_findings) == (UNMEASURED, [])
    assert len(claim_answer.findings) > 1


@pytest.mark.parametrize("most", [False, True])
@pytest.mark.parametrize(("ditto", "expected"), [(60, HOLDS), (40, FAILS)])
def test_places_that_were_not_run_have_no_say(ditto: int, expected: str, most: bool) -> None:
    here = tables({"ditto": flat(ditto), "local": flat(50)})
    claim_answer = answer(above("Ditto", "Local", most=most), here)
    assert claim_answer.verdict == expected
    assert len(claim_answer.findings) > len(claim_answer.measured_findings) == 1


@pytest.mark.parametrize(
    ("answers", "every", "most"),
    [
        ((HOLDS, HOLDS, FAILS), FAILS, HOLDS),
        ((HOLDS, OPEN, OPEN), OPEN, OPEN),
        ((HOLDS, FAILS, FAILS), FAILS, FAILS),
        ((HOLDS, FAILS), FAILS, FAILS),
        ((HOLDS, HOLDS, UNMEASURED), HOLDS, HOLDS),
    ],
)
def test_every_place_decides_or_most_of_them(answers: Sequence[str], every: str, most: str) -> None:
    values = {HOLDS: [1.0, 1.1], FAILS: [-1.0, -1.1], OPEN: [-1.0, 1.0], UNMEASURED: []}
    for claim, expected in ((above("", ""), every), (above("", "", most=True), most)):
        findings = [
            Finding(claim, "", "", (), (), pd.Series(values[name], dtype=float), np.nan) for name in answers
        ]
        assert [finding.answer for finding in findings] == list(answers)
        assert Answer(claim, findings).verdict == expected


@pytest.mark.parametrize(
    ("places", "every", "most"),
    [
        ([(5.0, 1.0), (3.0, 1.0), (4.0, 3.5)], 2, 1),  # all hold: from 4, 2 and 0.5
        ([(5.0, 1.0), (-2.0, 1.0), (-2.0, 9.0)], 1, 2),  # one fails, though another may be further down
        ([(5.0, 1.0), (1.0, 9.0), (-5.0, 1.0), (-8.0, 1.0)], 3, 2),  # half fail: the better of them decides
    ],
)
def test_of_several_places_the_deciding_one_is_shown(
    places: Sequence[tuple[float, float]], every: int, most: int
) -> None:
    """Places by the middle of their interval and half its width."""
    for claim, decisive in ((above("", ""), every), (above("", "", most=True), most)):
        findings = []
        for middle, half in places:
            step = half / stats.t.ppf(0.975, 1)  # the standard error of two numbers that lie so far off
            findings.append(Finding(claim, "", "", (), (), pd.Series([middle - step, middle + step]), np.nan))
        assert findings[0].interval == pytest.approx((places[0][0] - places[0][1], sum(places[0])))
        claim_answer = Answer(claim, findings)
        assert claim_answer.deciding_finding is findings[decisive]
        assert claim_answer.deciding_finding.answer == claim_answer.verdict


@pytest.mark.parametrize(
    ("limits", "expected"),
    [((0, 2), HOLDS), ((-np.inf, 1.5), HOLDS), ((2, 3), FAILS), ((1, 3), OPEN), ((-1.5, 0), FAILS)],
)
def test_an_interval_within_the_range_holds_and_one_outside_does_not(
    limits: tuple[float, float], expected: str
) -> None:
    # mean 1, t(0.975, 2) * 0.1 / sqrt(3): from 0.75 to 1.25
    values = pd.Series([0.9, 1.0, 1.1])
    assert Finding(above("", "", range=limits), "", "", (), (), values, np.nan).answer == expected


def server_seconds(by_clients: Mapping[int, Sequence[float]]) -> dict[str, Cells]:
    """FedSheafHN's runs on Cora whose server takes so many seconds a round, one a seed."""
    database = MemoryStore()
    for (column, line, _), planned in plan_of(FedSheafHN, "server_cost").runs.items():
        if (column.dataset, line.title) == ("cora", "FedSheafHN") and column.clients in by_clients:
            for digest, seconds in zip(planned.hashes, by_clients[column.clients], strict=True):
                spec = specs("server_cost")[digest]
                total = seconds * spec.protocol.rounds
                database.add_run(spec, [50] * column.clients, seconds={"server": total})
    results = Results(database, {})
    return {"server_cost": cells_in(FedSheafHN, "server_cost", results)}


def test_other_numbers_of_clients_are_compared_seed_by_seed_in_percent() -> None:
    here = server_seconds({20: (0.1, 0.2), 100: (0.15, 0.2)})
    claim = Claim(
        "",
        ("FedSheafHN",),
        ("FedSheafHN",),
        ("server_cost",),
        relative=True,
        only=ColumnMatch(clients=(100,)),
        second_clients=20,
        measure=SERVER_SECONDS,
    )
    (ran,) = answer(claim, here).measured_findings
    assert ran.differences.tolist() == pytest.approx([50.0, 0.0])
    assert np.isnan(ran.published)  # the paper has another graph
    assert answer(claim, server_seconds({20: (0.1, 0.2)})).verdict == UNMEASURED


def test_a_mean_over_places_is_taken_by_seed() -> None:
    here = server_seconds({20: (1.0, 2.0), 50: (3.0, 3.0), 100: (5.0, 7.0)})
    lines = ("FedSheafHN",), (), ("server_cost",)
    (ran,) = answer(Claim("", *lines, average=True, measure=SERVER_SECONDS), here).findings
    assert ran.differences.tolist() == pytest.approx([3.0, 4.0])


def test_without_a_second_side_the_first_lies_in_the_range_itself() -> None:
    here = server_seconds({20: (1.0, 1.1)})
    for limits, expected in (((0.0, 3.0), HOLDS), ((3.0, 4.0), FAILS)):
        claim = Claim("", ("FedSheafHN",), (), ("server_cost",), range=limits, measure=SERVER_SECONDS)
        assert answer(claim, here).verdict == expected


def test_runs_of_the_whole_protocol_come_before_reduced_ones() -> None:
    here = tables({"ditto": flat(60), "local": flat(50)}, WHOLE, ("cifar10", PLACE[1], "CNN"))
    claim_answer = answer(above("Ditto", "Local"), here)
    assert not claim_answer.is_reduced
    assert {finding.table for finding in claim_answer.findings} == {WHOLE}


@pytest.mark.parametrize(("ditto", "expected"), [(5_000_000, HOLDS), (6_000_000, FAILS)])
def test_numbers_without_spread_are_compared_as_they_are(ditto: int, expected: str) -> None:
    counts = {"ditto": flat(60), "local": flat(50)}
    here = tables(counts, ditto=ditto, local=5_000_000)
    claim = above("Local", "Ditto", exact=True, measure=TOTAL_MEGABYTES)
    (ran,) = answer(claim, here).measured_findings
    assert ran.difference == pytest.approx((5_000_000 - ditto) / 1e6)
    assert ran.answer == expected


def test_a_document_lists_every_claim_and_there_is_none_without_runs() -> None:
    listed = Claims("few", "few", (above("Ditto", "Local"), above("FedPAC", "Local")))
    here = tables({"ditto": flat(60), "local": flat(50)})
    document = claims(FedAGHN(), listed, tuple(here.values()))
    assert document is not None
    (listing,), (places,) = document.views, document.details
    assert [entries[0].text for _, entries in listing.rows] == [HOLDS, UNMEASURED]
    assert [entries[0].text for _, entries in places.rows].count(HOLDS) == 1
    here = tables({"ditto": flat(60)})
    assert claims(FedAGHN(), listed, tuple(here.values())) is None


def test_a_claim_at_several_places_has_the_interval_of_one_of_them() -> None:
    database = MemoryStore()
    plan = plan_of(FedAGHN, REDUCED).runs
    for number, ((_, line, point), planned) in enumerate(plan.items()):
        if point.label == PLACE[2] and line.runs in ("ditto", "local") and not line.reads:
            wave = number * WAVE if line.runs == "ditto" else 0 * WAVE
            scores = (70 + wave if line.runs == "ditto" else 50 + wave).tolist()
            for digest in planned.hashes[:2]:
                database.add_run(spec_of(digest, REDUCED), scores)
    results = Results(database, {})
    here = {name: cells_in(FedAGHN, name, results) for name in (REDUCED, WHOLE)}
    document = claims(FedAGHN(), Claims("few", "few", (above("Ditto", "Local"),)), tuple(here.values()))
    assert document is not None
    ((_, (_, difference)),) = document.views[0].rows
    intervals = [entries[2].text for _, entries in document.details[0].rows if entries[0].text == HOLDS]
    assert len(intervals) > 1
    # the widest interval around the same difference goes down furthest
    widest = max(intervals, key=lambda text: float(text.split(", ")[1].rstrip("]")))
    assert widest in difference.text


def test_a_claim_without_runs_names_its_grid_and_one_of_another_table_is_left_out() -> None:
    listed = Claims("few", "few", (above("Ditto", "Local"), above("FedPAC", "Local")))
    here = tables({"ditto": flat(60), "local": flat(50)})
    document = claims(FedAGHN(), listed, (here[REDUCED],))
    assert document is not None
    (table,) = document.views
    assert "fedaghn_reduced" in " ".join(entry.text for entry in table.rows[1][1])
    elsewhere = Claims(
        "few", "few", (*listed.claims, replace(listed.claims[0], tables=("table2",), reduced=()))
    )
    again = claims(FedAGHN(), elsewhere, (here[REDUCED],))
    assert again is not None
    assert len(again.views[0].rows) == 2


def test_a_claim_about_methods_that_a_filter_leaves_out_is_not_answered_with_the_rest() -> None:
    results = tables({"ditto": flat(60), "local": flat(50), "cfl": flat(90)})[REDUCED].results
    best = Claim("", ("Ditto",), ("Local", "CFL"), (REDUCED,), each=True)
    listed = Claims("few", "few", (best, above("Ditto", "Local")))
    for methods, shown in ((("ditto", "local", "cfl"), 2), (("ditto", "local"), 1)):
        cells = cells_in(FedAGHN, REDUCED, results, Selection(methods=frozenset(methods)))
        document = claims(FedAGHN(), listed, (cells,))
        assert document is not None
        assert len(document.views[0].rows) == shown


@pytest.mark.parametrize("study", [FedAGHN, FedHGN, FedSheafHN])
def test_the_studys_claims_name_tables_lines_points_and_clients_that_there_are(study: type[Study]) -> None:
    plans = {experiment.name: plan_of(study, experiment.name) for experiment in study.experiments}
    for claim in (claim for listed in study.claims for claim in listed.claims):
        for name in (*claim.tables, *claim.reduced):
            titles = {study().line_title(line) for line in plans[name].lines}
            points = {point.label for point in plans[name].experiment.points}
            columns = [
                column
                for column in plans[name].columns
                if claim.only.has(column.dataset, column.scenario, column.clients)
            ]
            assert titles.issuperset((*claim.first, *claim.second)), claim.text
            assert points.issuperset(claim.points or ()), claim.text
            assert columns, claim.text
            if claim.second_clients:
                others = {replace(column, clients=claim.second_clients) for column in columns}
                assert others & {*plans[name].columns}, claim.text


def test_the_registered_groups_hold_every_method_of_the_main_table_once() -> None:
    titles = {
        FedAGHN().line_title(line) for line in plan_of(FedAGHN, WHOLE).lines if line.method != "majority"
    }
    groups = [*SHARED, *ALONE, *PERSONALISED]
    assert sorted(groups) == sorted(titles)
