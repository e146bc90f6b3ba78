"""Rounds in which some clients take part: who, what the others keep, what is counted and averaged."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from plain_cnn import CLASSES, IMAGE_COUNTS, SETTINGS
from plain_cnn import federation as image_federation
from plain_cnn import spec as image_spec
from plain_gcn import dense_gcn
from torch.nn import functional
from toy_federations import begun, copied, furthest, random_federation

from bench.engine.method import Stack
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
    return begun(method, federation, block_size=2, **{"rounds": ROUNDS, "participation": 0.5, **settings})


def drawn(it: Run) -> list[list[int]]:
    return [it.participants(round).tolist() for round in range(ROUNDS)]


def some(stack: Stack, clients: list[int]) -> Stack:
    return {name: value[clients] for name, value in stack.items()}


def test_who_takes_part_is_the_same_for_all_methods_of_a_seed_and_differs_by_round(
    federation: Federation,
) -> None:
    rounds = drawn(half("fedavg", federation))
    for method in ("local", "fedper", "fedpub", "fedsheafhn", "flow"):
        assert drawn(half(method, federation)) == rounds
    assert all(clients == sorted(set(clients)) and len(clients) == 3 for clients in rounds)
    assert len({tuple(clients) for clients in rounds}) > 2
    assert set().union(*rounds) == set(range(6))
    assert drawn(half("fedavg", federation, seed=1)) != rounds
    # nor does it hang on how long a run is, or on what was asked before
    longer = half("fedavg", federation, rounds=2 * ROUNDS)
    assert [longer.participants(round).tolist() for round in reversed(range(ROUNDS))] == rounds[::-1]


@pytest.mark.parametrize(("share", "count"), [(1.0, 6), (0.5, 3), (0.34, 2), (0.17, 1)])
def test_the_share_decides_how_many(federation: Federation, share: float, count: int) -> None:
    assert {len(clients) for clients in drawn(half("fedavg", federation, participation=share))} == {count}


@pytest.mark.parametrize(
    ("weights", "state", "share"),
    [("samples", "keep", 1.0), ("uniform", "keep", 0.5), ("samples", "reset", 0.5)],
)
def test_fedavg_equals_a_plain_loop_over_those_that_take_part(
    federation: Federation, weights: str, state: str, share: float
) -> None:
    """Weighted means of the participants; one torch.optim.Adam per client, whose steps differ in number.

    With ``reset`` a client that takes part has a new optimiser in that round.
    """
    client_settings = {**CALM, "optimizer_state": state}
    it = half("fedavg", federation, client=client_settings, hyper={"weights": weights}, participation=share)
    average = {name: value[0].clone() for name, value in it.method.broadcast().model.items()}
    own = [{name: value[i].clone().requires_grad_() for name, value in it.own.items()} for i in range(6)]

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
        sizes = torch.tensor([float(federation.clients[index].count(TRAIN)) for index in chosen])
        sizes = sizes if weights == "samples" else torch.ones(len(chosen))
        for name in average:
            rows = torch.stack([own[index][name].detach() for index in chosen])
            average[name] = torch.einsum("i,i...->...", sizes / sizes.sum(), rows)
        it.step(round)
        sent = it.method.broadcast().model
        assert (
            furthest(it.own, {name: torch.stack([w[name].detach() for w in own]) for name in average}) < 1e-5
        )
        for name, value in average.items():
            assert torch.allclose(sent[name], value.expand_as(sent[name]), atol=1e-5)
    assert (len(set(steps)) > 1) == (share < 1), "some client took part more often than another"


@pytest.mark.parametrize("method", ["fedavg", "fedpub", "fedsheafhn", "local"])
def test_bytes_are_those_of_the_clients_that_take_part(federation: Federation, method: str) -> None:
    sizes = []
    for share in (1.0, 0.5):
        it = half(method, federation, participation=share)
        up, down = it.traffic.bytes_up, it.traffic.bytes_down  # of the warm-up, where all take part
        for round in range(3):
            it.step(round)
        sizes.append((it.traffic.bytes_up - up, it.traffic.bytes_down - down))
    assert sizes[0] == (2 * sizes[1][0], 2 * sizes[1][1])
    assert (sizes[0][0] > 0) == (method != "local")


def counted(federation: Federation, models: Stack) -> np.ndarray:
    """Correct predictions ``[clients, splits]`` of models, one client after the other."""
    counts = []
    for index, client in enumerate(federation.clients):
        classes = dense_gcn(client)({name: value[index] for name, value in models.items()})[0].argmax(dim=1)
        right = classes.numpy() == client.labels
        counts.append([(right & (client.roles == role)).sum() for role in range(len(SPLITS))])
    return np.array(counts)


def rows(it: Run, stage: str) -> np.ndarray:
    """The counts of all rows of a stage so far, ``[rows, clients, splits]``."""
    return np.stack([it.correct()[stage, split] for split in SPLITS], axis=2)


def test_both_stages_are_evaluated_at_absent_clients_too(federation: Federation) -> None:
    """Received: what the server has for them. Trained: what they kept from their last part in a round."""
    it = half("fedavg", federation, client=CALM)
    for round in range(ROUNDS):
        sent, before = copied(it.method.broadcast().model), copied(it.own)
        it.step(round)
        absent = [index for index in range(6) if index not in it.participants(round).tolist()]
        assert furthest(some(it.own, absent), some(before, absent)) == 0
        assert np.array_equal(rows(it, "received")[round], counted(federation, sent))
        assert np.array_equal(rows(it, "trained")[round], counted(federation, it.own))
    assert not np.array_equal(rows(it, "received"), rows(it, "trained"))


@pytest.mark.parametrize("method", ["fedavg", "fedper"])
def test_absent_clients_are_evaluated_after_every_epoch_of_the_others(
    federation: Federation, method: str
) -> None:
    """A row for every epoch; theirs stay the same within a round, and the last one is the round's.

    Looking after every epoch changes no number.
    """
    once = half(method, federation, local_epochs=3)
    each = half(method, federation, local_epochs=3, evaluate="epoch")
    moved = False
    for round in range(ROUNDS):
        before = counted(federation, each.own)
        once.step(round)
        each.step(round)
        epochs = rows(each, "trained")[3 * round :]
        present = each.participants(round).tolist()
        absent = [index for index in range(6) if index not in present]
        assert np.array_equal(epochs[-1], rows(once, "trained")[round])
        assert (epochs[:, absent] == before[absent]).all()
        moved |= not np.array_equal(epochs[0, present], epochs[-1, present])
    assert moved
    assert furthest(once.own, each.own) == 0
    assert np.array_equal(rows(once, "received"), rows(each, "received"))


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
