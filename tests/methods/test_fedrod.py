"""FedRoD: both losses against autograd on dense algebra, and whose gradient reaches what."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from plain_cnn import BATCH, RATE
from plain_cnn import federation as image_federation
from plain_cnn import spec as image_spec
from plain_gcn import dense_gcn
from torch.nn.functional import cross_entropy, softmax
from toy_federations import PLAIN, begun, copied, furthest, make_spec

from bench import streams
from bench.engine.method import Message
from bench.engine.run import Run
from bench.engine.stacks import part
from bench.federation.types import TRAIN, Client, Federation
from bench.methods.fedrod import PERSONAL


def features(client: Client, w: dict[str, torch.Tensor]) -> torch.Tensor:
    """What the linear head reads, in dense algebra."""
    return torch.relu(dense_gcn(client)(w)[1])


def by_hand(client: Client, start: dict[str, torch.Tensor], classes: int, steps: int) -> dict[str, Any]:
    """Two separate optimisers: generic loss on body and G, personal loss on H, both from the same point."""
    w = {name: value.clone().requires_grad_() for name, value in start.items()}
    train = np.flatnonzero(client.roles == TRAIN)
    labels = torch.from_numpy(client.labels[train])
    counts = torch.bincount(labels, minlength=classes).float()
    for _ in range(steps):
        z = features(client, w)[train]
        g = z @ w["head.weight"] + w["head.bias"]
        h = z.detach() @ w[PERSONAL + "head.weight"] + w[PERSONAL + "head.bias"]
        generic = cross_entropy(g + counts.log(), labels)
        personal = cross_entropy(g.detach() + h, labels)
        shared = [name for name in w if not name.startswith(PERSONAL)]
        own = [name for name in w if name.startswith(PERSONAL)]
        slopes = [
            *torch.autograd.grad(generic, [w[name] for name in shared], retain_graph=True),
            *torch.autograd.grad(personal, [w[name] for name in own]),
        ]
        with torch.no_grad():
            for name, slope in zip([*shared, *own], slopes, strict=True):
                w[name] -= 0.1 * slope
    return {name: value.detach() for name, value in w.items()}


def test_a_round_is_two_optimisers_steps(federation: Federation) -> None:
    """Also of a client of one class, which teaches its own head alone: its balanced softmax is 1."""
    federation = one_class(federation)
    it = begun("fedrod", federation, client=PLAIN, local_epochs=3)
    for index in range(2):
        start = {**copied(it.own), **copied(it.method.broadcast().model)}
        it.step(index)
        for row, client in enumerate(federation.clients):
            expected = by_hand(client, {name: value[row] for name, value in start.items()}, 3, 3)
            assert furthest({name: value[row] for name, value in it.own.items()}, expected) < 1e-5


def test_the_personal_head_starts_as_the_generic_one(federation: Federation) -> None:
    it = Run(make_spec("fedrod", federation, initial="own"), federation)
    head = {name: it.method.task.common()[name] for name in it.method.task.head}
    assert furthest(part(PERSONAL, it.own), head) == 0
    it.warm_up()
    it.step(0)
    apart = [float((value[0] - value[1]).abs().max()) for value in part(PERSONAL, it.own).values()]
    assert min(apart) > 0


def one_class(federation: Federation) -> Federation:
    """The first client's training items are all of class 1."""
    first = federation.clients[0]
    labels = np.where(first.roles == TRAIN, 1, first.labels)
    client = Client(first.ids, labels, first.roles, first.features, first.edges)
    return Federation("toy", "random", "graph", 3, (client, *federation.clients[1:]), "one class")


def test_predictions_add_both_heads(tiny: Federation) -> None:
    it = Run(make_spec("fedrod", tiny), tiny)
    models = {name: torch.randn(value.shape) for name, value in it.own.items()}
    batch = it.clients.blocks[0].evaluation
    logits = it.method.logits(models, batch)
    for row, client in enumerate(tiny.clients):
        w = {name: value[row] for name, value in models.items()}
        z = features(client, w)
        head = w["head.weight"] + w[PERSONAL + "head.weight"]
        bias = w["head.bias"] + w[PERSONAL + "head.bias"]
        torch.testing.assert_close(logits[row, : len(client.ids)], z @ head + bias, rtol=1e-4, atol=1e-4)


def test_counts_are_of_all_training_items_where_batches_are_small() -> None:
    """Under zero weights the generic bias alone moves: by the batch's shares less the predicted ones."""
    images = image_federation(30, 40)
    it = Run(image_spec("fedrod", 2, rounds=1, epochs=1), images)
    zero = {name: torch.zeros_like(value) for name, value in it.own.items() if name not in it.model.buffers}
    it.clients.begin_round(0)
    kept = it.method.update(it.clients, {**it.own, **zero}, Message()).keep
    for row, client in enumerate(images.clients):
        training = np.flatnonzero(client.roles == TRAIN)
        counts = torch.from_numpy(np.bincount(client.labels[training], minlength=images.classes))
        order = streams.generator(5, "order", row, 0, 0, 0).permutation(training)
        bias = torch.zeros(images.classes)
        for first in range(0, len(order) - BATCH + 1, BATCH):
            labels = client.labels[order[first : first + BATCH]]
            shares = torch.from_numpy(np.bincount(labels, minlength=images.classes) / BATCH)
            bias -= RATE * (softmax(bias + counts.log(), dim=0) - shares).float()
        assert counts.min() > 0
        torch.testing.assert_close(kept["fc.bias"][row], bias, rtol=1e-4, atol=1e-6)
