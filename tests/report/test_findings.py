"""What a study comes to: by which cell a value is judged, and the sentences."""

from types import SimpleNamespace
from typing import cast

import pandas as pd
import pytest
from stored_runs import MemoryStore
from study_cells import main_tables
from toy_study import ToyStudy

from bench.report.document import Score
from bench.report.findings import Findings, agreement_by_paper, judged_cells, published_sentence
from bench.studies.cells import Selection
from bench.studies.published import published
from bench.studies.ranking import Ranking, rank
from bench.studies.results import Results
from bench.studies.settings import Column

CORA_10 = Column("cora", "non-overlapping", 10)

TITLES = ["FedSheafHN", "FED-PUB", "FedAvg", "Local", "FedPer", "Flow"]


def first_sentence(leaders: int, tested: bool = True) -> str:
    """The sentence on six methods over nine tasks of which the first so many are in group 1."""
    places = range(len(TITLES))
    table = pd.DataFrame(
        {
            "method": [title.lower() for title in TITLES],
            "title": TITLES,
            "rank": [1.5 + place for place in places],
            "low": [1.0 + place for place in places],
            "high": [2.25 + place for place in places],
            "group": pd.array([1 + (place >= leaders) if tested else pd.NA for place in places], "Int64"),
        }
    )
    ranking = SimpleNamespace(
        table=table,
        tasks=[None] * 9,
        study=ToyStudy(),
        baseline_title="Local",
        leaders={"cora": "flow"},
        dataset_comparisons=[],
    )
    (sentence,) = Findings(ToyStudy(), [], cast(Ranking, ranking)).headline
    return sentence


@pytest.mark.parametrize(
    ("leaders", "named"),
    [
        (1, {"FedSheafHN"}),
        (2, {"FedSheafHN", "FED-PUB"}),
        (3, {"FedSheafHN", "FED-PUB", "FedAvg"}),
        (5, {"FedSheafHN", "Local"}),  # five are counted; the baseline is worth a word
    ],
)
def test_few_methods_that_are_first_together_are_named_and_more_are_counted(
    leaders: int, named: set[str]
) -> None:
    sentence = first_sentence(leaders)
    assert {title for title in TITLES if title in sentence} == named
    assert "1.0 to 2.2" in sentence  # the interval of the best
    assert "95\N{NO-BREAK SPACE}%" in sentence
    assert "6 methods over 9 federations" in sentence


def test_without_tests_nobody_is_said_to_be_apart_from_the_others() -> None:
    assert {title for title in TITLES if title in first_sentence(2, tested=False)} == {"FedSheafHN"}


def test_federations_of_one_data_set_count_once_in_a_test_of_their_own() -> None:
    """Local less FedAvg is 12 points in both federations of Cora and 6 in the other four: over six tasks
    t = 8 / (3.10 / 6**.5), p = 0.001, but over three data sets t = 8 / (3.46 / 3**.5), p = 0.06. FedPer is
    10, 10 and 11 points behind.
    """
    behind = {"fedavg": {"cora": 12}, "fedper": {"pubmed": 11}}
    database = MemoryStore()
    for dataset in ("cora", "citeseer", "pubmed"):
        for clients in (10, 20):
            for method, usual in (("local", 0), ("fedavg", 6), ("fedper", 10)):
                score = 80 - behind.get(method, {}).get(dataset, usual)
                database.add(method, 0, [score] * clients, dataset=dataset, clients=clients)
    study = ToyStudy()
    ranking = rank(study, main_tables(study, Results(database, {}), Selection()), Selection())
    assert ranking is not None
    assert ranking.groups == {"local": 1, "fedavg": 2, "fedper": 2}
    tests = {(test.first, test.second): test for test in ranking.dataset_comparisons}
    assert tests["local", "fedavg"].p == pytest.approx(0.0572, abs=5e-4)
    assert {(test.unit, test.units) for test in tests.values()} == {("data set", 3)}
    findings = Findings(study, [], ranking)
    assert "FedPer is significantly worse than Local" in findings.by_dataset
    assert "FedAvg" not in findings.by_dataset
    assert "not over the 3 data sets" in findings.headline[0]


@pytest.mark.parametrize(("citeseer", "named"), [(90, {"FedAvg on", "Local on"}), (50, set())])
def test_another_leader_on_another_data_set_is_named(citeseer: int, named: set[str]) -> None:
    database = MemoryStore()
    for seed in (0, 1):
        for dataset, fedavg in (("cora", 60), ("citeseer", citeseer)):
            database.add("local", seed, [70] * 10, dataset=dataset)
            database.add("fedavg", seed, [fedavg] * 10, dataset=dataset)
        database.add("flow", seed, [95] * 10)  # on one of two data sets, where it leads
        database.add("flow", seed, [10] * 10, clients=20)
        database.add("local", seed, [70] * 10, clients=20)
        database.add("fedavg", seed, [60] * 10, clients=20)
    study, results = ToyStudy(), Results(database, {})
    ranking = rank(study, main_tables(study, results, Selection()), Selection())
    assert ranking is not None
    sentence = Findings(study, [], ranking).leaders
    assert {text for text in ("FedAvg on", "Local on", "Flow on") if text in sentence} == named
    # Ranks of Cora's two tasks: Local 2 and 1, Flow 1 and 3.
    assert ranking.leaders["cora"] == "local"


@pytest.mark.parametrize(
    ("counts", "published", "sentence"),
    [
        ({}, 9, "Of 9 published values none is measured under its protocol yet."),
        ({"above": 1}, 9, "Of 9 published values 1 is measured, of which 1 lies above it."),
        (
            {"reproduced": 3, "compatible": 2, "uninformative": 1, "below": 4, "not comparable": 1},
            20,
            "Of 20 published values 11 are measured, of which 5 agree with the published one, "
            "4 lie below it and 2 cannot be judged.",
        ),
        (
            {"reproduced": 2},
            2,
            "All 2 published values are measured, of which 2 agree with the published one.",
        ),
    ],
)
def test_published_values_are_counted_in_one_sentence(
    counts: dict[str, int], published: int, sentence: str
) -> None:
    """The papers of a study are counted together."""
    pairs = tuple(counts.items())
    papers = [Score("first", pairs[:-1], published - 1), Score("second", pairs[-1:], 1)]
    assert published_sentence(papers) == sentence


def test_values_that_agree_are_counted_by_paper() -> None:
    committed = Score("committed runs", (("reproduced", 7), ("compatible", 64), ("above", 1)), 72)
    printed = Score("the table", (("compatible", 3), ("below", 9)), 38)
    sentence = agreement_by_paper([printed, committed])
    assert sentence.index("71 of committed runs") < sentence.index("3 of the table")
    assert agreement_by_paper([committed]) == agreement_by_paper([]) == ""


def test_every_published_value_is_judged_once_by_the_usual_setting() -> None:
    database = MemoryStore()
    for seed in (0, 1, 2):
        database.add("local", seed, [71, 71 + seed % 2])  # 71.17
    for seed in (0, 1):  # a second setting of one cell, with fewer runs: not the usual one
        database.add("local", seed, [20], hyper={"rate": 0.5})
    study, results = ToyStudy(), Results(database, {})
    found = judged_cells(main_tables(study, results, Selection()))
    (local,) = [
        cell
        for value, cell in found.items()
        if (value.paper, value.table, cell.column, cell.method) == ("toy", "Table 1", CORA_10, "local")
    ]
    assert local.verdict == "reproduced"
    assert {cell.rule for cell in found.values()} == {"best_val"}
    assert set(found) == {value for paper in study.papers for value in published(paper, study.published)}
