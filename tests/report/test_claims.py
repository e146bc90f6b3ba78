"""Claims on made-up runs: those that hold, that do not, and that can't be told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from stored_runs import MemoryStore
from study_cells import part_of, plan_of

from bench.frames.graded_cells import Results, collect
from bench.grids import expand, load_grid
from bench.grids.grid import ColumnMatch
from bench.report.claims import (
    FAILS,
    HOLDS,
    OPEN,
    UNMEASURED,
    answered,
    claim_document,
    deciding,
)
from bench.reports.fedaghn import FedAGHN
from bench.reports.fedsheafhn import FedSheafHN
from bench.spec import RunSpec
from bench.studies.claims import Claim, Claims
from bench.studies.measures import MEASURES
from bench.studies.study import Study

REDUCED, WHOLE = "table1_reduced", "table1"
CLIENTS = 20
PLACE = ("cifar10-sample", "dirichlet0.1-released", "CNN")
WAVE = np.where(np.arange(CLIENTS) % 2, 1, -1)
"""A pattern over clients whose mean is 0."""


Images = part_of(FedAGHN, REDUCED, WHOLE, grids=())
Cost = part_of(FedSheafHN, "server_cost", grids=(), split_grids=())


@cache
def specs(grid: str) -> dict[str, RunSpec]:
    return {run.spec.hash: run.spec for run in expand(load_grid(grid))}


def spec_of(digest: str, name: str) -> RunSpec:
    return specs({REDUCED: "fedaghn_reduced", WHOLE: "fedaghn_main"}[name])[digest]


def results_of(
    scores: Mapping[str, Sequence[int]],
    name: str = REDUCED,
    place: tuple[str, str, str] = PLACE,
    seeds: int = 2,
    **more: int,
) -> Results:
    """Runs of an experiment in which the methods of one place have these counts of 100 by client."""
    database = MemoryStore()
    for (column, line, point), planned in plan_of(FedAGHN, name).runs.items():
        if (column.dataset, column.scenario, point.label) == place and line.runs in scores and not line.reads:
            for seed in range(seeds):
                spec = spec_of(planned.hashes[seed], name)
                database.add_run(spec, list(scores[line.runs]), bytes_up=more.get(line.runs, 0))
    return collect(database, [Images()])


def flat(level: int) -> list[int]:
    return [level] * CLIENTS


def above(first: str, second: str, **more: Any) -> Claim:
    return Claim("first above second", (first,), (second,), (WHOLE,), (REDUCED,), **more)


def answers(claim: Claim, results: Results, study: type[Study] = Images) -> pd.DataFrame:
    """What the runs say at every place, and the answer to the claim as a whole."""
    places = answered(study(), results, results.cells, [claim])
    is_measured = (places["units"] > 0).any()
    return places.assign(whole=deciding(claim, places)["answer"] if is_measured else UNMEASURED)


def ran(places: pd.DataFrame) -> dict[Any, Any]:
    """The one place with runs."""
    (row,) = places[places["units"] > 0].to_dict("records")
    return row


@pytest.mark.parametrize(
    ("ditto", "expected"),
    [(flat(53), HOLDS), (flat(47), FAILS), ((50 + 9 * WAVE).tolist(), OPEN)],
)
def test_a_difference_above_zero_holds_below_does_not_and_around_it_cannot_be_told(
    ditto: list[int], expected: str
) -> None:
    """By Student's interval over clients of the mean of seeds."""
    results = results_of({"ditto": ditto, "local": (50 + WAVE).tolist()})
    row = ran(answers(above("Ditto", "Local"), results))
    assert (row["answer"], row["whole"]) == (expected, expected)
    half = stats.t.ppf(0.975, CLIENTS - 1) * np.std(ditto - WAVE, ddof=1) / np.sqrt(CLIENTS)
    difference = np.mean(ditto) - 50
    assert row["units"] == CLIENTS
    found = row["difference"], row["low"], row["high"]
    assert found == pytest.approx((difference, difference - half, difference + half))
    assert row["is_reduced"]


def test_clients_of_one_run_cannot_tell() -> None:
    results = results_of({"ditto": flat(53), "local": (50 + WAVE).tolist()}, seeds=1)
    row = ran(answers(above("Ditto", "Local"), results))
    assert (row["units"], row["difference"]) == (CLIENTS, pytest.approx(3.0))
    assert np.isnan(row["low"])
    assert (row["answer"], row["whole"]) == (OPEN, OPEN)


