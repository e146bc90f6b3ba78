"""PeFLL: descriptions against loops, and both networks' gradients against autograd of the whole chain."""

from __future__ import annotations

import torch
from toy_federations import copied, furthest, make_spec

from bench.engine.execute import run
from bench.engine.method import Message
from bench.engine.run import Run
from bench.federation.types import TRAIN, Client, Federation
from bench.methods.pefll import PeFLL, describe, embedder_gradient
from bench.nn.gcn import normalised_adjacency
from bench.spec import Newcomers


def started(federation: Federation, **settings: object) -> tuple[Run, PeFLL]:
    it = Run(make_spec("pefll", federation, **settings), federation)  # type: ignore[arg-type]
    it.warm_up()
    assert isinstance(it.method, PeFLL)
    return it, it.method


def described(method: PeFLL, client: Client) -> torch.Tensor:
    """The mean over training nodes of the embedding network, in dense algebra, with its graph."""
    a = normalised_adjacency(client.edges, len(client.ids)).toarray()  # type: ignore[arg-type]
    seen = torch.from_numpy(a @ client.dense())
    one_hot = torch.eye(3)[torch.from_numpy(client.labels)]
    return method.embedder(torch.cat([seen, one_hot], dim=1))[client.roles == TRAIN].mean(dim=0)


def test_descriptions_are_means_over_training_nodes(federation: Federation) -> None:
    _, method = started(federation)
    for row, client in enumerate(federation.clients):
        torch.testing.assert_close(method.descriptions[row], described(method, client), rtol=1e-4, atol=1e-5)
    scaled = method.scaled(method.descriptions)
    assert abs(float(scaled.mean())) < 1e-5
    assert abs(float(scaled.std()) - 1) < 1e-5


def test_both_gradients_are_those_of_the_whole_chain(federation: Federation) -> None:
    """Of the mean over clients of <theta, theta - theta~>, the second factor held fixed."""
    it, method = started(federation)
    message = method.broadcast()
    update = method.update(it.clients, {**it.own, **message.model}, message)
    received = {name: message.model[name] for name in update.upload.model}
    difference = {name: received[name] - value for name, value in copied(update.upload.model).items()}
    v = torch.stack([described(method, client) for client in federation.clients])
    features = method.network.features(method.scaled(v), None)
    loss = torch.zeros(())
    for name, value in difference.items():
        layer = method.network._layer(name)
        theta = layer(features).view_as(value)
        loss = loss + (theta * value).sum() / len(federation)
    expected = torch.autograd.grad(loss, method.parameters)
    torch.optim.Adam.step, kept = (lambda optimiser: None), torch.optim.Adam.step  # type: ignore[assignment]
    try:
        method.aggregate(it.clients.rows, received, update.upload)
    finally:
        torch.optim.Adam.step = kept  # type: ignore[method-assign]
    ours = [parameter.grad for parameter in method.network.parameters()]
    for gradient, wanted in zip(ours, expected[4:], strict=True):
        assert gradient is not None
        torch.testing.assert_close(gradient, wanted, rtol=1e-3, atol=1e-6)
    # e's part comes with the next round: from what the server now sends
    rows = {**method.embedder_rows(len(federation)), "slope": method.slopes}
    gradient = it.clients.reduce(rows, embedder_gradient).sum(dim=0)
    wanted = torch.cat([value.flatten() for value in expected[:4]])
    torch.testing.assert_close(gradient, wanted, rtol=1e-3, atol=1e-6)
    assert float(wanted.abs().max()) > 0


def test_in_the_first_round_the_embedding_has_no_gradient(federation: Federation) -> None:
    it, method = started(federation)
    before = copied(dict(method.embedder.named_parameters()))
    network = copied(dict(method.network.named_parameters()))
    it.step(0)
    assert furthest(before, copied(dict(method.embedder.named_parameters()))) == 0
    assert furthest(network, copied(dict(method.network.named_parameters()))) > 0
    it.step(1)
    assert furthest(before, copied(dict(method.embedder.named_parameters()))) > 0


def test_newcomers_get_a_model_by_one_pass(federation: Federation) -> None:
    it, method = started(federation)
    v = it.clients.reduce(method.embedder_rows(len(federation)), describe)
    sent = method.onboard(it.clients, Message(extras={"description": v})).model
    assert furthest(dict(sent), dict(method.broadcast().model)) == 0
    spec = make_spec("pefll", federation)
    result = run(spec.model_copy(update={"newcomers": Newcomers(ratio=0.4, epochs=2)}), federation)
    assert result.state == "done"
