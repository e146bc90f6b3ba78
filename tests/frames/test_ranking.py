"""Who competes, paired tests in every task, ranks and groups of ties."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from ranked_runs import CORA_TASKS, LEVELS, OVER, filled, ranking_of
from scipy import stats
from stored_runs import MemoryStore
from toy_study import ToyStudy

from bench.frames.graded_cells import collect
from bench.frames.ranking import RANKS, Ranking, competitors, rank
from bench.reports.fedaghn import FedAGHN
from bench.reports.fedhgn import FedHGN
from bench.spec import Protocol
from bench.studies.study import Study


@pytest.mark.parametrize(("count", "counts"), [(2, False), (3, True), (5, True)])
def test_a_column_that_has_only_begun_counts_for_no_rank(count: int, counts: bool) -> None:
    """Six methods compete in the fullest columns; half of them are three."""
    database = filled()
    for method, (scenario, clients) in product(("flow", "fedprox"), CORA_TASKS):
        correct = [70] * (30 if scenario == OVER else 6)
        database.add(method, 0, correct, scenario=scenario, clients=clients)
    for method in ("local", "fedavg", "fedper", "flow", "fedprox")[:count]:
        database.add(method, 0, [50, 51], dataset="citeseer", clients=10)
    ranking = ranking_of(database)
    assert ranking is not None
    assert len(ranking.ranks) == 6
    assert ("citeseer" in set(ranking.cells["dataset"])) == counts
    assert (set(groups_of(ranking)) == {*LEVELS, "flow", "fedprox"}) == (not counts)


def groups_of(ranking: Ranking) -> dict[str, int]:
    """Method -> its group of ties over tasks, of those that have one."""
    return ranking.ranks.set_index("method")["group"].dropna().to_dict()


def named(study: Study, database: MemoryStore, *asked: str) -> set[str]:
    """The competitors among the methods that a request asks for, or among all."""
    results = collect(database, [study])
    cells = results.cells[results.cells["method"].isin(asked)] if asked else results.cells
    ranking = rank(study, results, cells, asked)
    return set(ranking.titles) if ranking else set()


def test_the_paper_s_methods_compete_and_no_other_that_was_run() -> None:
    database = filled()
    database.add("fedsheafhn_released", 0, [99] * 6)
    own = ("local", "fedavg", "fedprox", "fedper", "pfedhn", "fggp", "pfedgraph", "fedpub", "flow")
    assert named(ToyStudy(), database) == {*own, "fedsheafhn"}


def test_a_method_that_the_request_names_competes_too_but_no_reference() -> None:
    database = filled()
    database.add("mine", 0, [70] * 6)
    asked = ("mine", "local", "majority", "fedavg_ft")
    # Fine-tuned FedAvg shows FedAvg's trained models: alone here, it stands for them.
    assert named(ToyStudy(), database, *asked) == {"mine", "local", "fedavg_ft"}


def test_unranked_rows_are_out_and_other_stages_of_the_same_runs_are_in() -> None:
    def titles(study: Study) -> set[str]:
        places = collect(filled(CORA_TASKS[:1]), [study]).places.assign(document_number=0)
        documents = [experiment.name for experiment in study.experiments if experiment.competes]
        return set(competitors(study, places[places["document"].isin(documents)]))

    assert "global_hgnn" not in titles(FedHGN())
    assert {"fedavg", "fedavg_ft"} <= titles(FedAGHN())


def test_ranks_groups_and_the_difference_to_local() -> None:
    ranking = ranking_of(filled())
    assert ranking is not None
    assert ranking.task_count == 4
    assert list(ranking.ranks.columns) == [*RANKS, "planned"]
    rows = ranking.ranks.set_index("method")
    assert set(rows.index[:2]) == {"local", "fedsheafhn"}
    means = ranking.scores.to_dict("records")
    for method in LEVELS:
        # Equal accuracies, but for the order in which they are added up, share the mean of their places.
        places = [
            1
            + sum(other > here[method] + 1e-6 for other in here.values())
            + (sum(abs(other - here[method]) < 1e-6 for other in here.values()) - 1) / 2
            for here in means
        ]
        assert rows.loc[method, "rank"] == pytest.approx(np.mean(places))
        assert 1 <= rows.loc[method, "low"] <= rows.loc[method, "rank"] <= rows.loc[method, "high"] <= 4
        below = [here[method] - here["local"] for here in means]
        assert rows.loc[method, "minus_baseline"] == pytest.approx(np.mean(below))
    # Twenty points apart, the bad methods are never before the good ones.
    assert rows.loc[["fedavg", "fedper"], "low"].min() > rows.loc[["local", "fedsheafhn"], "high"].max() - 1
    assert rows["group"].to_dict() == {"local": 1, "fedsheafhn": 1, "fedavg": 2, "fedper": 2}


def test_a_single_task_has_the_groups_of_its_own_tests() -> None:
    ranking = ranking_of(filled(CORA_TASKS[:1]))
    assert ranking is not None
    groups = groups_of(ranking)
    assert groups == ranking.cells.set_index("method")["group"].to_dict()
    assert {groups["local"], groups["fedavg"]} == {1, 2}


def test_two_tasks_are_ranked_but_not_tested() -> None:
    ranking = ranking_of(filled(CORA_TASKS[:2]))
    assert ranking is not None
    assert ranking.over_tasks.empty
    assert ranking.ranks["group"].isna().all()
    assert ranking.ranks["low"].notna().all()


def test_paired_differences_are_those_of_the_stored_clients() -> None:
    database = MemoryStore()
    first, second = [[70, 82, 91], [72, 80, 90]], [[69, 75, 90], [70, 73, 85]]
    for seed in (0, 1):
        database.add("local", seed, first[seed])
        database.add("fedavg", seed, second[seed])
    database.add("local", 2, [10, 10, 10])  # no partner
    ranking = ranking_of(database)
    assert ranking is not None
    (pair,) = ranking.tests.to_dict("records")
    gaps = (np.array(first) - np.array(second)).mean(axis=0)
    assert [pair[name] for name in ("first", "second", "unit", "units")] == ["local", "fedavg", "client", 3]
    assert pair["difference"] == pytest.approx(gaps.mean())
    assert pair["p"] == pytest.approx(stats.ttest_1samp(gaps, 0).pvalue)


class Pooled(FedHGN):
    """Its usual settings are those that the runs have."""

    grids = ()


def test_pooled_accuracies_are_compared_pooled_over_partitions() -> None:
    database = MemoryStore()
    options: dict[str, Any] = {"dataset": "coraca", "scenario": "label-dirichlet", "clients": 3}
    options["protocol"] = Protocol(rounds=200, local_epochs=3, split=(10, 20, 40))
    for seed in (0, 1, 2):
        options["partition_hash"] = f"p{seed}"
        for method, right in (("local_hgnn", 50), ("fedhgn", 60 + seed)):
            database.add(method, seed, [right, 30], samples=[100, 300], **options)
    ranking = ranking_of(database, Pooled())
    assert ranking is not None
    (pair,) = ranking.tests.to_dict("records")
    # (10 + seed) more of 400 samples
    assert (pair["unit"], pair["units"]) == ("partition", 3)
    assert pair["difference"] == pytest.approx(-100 * 11 / 400)
    (means,) = ranking.scores.to_dict("records")
    assert pair["difference"] == pytest.approx(means["local_hgnn"] - means["fedhgn"])


def test_runs_of_an_unknown_partition_are_not_paired() -> None:
    database = MemoryStore()
    for method in ("local", "fedavg"):
        database.add(method, 0, [70, 80], partition_hash="")
    ranking = ranking_of(database)
    assert ranking is not None
    assert ranking.tests["verdict"].tolist() == ["no test"]


def test_nothing_to_compare_gives_no_ranking() -> None:
    database = MemoryStore()
    database.add("local", 0, [70, 80])
    database.add("fedavg", 0, [70, 80], clients=20)
    database.add("majority", 0, [70, 80])
    assert ranking_of(database) is None


class Twice(ToyStudy):
    """Its first table that compares methods stands there twice."""

    experiments = (*ToyStudy.experiments, replace(ToyStudy.experiments[0], name="again"))


def test_a_column_in_two_tables_is_one_task() -> None:
    once, twice = (ranking_of(filled(), study) for study in (ToyStudy(), Twice()))
    assert once is not None
    assert twice is not None
    assert once.scores.equals(twice.scores)
