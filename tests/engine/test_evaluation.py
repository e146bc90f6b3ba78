"""Counting correct predictions, keeping held-out labels out of reach, and the rows that rules select."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor
from toy_federations import begun, make_spec, random_federation

from bench.engine.costs import Stopwatch
from bench.engine.evaluation import Evaluation, Evaluator, Tally
from bench.engine.execute import run
from bench.engine.method import Batch, Stack
from bench.engine.run import Run
from bench.errors import DivergedError
from bench.federation.types import TEST, Federation, hide_held_out
from bench.metric_names import ROC_AUC
from bench.selection import RULES
from bench.spec import STAGES
from bench.store.store import accuracies, tables_of

READINGS = {(stage, rule) for stage in STAGES for rule in RULES}


@pytest.mark.parametrize("block_size", [1, 2])
def test_counts_by_split_and_client(tiny: Federation, block_size: int) -> None:
    """Labels are [0 train, 1 train, 0 test] and [1 train, 1 val, 0 test, 1 unused]."""
    predictions = [[0, 0, 0], [1, 0, 0, 1]]

    def logits(models: Stack, batch: Batch) -> Tensor:
        votes = torch.zeros(*batch.labels.shape, 2)
        for row, answers in enumerate(batch.of(predictions)):
            votes[row, torch.arange(len(answers)), answers] = 1
        return votes

    it = Run(make_spec("local", tiny), tiny, block_size=block_size)
    evaluator = Evaluator(tiny, Stopwatch(torch.device("cpu")))
    found = evaluator.all(SimpleNamespace(logits=logits), it.clients, it.own)  # type: ignore[arg-type]
    assert found.confusion.tolist() == [[[1, 0], [0, 0]], [[1, 0], [0, 0]]]
    assert found.correct.tolist() == [[1, 0, 1], [1, 0, 1]]  # train, val, test
    samples = {split: counts.tolist() for split, counts in evaluator.samples.items()}
    assert samples == {"train": [2, 1], "val": [0, 1], "test": [1, 1]}


def test_a_logit_that_is_not_finite_is_a_divergence(tiny: Federation) -> None:
    it = Run(make_spec("local", tiny), tiny)
    broken = {name: value.clone() for name, value in it.own.items()}
    broken["head.weight"][1, 0, 0] = float("nan")
    with pytest.raises(DivergedError, match="prediction"):
        it.evaluator.all(it.method, it.clients, broken)


def test_held_out_labels_are_hidden(tiny: Federation) -> None:
    labels = [client.labels.tolist() for client in hide_held_out(tiny).clients]
    assert labels == [[0, 1, -1], [1, -1, -1, -1]]
    assert tiny.clients[0].labels.tolist() == [0, 1, 0]


@pytest.mark.parametrize("seed", range(6))
def test_the_row_that_a_rule_selects_of_all_is_kept(seed: int) -> None:
    """Few items, so that many rows tie, and an area that is the number of the row."""
    rng = np.random.default_rng(seed)
    clients, rows = int(rng.integers(1, 40)), 60
    samples = {split: rng.integers(0, 4, clients).astype(np.int32) for split in ("val", "test")}
    counts = {split: rng.integers(0, sizes + 1, (rows, clients)) for split, sizes in samples.items()}
    tally = Tally(samples)
    for row in range(rows):
        right = counts["test"][row]
        matrices = np.stack([right, samples["test"] - right, 0 * right, 0 * right], axis=1)
        correct = np.stack([0 * right, counts["val"][row], right], axis=1)
        area = np.full((clients, 3), float(row))
        tally.note("trained", Evaluation(correct, matrices.reshape(-1, 2, 2), area))
    for rule, choose in RULES.items():
        chosen = choose(counts["val"], samples["val"], counts["test"], samples["test"])
        assert np.array_equal(tally.roc_auc()["trained", rule], chosen)
        assert np.array_equal(tally.rows["trained", rule], chosen)
        right = counts["test"][chosen, np.arange(clients)]
        assert np.array_equal(tally.confusion()["trained", rule][:, 0, 0], right)


@pytest.mark.parametrize("seed", range(4))
def test_the_area_under_the_curve_may_choose_the_row(seed: int) -> None:
    """Clients whose validation items are of one class have no area, and none in the mean."""
    rng = np.random.default_rng(seed)
    clients, rows = 7, 30
    areas = np.round(rng.random((rows, clients, 3)), 1)
    areas[:, :2, 1] = np.nan
    tally = Tally({split: np.full(clients, 4, np.int32) for split in ("val", "test")}, "roc_auc")
    empty = np.zeros((clients, 0, 0), np.int32)
    for row in areas:
        tally.note("trained", Evaluation(rng.integers(0, 5, (clients, 3)), empty, row))
    best = int(np.argmax(np.nanmean(areas[:, :, 1], axis=1)))
    assert tally.rows["trained", "best_val"].tolist() == [best] * clients
    own = [int(np.argmax(areas[:, client, 1])) for client in range(2, clients)]
    assert tally.rows["trained", "client_best_val"].tolist()[2:] == own
    assert np.array_equal(tally.roc_auc()["trained", "best_val"], areas[best, :, 2])
    assert tally.rows["trained", "last"].tolist() == [rows - 1] * clients


def label_counts(federation: Federation) -> NDArray[np.int64]:
    """Test items by class ``[clients, classes]``."""
    labels = [client.labels[client.roles == TEST] for client in federation.clients]
    return np.stack([np.bincount(own, minlength=federation.classes) for own in labels])


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ("fedavg", {}),
        ("fedper", {"evaluate": "epoch", "local_epochs": 2}),
        ("fedavg", {"evaluate": "epoch", "local_epochs": 3, "participation": 0.4}),
        ("majority", {"evaluate": "epoch"}),
    ],
)
def test_counts_of_a_run_add_up(method: str, settings: dict[str, object], federation: Federation) -> None:
    result = run(make_spec(method, federation, rounds=4, **settings), federation, block_size=2)
    assert result.confusion.keys() == READINGS
    stored = {
        (row["stage"], row["rule"], row["client"]): round(row["value"] * row["samples"])
        for row in accuracies(result)
        if row["split"] == "test"
    }
    for (stage, rule), matrices in result.confusion.items():
        assert np.array_equal(matrices.sum(axis=2), label_counts(federation))
        right = np.trace(matrices, axis1=1, axis2=2)
        assert [stored.get((stage, rule, client), 0) for client in range(len(federation))] == right.tolist()
        if method == "majority":
            assert ((matrices.sum(axis=1) > 0).sum(axis=1) <= 1).all()


def test_two_classes_have_an_area_under_the_roc_curve() -> None:
    federation = random_federation((30, 40, 25), classes=2, seed=2)
    first, one, last = federation.clients
    one = replace(one, labels=np.where(one.roles == TEST, 1, one.labels))  # all of one class
    federation = replace(federation, clients=(first, one, last))
    result = run(make_spec("local", federation), federation)
    it = begun("local", federation, 3)
    (block,) = it.clients.blocks
    logits = it.method.logits(it.own, block.evaluation).detach().numpy()
    for number, client in enumerate(federation.clients):
        tested = np.flatnonzero(client.roles == TEST)
        scores = logits[number, tested, 1] - logits[number, tested, 0]
        ones = client.labels[tested] == 1
        pairs = np.sign(scores[ones][:, None] - scores[~ones][None, :]) / 2 + 0.5
        expected = pairs.mean() if pairs.size else np.nan
        np.testing.assert_allclose(result.roc_auc["trained", "last"][number], expected)
    rows = [row for row in tables_of(result)["client_results"] if row["metric"] == ROC_AUC]
    assert {(row["client"], row["stage"], row["rule"]) for row in rows} == {
        (client, *reading) for client in (0, 2) for reading in READINGS
    }
    assert run(make_spec("local", random_federation(), rounds=1), random_federation()).roc_auc == {}


def test_a_run_is_read_at_the_rows_that_its_areas_choose() -> None:
    federation = random_federation((30, 40, 25), classes=2, seed=2)
    spec = make_spec("fedavg", federation, rounds=5, metric="roc_auc")
    result, by_accuracy = run(spec, federation), run(make_spec("fedavg", federation, rounds=5), federation)
    for row in accuracies(result):
        place = result.selected[row["stage"], row["rule"]][row["client"]]
        correct = result.correct[row["stage"], row["split"]][place, row["client"]]
        assert correct == round(row["value"] * row["samples"])
    assert not by_accuracy.selected
    assert all(np.array_equal(counts, by_accuracy.correct[key]) for key, counts in result.correct.items())
    assert run(spec, random_federation()).state == "not_applicable"  # of three classes


def test_none_where_test_labels_are_hidden_or_too_many(federation: Federation) -> None:
    spec = make_spec("fedavg", federation, rounds=1)
    assert run(spec, hide_held_out(federation, (TEST,))).confusion == {}
    wide = random_federation((20, 20), classes=260)  # 2 clients, 260 * 260 pairs, 2 stages, 4 rules
    assert run(make_spec("fedavg", wide, rounds=1), wide).confusion == {}
