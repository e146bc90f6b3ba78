"""Counting correct predictions, and keeping held-out labels out of reach."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor
from toy_federations import make_spec, play

from bench.engine.evaluation import Evaluator
from bench.engine.method import Batch, Stack
from bench.engine.run import Run
from bench.errors import DivergedError, NotApplicableError
from bench.federation.types import Federation, hide_held_out


def says(federation: Federation, predictions: list[list[int]], block_size: int = 2) -> tuple[Any, Run]:
    """A method that predicts these classes for the clients' nodes, and class 0 for padding."""

    def logits(models: Stack, batch: Batch) -> Tensor:
        votes = torch.zeros(*batch.labels.shape, 2)
        for row, answers in enumerate(batch.of(predictions)):
            for item, answer in enumerate(answers):
                votes[row, item, answer] = 1
        return votes

    return SimpleNamespace(logits=logits), Run(
        make_spec("local", federation), federation, block_size=block_size
    )


@pytest.mark.parametrize("block_size", [1, 2])
def test_counts_by_split_and_client(tiny: Federation, block_size: int) -> None:
    # labels: [0 train, 1 train, 0 test]; [1 train, 1 val, 0 test, 1 unused]
    method, run = says(tiny, [[0, 0, 0], [1, 0, 0, 1]], block_size)
    evaluator = Evaluator(tiny.clients, torch.device("cpu"), tiny.classes)
    counts, by_class, _ = evaluator.all(method, run.clients, run.own)
    assert by_class.tolist() == [[[1, 0], [0, 0]], [[1, 0], [0, 0]]]
    assert counts.tolist() == [[1, 1], [0, 0], [1, 1]]  # train, val, test
    assert {split: n.tolist() for split, n in evaluator.samples.items()} == {
        "train": [2, 1],
        "val": [0, 1],
        "test": [1, 1],
    }


def test_a_logit_that_is_not_finite_is_a_divergence(tiny: Federation) -> None:
    run = Run(make_spec("local", tiny), tiny)
    broken = {name: value.clone() for name, value in run.own.items()}
    broken["head.weight"][1, 0, 0] = float("nan")
    with pytest.raises(DivergedError, match="prediction"):
        run.evaluator.all(run.method, run.clients, broken)


def test_held_out_labels_are_hidden(tiny: Federation) -> None:
    hidden = hide_held_out(tiny)
    assert hidden.clients[0].labels.tolist() == [0, 1, -1]
    assert hidden.clients[1].labels.tolist() == [1, -1, -1, -1]
    assert tiny.clients[0].labels.tolist() == [0, 1, 0]


@pytest.mark.parametrize("method", ["fedprox", "flow"])
def test_a_method_that_trains_in_its_own_way_has_no_model_after_every_epoch(
    federation: Federation, method: str
) -> None:
    with pytest.raises(NotApplicableError, match="evaluate=round"):
        Run(make_spec(method, federation, evaluate="epoch"), federation)


@pytest.mark.parametrize("method", ["fedavg", "fedper"])
def test_looking_after_every_epoch_changes_no_number(federation: Federation, method: str) -> None:
    once = play(make_spec(method, federation, rounds=3, local_epochs=4), federation, block_size=2)
    each = play(
        make_spec(method, federation, rounds=3, local_epochs=4, evaluate="epoch"), federation, block_size=2
    )
    for split in ("train", "val", "test"):
        assert each.correct()[("trained", split)].shape == (12, len(federation))
        ends = each.correct()[("trained", split)][3::4]
        assert np.array_equal(ends, once.correct()[("trained", split)])
        assert np.array_equal(each.correct()[("received", split)], once.correct()[("received", split)])
    for name, value in once.own.items():
        assert torch.equal(value, each.own[name])
    inner = each.correct()[("trained", "train")].reshape(3, 4, -1)
    assert any(not np.array_equal(inner[:, epoch], inner[:, 3]) for epoch in range(3))