def test_groups_are_compared_by_their_means_and_each_by_the_closest() -> None:
    counts = {"local": flat(60), "fedamp": flat(50), "pfedhn": flat(40), "ditto": flat(45), "cfl": flat(30)}
    results = results_of(counts)
    groups = Claim("", ("Local", "FedAMP", "pFedHN"), ("Ditto",), (WHOLE,), (REDUCED,))
    row = ran(answers(groups, results))
    assert row["difference"] == pytest.approx((60 + 50 + 40) / 3 - 45)
    # CIFAR-10, Dirichlet 0.1, of Table 1: the published means of the same lines
    assert row["published"] == pytest.approx((85.00 + 85.07 + 83.60) / 3 - 86.77)
    each = Claim("", ("Local", "FedAMP"), ("Ditto", "CFL"), (WHOLE,), (REDUCED,), each=True)
    row = ran(answers(each, results))
    assert (row["first"], row["second"], row["difference"]) == ("FedAMP", "Ditto", pytest.approx(5))


@pytest.mark.parametrize(
    ("found", "every", "most"),
    [
        ([(HOLDS, 4.0), (HOLDS, 2.0), (HOLDS, 0.5)], 2, 1),
        ([(HOLDS, 4.0), (OPEN, -1.0), (OPEN, -2.0)], 2, 1),
        ([(HOLDS, 4.0), (FAILS, -1.0)], 1, 1),
        ([(HOLDS, 4.0), (FAILS, -3.0), (OPEN, -11.0)], 1, 2),  # one fails, though another is further down
        ([(HOLDS, 4.0), (OPEN, -8.0), (FAILS, -6.0), (FAILS, -9.0)], 3, 2),  # the better of two decides
    ],
)
def test_of_several_places_the_deciding_one_is_shown(
    found: Sequence[tuple[str, float]], every: int, most: int
) -> None:
    """Places by their answer, and by how much their interval lies within the range."""
    places = pd.DataFrame(found, columns=["answer", "distance"]).assign(units=2)
    assert deciding(above("", ""), places).name == every
    assert deciding(above("", "", most=True), places).name == most


def cost(by_clients: Mapping[int, Sequence[float]]) -> Results:
    """FedSheafHN's runs on Cora whose server takes so many seconds a round, one a seed."""
    database = MemoryStore()
    for (column, line, _), planned in plan_of(FedSheafHN, "server_cost").runs.items():
        if (column.dataset, line.title) == ("cora", "FedSheafHN") and column.clients in by_clients:
            for digest, seconds in zip(planned.hashes, by_clients[column.clients], strict=True):
                spec = specs("server_cost")[digest]
                total = seconds * spec.protocol.rounds
                database.add_run(spec, [50] * column.clients, seconds={"server": total})
    return collect(database, [Cost()])


@pytest.fixture(scope="module")
def around_one() -> Results:
    return cost({20: (0.99, 1.01)})


@pytest.mark.parametrize(
    ("limits", "expected"),
    [((0, 2), HOLDS), ((-np.inf, 1.5), HOLDS), ((2, 3), FAILS), ((1, 3), OPEN), ((-1.5, 0), FAILS)],
)
def test_an_interval_within_the_range_holds_and_one_outside_does_not(
    limits: tuple[float, float], expected: str, around_one: Results
) -> None:
    # mean 1, t(0.975, 1) * 0.02 / 2 = 0.127: from 0.873 to 1.127; without a second side the first itself
    claim = Claim("", ("FedSheafHN",), (), ("server_cost",), range=limits, measure=MEASURES["server_seconds"])
    assert ran(answers(claim, around_one, Cost))["answer"] == expected


def test_other_numbers_of_clients_are_compared_seed_by_seed_in_percent() -> None:
    claim = Claim(
        "",
        ("FedSheafHN",),
        ("FedSheafHN",),
        ("server_cost",),
        relative=True,
        only=ColumnMatch(clients=(100,)),
        second_clients=20,
        measure=MEASURES["server_seconds"],
    )
    row = ran(answers(claim, cost({20: (0.1, 0.2), 100: (0.15, 0.2)}), Cost))
    half = stats.t.ppf(0.975, 1) * 25  # of 50 and 0 percent
    assert (row["difference"], row["units"], row["high"]) == pytest.approx((25.0, 2, 25.0 + half))
    assert np.isnan(row["published"])  # the paper has another graph
    assert set(answers(claim, cost({20: (0.1, 0.2)}), Cost)["whole"]) == {UNMEASURED}


