"""Rounds in which some clients take part: who, what the others keep, what is counted and averaged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from plain_cnn import (
    CLASSES,
    IMAGE_COUNTS,
    SETTINGS,
)
from plain_cnn import federation as image_federation
from plain_cnn import spec as image_spec
from plain_gcn import dense_gcn
from torch import Tensor
from torch.nn import functional
from toy_federations import copied, furthest, make_spec, play, random_federation

from bench.engine.checkpoint import Checkpoint
from bench.engine.run import Run, default_block_size
from bench.federation.types import SPLITS, TRAIN, Federation
from bench.nn.cnn import CNN

CALM = {"dropout": 0.0, "learning_rate": 0.02, "weight_decay": 5e-3}
SIZES = (24, 40, 9, 31, 17, 12)
ROUNDS = 6


@pytest.fixture(scope="module")
def federation() -> Federation:
    return random_federation(SIZES, seed=3)


def half(method: str, federation: Federation, **settings: Any) -> Run:
    spec = make_spec(method, federation, **{"rounds": ROUNDS, "participation": 0.5, **settings})
    it = Run(spec, federation, block_size=2)
    it.warm_up()
    return it


def drawn(it: Run) -> list[list[int]]:
    return [it.participants(round).tolist() for round in range(ROUNDS)]


def test_who_takes_part_is_the_same_for_all_methods_of_a_seed_and_differs_by_round(
    federation: Federation,
) -> None:
    rounds = drawn(half("fedavg", federation))
    for method in ("local", "fedper", "fedpub", "fedsheafhn", "flow"):
        assert drawn(half(method, federation)) == rounds
    for clients in rounds:
        assert clients == sorted(set(clients))
        assert len(clients) == 3
        assert set(clients) <= set(range(6))
    assert len({tuple(clients) for clients in rounds}) > 2
    assert set().union(*rounds) == set(range(6))
    assert drawn(half("fedavg", federation, seed=1)) != rounds
    # nor does it hang on how long a run is, or on what was asked before
    longer = half("fedavg", federation, rounds=2 * ROUNDS)
    assert [longer.participants(round).tolist() for round in reversed(range(ROUNDS))] == rounds[::-1]


@pytest.mark.parametrize(("share", "count"), [(1.0, 6), (0.5, 3), (0.34, 2), (0.17, 1)])
def test_the_share_decides_how_many(federation: Federation, share: float, count: int) -> None:
    it = half("fedavg", federation, participation=share)
    assert [len(it.participants(round)) for round in range(ROUNDS)] == [count] * ROUNDS


@pytest.mark.parametrize(("state", "share"), [("keep", 1.0), ("keep", 0.5), ("reset", 0.5)])
def test_fedavg_equals_a_plain_loop_over_those_that_take_part(
    federation: Federation, state: str, share: float
) -> None:
    """Weighted means of the participants; one torch.optim.Adam per client, whose steps differ in number.

    With ``reset`` a client that takes part has a new optimiser in that round.
    """
    client_settings = {**CALM, "optimizer_state": state}
    it = half("fedavg", federation, client=client_settings, hyper={"weights": "samples"}, participation=share)
    average = {name: value[0].clone() for name, value in it.method.broadcast().model.items()}
    own = [{name: value[index].clone() for name, value in it.own.items()} for index in range(6)]
    own = [{name: value.requires_grad_() for name, value in w.items()} for w in own]

    def new(index: int) -> torch.optim.Adam:
        return torch.optim.Adam(list(own[index].values()), lr=0.02, weight_decay=5e-3)

    adam = [new(index) for index in range(6)]
    steps = [0] * 6
    for round in range(ROUNDS):
        chosen = it.participants(round).tolist()
        for index in chosen:
            client, w = federation.clients[index], own[index]
            with torch.no_grad():
                for name, value in average.items():
                    w[name].copy_(value)
            if state == "reset":
                adam[index] = new(index)
            items = torch.from_numpy(np.flatnonzero(client.roles == TRAIN))
            labels = torch.from_numpy(client.labels)[items]
            for _ in range(2):
                adam[index].zero_grad()
                functional.cross_entropy(dense_gcn(client)(w)[0][items], labels).backward()
                adam[index].step()
                steps[index] += 1
        sizes = [federation.clients[index].count(TRAIN) for index in chosen]
        average = {
            name: sum(
                n / sum(sizes) * own[index][name].detach() for n, index in zip(sizes, chosen, strict=True)
            )
            for name in average
        }
        it.step(round)
        sent = it.method.broadcast().model
        expected = {name: torch.stack([w[name].detach() for w in own]) for name in average}
        assert furthest(it.own, expected) < 1e-5
        for name, value in average.items():
            assert torch.allclose(sent[name], value.expand_as(sent[name]), atol=1e-5)
    assert (len(set(steps)) > 1) == (share < 1), "some client took part more often than another"


@pytest.mark.parametrize("method", ["fedavg", "fedpub", "fedsheafhn", "local"])
def test_bytes_are_those_of_the_clients_that_take_part(federation: Federation, method: str) -> None:
    whole, some = half(method, federation, participation=1.0), half(method, federation)
    for it in (whole, some):
        first = it.traffic.bytes_up, it.traffic.bytes_down  # of the warm-up, where all take part
        for round in range(3):
            it.step(round)
        it.traffic.bytes_up -= first[0]
        it.traffic.bytes_down -= first[1]
    assert 2 * some.traffic.bytes_up == whole.traffic.bytes_up
    assert 2 * some.traffic.bytes_down == whole.traffic.bytes_down
    assert (some.traffic.bytes_up > 0) == (method != "local")


def counted(it: Run, models: dict[str, Tensor]) -> np.ndarray:
    """Correct predictions ``[splits, clients]`` of models, one client after the other."""
    counts = np.zeros((len(SPLITS), 6), np.int64)
    for index, client in enumerate(it.evaluator._members):
        classes = dense_gcn(client)({name: value[index] for name, value in models.items()})[0].argmax(dim=1)
        for role in range(len(SPLITS)):
            counts[role, index] = ((classes.numpy() == client.labels) & (client.roles == role)).sum()
    return counts


def test_both_stages_are_evaluated_at_absent_clients_too(federation: Federation) -> None:
    """Received: what the server has for them. Trained: what they kept from their last part in a round."""
    it = half("fedavg", federation, client=CALM)
    for round in range(ROUNDS):
        sent = copied(it.method.broadcast().model)
        before = copied(it.own)
        it.step(round)
        absent = [index for index in range(6) if index not in it.participants(round).tolist()]
        assert (
            furthest(
                {name: value[absent] for name, value in it.own.items()},
                {name: value[absent] for name, value in before.items()},
            )
            == 0
        )
        assert np.array_equal(it.counts["received"][round], counted(it, sent))
        assert np.array_equal(it.counts["trained"][round], counted(it, dict(it.own)))
    assert not np.array_equal(it.counts["received"], it.counts["trained"])


def test_absent_clients_are_evaluated_after_every_epoch_of_the_others(federation: Federation) -> None:
    """A row for every epoch; theirs stay the same within a round, and the last one is the round's."""
    epochs = 3
    once = half("fedavg", federation, local_epochs=epochs)
    each = half("fedavg", federation, local_epochs=epochs, evaluate="epoch")
    moved = False
    for round in range(ROUNDS):
        before = counted(each, dict(each.own))
        once.step(round)
        each.step(round)
        rows = each.counts["trained"][round * epochs : (round + 1) * epochs]
        present = each.participants(round).tolist()
        absent = [index for index in range(6) if index not in present]
        assert np.array_equal(rows[-1], once.counts["trained"][round])
        for row in rows:
            assert np.array_equal(row[:, absent], before[:, absent])
        moved |= not np.array_equal(rows[0][:, present], rows[-1][:, present])
    assert moved
    assert furthest(once.own, each.own) == 0
    assert np.array_equal(once.counts["received"], each.counts["received"])


