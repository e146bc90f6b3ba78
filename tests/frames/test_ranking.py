"""Who competes, paired tests in every task, ranks and groups of ties."""

from __future__ import annotations

from dataclasses import astuple, replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from ranked_runs import CORA_TASKS, LEVELS, OVER, filled, ranking_of
from scipy import stats
from stored_runs import MemoryStore
from toy_study import ToyStudy

from bench.frames.graded_cells import collect
from bench.frames.ranking import RANKS, Ranking, rank
from bench.grids import load_grid, plan
from bench.reports.fedaghn import FedAGHN
from bench.reports.fedhgn import FedHGN
from bench.spec import Protocol


@pytest.mark.parametrize(("count", "counts"), [(2, False), (3, True)])
def test_a_column_that_has_only_begun_counts_for_no_rank(count: int, counts: bool) -> None:
    """Six methods compete in the fullest columns; half of them are three."""
    database = filled()
    for method, (scenario, clients) in product(("flow", "fedprox"), CORA_TASKS):
        correct = [70] * (30 if scenario == OVER else 6)
        database.add(method, 0, correct, scenario=scenario, clients=clients)
    for method in ("local", "fedavg", "fedper")[:count]:
        database.add(method, 0, [50, 51], dataset="citeseer", clients=10)
    ranking = ranking_of(database)
    assert ranking is not None
    assert len(ranking.ranks) == 6
    assert ("citeseer" in set(ranking.cells["dataset"])) == counts
    assert (set(groups_of(ranking)) == {*LEVELS, "flow", "fedprox"}) == (not counts)


def groups_of(ranking: Ranking) -> dict[str, int]:
    """Method -> its group of ties over tasks, of those that have one."""
    return ranking.ranks.set_index("method")["group"].dropna().to_dict()


def test_the_paper_s_methods_compete_and_those_that_a_request_names_but_no_reference() -> None:
    database = filled()
    database.add("mine", 0, [70] * 6)
    results = collect(database, [ToyStudy()])
    everything = rank(ToyStudy(), results)
    assert everything is not None
    own = ("local", "fedavg", "fedprox", "fedper", "pfedhn", "fggp", "pfedgraph", "fedpub", "flow")
    assert set(everything.titles) == {*own, "fedsheafhn"}
    asked = ("mine", "local", "majority", "fedavg_ft")
    chosen = rank(ToyStudy(), results, results.cells[results.cells["method"].isin(asked)], asked)
    assert chosen is not None
    # Fine-tuned FedAvg shows FedAvg's trained models: alone here, it stands for them.
    assert set(chosen.titles) == {"mine", "local", "fedavg_ft"}


def test_other_stages_of_the_same_runs_compete() -> None:
    database, column = MemoryStore(), FedAGHN().columns[0]
    spec = plan(load_grid("fedaghn_main"), *astuple(column), "fedavg", {}, 0).spec
    database.add_run(spec, [70] * column.clients)
    ranking = ranking_of(database, FedAGHN())
    assert ranking is not None
    assert set(ranking.ranks["method"]) == {"fedavg", "fedavg_ft"}


@pytest.fixture(scope="module")
def ranking() -> Ranking:
    """The methods in the four tasks of Cora."""
    found = ranking_of(filled())
    assert found is not None
    return found


def test_ranks_groups_and_the_difference_to_local(ranking: Ranking) -> None:
    assert ranking.task_count == 4
    assert list(ranking.ranks.columns) == [*RANKS, "planned"]
    rows = ranking.ranks.set_index("method")
    assert set(rows.index[:2]) == {"local", "fedsheafhn"}
    ranks = ranking.scores.round(6).rank(axis=1, ascending=False)  # equal accuracies share their places
    for method in LEVELS:
        assert rows.loc[method, "rank"] == pytest.approx(ranks[method].mean())
        assert 1 <= rows.loc[method, "low"] <= rows.loc[method, "rank"] <= rows.loc[method, "high"] <= 4
        below = ranking.scores[method] - ranking.scores["local"]
        assert rows.loc[method, "minus_baseline"] == pytest.approx(below.mean())
    # Twenty points apart, the bad methods are never before the good ones.
    assert rows.loc[["fedavg", "fedper"], "low"].min() > rows.loc[["local", "fedsheafhn"], "high"].max() - 1
    assert rows["group"].to_dict() == {"local": 1, "fedsheafhn": 1, "fedavg": 2, "fedper": 2}


def test_one_task_has_the_groups_of_its_own_tests_and_two_have_none() -> None:
    one, two = (ranking_of(filled(CORA_TASKS[:count])) for count in (1, 2))
    assert one is not None
    assert two is not None
    groups = groups_of(one)
    assert groups == one.cells.set_index("method")["group"].to_dict()
    assert {groups["local"], groups["fedavg"]} == {1, 2}
    assert two.over_tasks.empty
    assert two.ranks["group"].isna().all()
    assert two.ranks["low"].notna().all()


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


def test_runs_of_an_unknown_partition_are_not_paired_and_one_method_has_no_rank() -> None:
    database = MemoryStore()
    for method, clients in (("local", 10), ("fedavg", 20), ("majority", 10)):
        database.add(method, 0, [70, 80], partition_hash="", clients=clients)
    assert ranking_of(database) is None
    database.add("fedavg", 0, [70, 80], partition_hash="")
    ranking = ranking_of(database)
    assert ranking is not None
    assert ranking.tests["verdict"].tolist() == ["no test"]


class Twice(ToyStudy):
    """Its first table that compares methods stands there twice."""

    experiments = (*ToyStudy.experiments, replace(ToyStudy.experiments[0], name="again"))


def test_a_column_in_two_tables_is_one_task(ranking: Ranking) -> None:
    twice = ranking_of(filled(), Twice())
    assert twice is not None
    assert ranking.scores.equals(twice.scores)