def test_a_mean_over_places_is_taken_by_seed() -> None:
    results = cost({20: (1.0, 2.0), 50: (3.0, 3.0), 100: (5.0, 7.0)})
    claim = Claim("", ("FedSheafHN",), (), ("server_cost",), average=True, measure=MEASURES["server_seconds"])
    (row,) = answers(claim, results, Cost).to_dict("records")
    half = stats.t.ppf(0.975, 1) / 2  # of 3 and 4
    assert (row["difference"], row["units"], row["low"]) == pytest.approx((3.5, 2, 3.5 - half))


def test_runs_of_the_whole_protocol_come_before_reduced_ones() -> None:
    counts = {"ditto": flat(60), "local": flat(50)}
    places = answers(above("Ditto", "Local"), results_of(counts, WHOLE, ("cifar10", PLACE[1], "CNN")))
    assert not places["is_reduced"].any()
    assert set(places["table"]) == {WHOLE}


@pytest.mark.parametrize(("ditto", "expected"), [(5_000_000, HOLDS), (6_000_000, FAILS)])
def test_numbers_without_spread_are_compared_as_they_are(ditto: int, expected: str) -> None:
    """By a measure that the table does not show."""
    results = results_of({"ditto": flat(60), "local": flat(50)}, ditto=ditto, local=5_000_000)
    row = ran(answers(above("Local", "Ditto", exact=True, measure=MEASURES["total_megabytes"]), results))
    assert row["difference"] == pytest.approx((5_000_000 - ditto) / 1e6)
    assert row["answer"] == expected


def test_a_claim_about_what_a_filter_leaves_out_is_not_answered_with_the_rest() -> None:
    results = results_of({"ditto": flat(60), "local": flat(50), "cfl": flat(90)})
    best = Claim("", ("Ditto",), ("Local", "CFL"), (REDUCED,), each=True)
    for methods, is_asked in ((("ditto", "local", "cfl"), True), (("ditto", "local"), False)):
        cells = results.cells[results.cells["method"].isin(methods)]
        assert answered(Images(), results, cells, [best]).empty != is_asked


def test_the_registered_groups_hold_every_method_of_the_main_table_once() -> None:
    titles = {
        FedAGHN().line_title(line) for line in plan_of(FedAGHN, WHOLE).lines if line.method != "majority"
    }
    alone_above_shared, personalised_above_alone, *_ = FedAGHN.claims[0].claims
    groups = [*alone_above_shared.first, *alone_above_shared.second, *personalised_above_alone.first]
    assert sorted(groups) == sorted(titles)


def seconds(text: str, high: float, *clients: int) -> Claim:
    """That FedSheafHN's server takes fewer seconds a round, in federations of so many clients."""
    only = ColumnMatch(clients=clients)
    limits = (0.0, high)
    return Claim(
        text,
        ("FedSheafHN",),
        (),
        ("server_cost",),
        range=limits,
        only=only,
        measure=MEASURES["server_seconds"],
    )


FEW = Claims(
    "few",
    "Few",
    (
        seconds("less than two", 2.0, 20, 100),
        seconds("less than one, with 100 clients", 1.0, 100),
        seconds("less than two, with 50 clients", 2.0, 50),
    ),
)


def test_every_claim_has_its_answer_and_the_deciding_place() -> None:
    results = cost({20: (0.5, 0.51), 100: (1.5, 1.51)})
    found = claim_document(Cost(), results, results.cells, FEW)
    assert found is not None
    first, second, third = ([value.text for value in values] for _, values in found.views[0].rows)
    assert (first[0], second[0], third[0]) == (HOLDS, FAILS, UNMEASURED)
    # Both places hold; 1.505 is nearer to the end of the range than 0.505.
    assert "100" in first[1]
    assert "1.505" in first[1].replace("+", "") or "1.51" in first[1]
    assert third[1] == "-"
    answers_by_place = found.records["differences"]["answer"]
    assert answers_by_place[answers_by_place != UNMEASURED].tolist() == [HOLDS, HOLDS, FAILS]
    assert found.summary.startswith("1 of 3 hold")


def test_there_is_none_without_runs() -> None:
    results = cost({20: (0.5, 0.51)})
    of_fifty = replace(FEW, claims=FEW.claims[2:])
    assert claim_document(Cost(), results, results.cells, of_fifty) is None
