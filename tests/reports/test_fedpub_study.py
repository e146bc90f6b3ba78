"""FED-PUB's protocol as a study: which printed values stand beside which lines, and under which settings."""

from __future__ import annotations

import pytest
from stored_runs import MemoryStore
from study_cells import cells_of, figures_of, one, printed_beside, shown, unrelated

from bench.frames.graded_cells import collect
from bench.frames.ranking import rank
from bench.grids import Filters, expand, load_grid
from bench.reports.fedpub import FedPubProtocol
from bench.store.bundle import SHIPPED, Bundle
from bench.studies.published import published
from bench.studies.shipped import merged

BOARDS = ("fedpub_protocol", "fedpub_protocol_large")


def test_every_printed_accuracy_of_fedaux_stands_beside_a_line() -> None:
    beside = printed_beside(collect(unrelated(), [FedPubProtocol()]).cells, FedPubProtocol)
    printed = {value for value in published("fedaux") if value.metric == "accuracy"}
    assert printed <= beside
    assert {value.dataset for value in beside if value.paper == "fediih"} >= {"citeseer", "pubmed", "photo"}


def test_the_line_that_competes_is_ranked_and_no_variant_of_it() -> None:
    """FED-PUB also stands with the tau of the committed runs, FedAux as wide as there."""
    database = MemoryStore()
    correct = {"local": 80, "fedpub": 70, "fedaux": 60}
    for run in expand(
        load_grid("fedpub_protocol"), Filters(("cora",), ("published-fresh",), (10,), (), (0, 1))
    ):
        if run.method in correct:
            database.add_run(run.spec, [99 if run.variant else correct[run.method]] * 10)
    study = FedPubProtocol()
    ranking = rank(study, collect(database, [study]))
    assert ranking is not None
    (means,) = ranking.scores.to_dict("records")
    assert means == pytest.approx(correct)


def test_other_clients_of_a_published_data_set_are_not_published() -> None:
    """The papers print Cora with clients that share nothing: those that overlap have no value beside them."""
    database = MemoryStore()
    for run in expand(load_grid("fedpub_protocol"), Filters(("cora",), (), (), ("local", "fedaux"), (0,))):
        if run.spec.client.hidden == 128:
            database.add_run(run.spec, [70] * run.spec.clients)
    found = shown(FedPubProtocol, "protocol", database)
    cells = found.cells[found.cells["primary"] & (found.cells["dataset"] == "cora")]
    local = cells[cells["method"] == "local"].set_index(["scenario", "clients"])["verdict"].to_dict()
    assert {local["overlapping", clients] for clients in (10, 30, 50)} == {"not published"}
    assert local["published-fresh", 10] == "not comparable"  # a verdict needs two seeds


def test_committed_runs_stand_beside_ours_client_by_client_and_round_by_round() -> None:
    """Two hand-made runs of 31 rounds, of which the last is the best: client 3 has 60 and 62 of 94 nodes
    then, all others half; received is 9 fewer.
    """
    database = MemoryStore()
    for run in expand(load_grid("fedpub_committed_clients"), Filters(seeds=(0, 1))):
        if run.method == "fedaux":
            best = [47] * 10
            best[3] = 60 + 2 * run.spec.seed
            trained_rounds = [*([number + run.spec.seed] * 10 for number in range(30)), best]
            received_rounds = [*([0] * 10 for _ in range(30)), [right - 9 for right in best]]
            database.add_run(run.spec, trained_rounds, received=received_rounds, samples=[94] * 10)
    cells = cells_of(FedPubProtocol, "committed_clients", database)
    for point, measure, right, printed in (
        ("Client 3", "of_client_trained_best_val", (60 / 94, 62 / 94), 69.1),
        ("Client 3", "of_client_received_best_val", (51 / 94, 53 / 94), 64.9),
        ("Mean", "of_client_trained_best_val", ((9 * 47 + 60) / 940, (9 * 47 + 62) / 940), None),
    ):
        cell = one(cells, method="fedaux", point=point, measure=measure)
        assert cell.mean == pytest.approx(100 * sum(right) / 2)
        assert cell.std == pytest.approx(100 * (right[1] - right[0]) / 2**0.5)
        assert printed in (None, cell.published_mean)
    by_round = cells_of(FedPubProtocol, "committed_rounds", database)
    for number, published_mean in ((1, 27.7), (30, 64.7)):
        cell = one(by_round, method="fedaux", point=f"Round {number}", measure="by_round_trained")
        assert cell.published_mean == published_mean
        assert cell.mean == pytest.approx(100 * (number - 0.5) / 94)
        assert cell.std == pytest.approx(100 / 94 / 2**0.5)
    ended = one(by_round, method="fedaux", point="Round 40", measure="by_round_trained")
    assert ended.n == 0  # the curve ends before
    trained, _ = figures_of(FedPubProtocol, "committed_rounds", database)
    rows = next(iter(trained.panels.values()))
    assert rows.loc[rows["method"] == "fedaux", "round"].tolist() == [1, 5, 10, 20, 30]


def test_the_committed_clients_are_ours_in_their_order() -> None:
    """Every published value is a whole number of the test nodes of the client with its number: in another
    order of clients with unequal numbers of nodes it is not.
    """
    source = merged(None, [("shipped", Bundle(SHIPPED / "fedpub/cora"))])
    found = shown(FedPubProtocol, "committed_clients", source)
    run = found.results.members.query("seed == 0 and is_done")["run"].iloc[0]
    rows = found.results.clients_at("trained", "best_val")
    sizes = rows[rows["run"] == run].sort_values("client")["samples"].tolist()
    printed: dict[int, list[float]] = {}
    for value in published("fedaux_runs"):
        client = value.setting.removeprefix("client=").partition(";")[0]
        if value.metric == "accuracy_of_client" and client != "mean":
            assert value.mean is not None
            printed.setdefault(int(client), []).append(value.mean)
    assert {len(values) for values in printed.values()} == {6}

    def fits(client: int, nodes: int) -> bool:
        return all(
            abs(100 * round(value * nodes / 100) / nodes - value) < 0.0501 for value in printed[client]
        )

    for client in range(10):
        others = {size for size in sizes if fits(client, size)}
        assert others == {sizes[client]}