@pytest.mark.parametrize("method", ["fedavg", "fedsheafhn"])
def test_a_run_goes_on_in_the_middle_with_the_same_bits(
    method: str, federation: Federation, tmp_path: Path
) -> None:
    spec = make_spec(method, federation, rounds=ROUNDS, participation=0.5)
    straight = play(spec, federation)
    checkpoint = Checkpoint(tmp_path / "run.npz", "same")
    first = Run(spec, federation)
    first.warm_up()
    for round in range(3):
        first.step(round)
    checkpoint.save(first, 2, 0.0)
    resumed = Run(spec, federation)
    assert checkpoint.resume(resumed) is not None
    for round in range(3, ROUNDS):
        resumed.step(round)
    assert furthest(resumed.own, straight.own) == 0
    for key, counts in straight.correct().items():
        assert np.array_equal(counts, resumed.correct()[key])
    assert np.array_equal(straight.loss, resumed.loss)
    for name, value in straight.artefacts().items():
        assert np.array_equal(value, resumed.artefacts()[name], equal_nan=True)
    assert straight.traffic.bytes_down == resumed.traffic.bytes_down


def test_the_loss_of_a_round_is_the_mean_over_those_that_take_part(federation: Federation) -> None:
    it = half("local", federation, client=CALM, local_epochs=1)
    by_hand = []
    for index in it.participants(0).tolist():
        client = federation.clients[index]
        items = np.flatnonzero(client.roles == TRAIN)
        logits = dense_gcn(client)({name: value[index] for name, value in it.own.items()})[0][items]
        by_hand.append(float(functional.cross_entropy(logits, torch.from_numpy(client.labels[items]))))
    it.step(0)
    assert float(it.loss[0]) == pytest.approx(np.mean(by_hand), rel=1e-5)


def test_a_processor_trains_one_client_after_the_other_and_an_accelerator_all_at_once() -> None:
    toy = image_federation(*IMAGE_COUNTS)
    assert Run(image_spec("local", len(toy)), toy).block_size == 1
    model = CNN(toy.clients, CLASSES, SETTINGS)
    assert default_block_size(model, toy.clients, torch.device("cuda")) == len(toy)
