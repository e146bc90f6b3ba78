"""Trained models that are kept while a run is made, of the round that a rule selects."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from bench.contract.subject import Subject
from bench.engine.checkpoint import Checkpoint
from bench.engine.execute import run
from bench.engine.kept_models import KeptModels
from bench.engine.method import Method
from bench.engine.methods import METHODS
from bench.engine.run import Run
from bench.federation.types import SPLITS
from bench.resolve import run_of
from bench.selection import RULES

TRAINING = sorted(name for name, kind in METHODS.all().items() if kind.trains and run_of(kind) == name)
QUICK = {name for name in TRAINING if METHODS.named(name).logits is not Method.logits} | {"fedavg"}
CASES = [
    pytest.param(name, rule, marks=[] if name in QUICK and rule == "client_best_val" else pytest.mark.slow)
    for name in TRAINING
    for rule in ("best_val", "client_best_val", "last")
]


@pytest.mark.parametrize(("method", "rule"), CASES)
def test_they_predict_what_the_run_counted(method: str, rule: str) -> None:
    """Also after the run has gone on for more rounds."""
    subject, kept = Subject(method), KeptModels(rule)
    result = run(subject.spec(), subject.federation, kept=kept)
    if result.state == "not_applicable":
        pytest.skip(result.reason)
    counts = {split: result.correct["trained", split] for split in SPLITS}
    rows = RULES[rule](counts["val"], result.samples["val"], counts["test"], result.samples["test"])
    assert kept.rounds.tolist() == rows.tolist()
    correct = kept.correct(kept.stack, kept.method).T
    for split, split_counts in zip(SPLITS, correct, strict=True):
        assert split_counts.tolist() == counts[split][rows, np.arange(len(rows))].tolist()


def test_they_are_the_models_after_that_round() -> None:
    """Against a run that is stepped by hand, whose validation counts are then made to choose."""
    subject, kept = Subject("fedper"), KeptModels("client_best_val")
    it = Run(subject.spec(), subject.federation, kept=kept)
    it.warm_up()
    it.step(0)
    first = {name: value.clone() for name, value in it.own.items()}
    selected = it.tally._selections["trained", "client_best_val"].correct
    selected[:] = 3
    selected[1] = -1  # client 1 has a better round still to come, whatever it scores
    it.step(1)
    for name, value in kept.stack.items():
        later = [client for client in range(4) if kept.rounds[client] == 1]
        for client in range(4):
            assert torch.equal(value[client], (it.own if client in later else first)[name][client])
    assert kept.rounds[1] == 1


def test_a_run_that_is_taken_up_again_has_them_too(tmp_path: Path) -> None:
    subject = Subject("fggp")
    straight = KeptModels("best_val")
    run(subject.spec(rounds=4), subject.federation, kept=straight)

    before = KeptModels("best_val")
    stopped = Run(subject.spec(rounds=4), subject.federation, kept=before)
    stopped.warm_up()
    for at in range(2):
        stopped.step(at)
    checkpoint = Checkpoint(tmp_path / "run.pt", "same")
    checkpoint.save(stopped, 1, 0.0)
    again = KeptModels("best_val")
    run(subject.spec(rounds=4), subject.federation, checkpoint=checkpoint, kept=again)
    assert again.rounds.tolist() == straight.rounds.tolist()
    assert all(torch.equal(value, straight.stack[name]) for name, value in again.stack.items())
    assert set(again.method) == set(straight.method)


def test_a_state_without_models_is_not_taken_up(tmp_path: Path) -> None:
    subject, checkpoint = Subject("fedavg"), Checkpoint(tmp_path / "run.pt", "same")
    stopped, another = Run(subject.spec(), subject.federation), Run(subject.spec(), subject.federation)
    stopped.warm_up()
    stopped.step(0)
    checkpoint.save(stopped, 0, 0.0)
    another.kept = KeptModels("last")
    assert checkpoint.resume(another) is None
    another.kept = None
    assert checkpoint.resume(another) is not None


@pytest.mark.parametrize(
    "settings",
    [{"protocol.evaluate": "epoch"}, {"newcomers.ratio": 0.5, "newcomers.epochs": 2}],
)
def test_runs_whose_models_are_not_those_of_a_rounds_end_are_refused(settings: dict[str, object]) -> None:
    subject = Subject("fedavg")
    spec = subject.spec().with_settings(settings)
    result = run(spec, subject.federation, kept=KeptModels("best_val"))
    assert result.state == "not_applicable"
    assert "models are not kept" in result.reason
