"""FedPer: which layers are averaged, and which stay."""

from __future__ import annotations

import torch
from toy_federations import copied, furthest, make_spec

from bench.engine.method import Clients, Message, Stack, Update
from bench.engine.run import Run
from bench.federation.types import Federation


def test_fedper_averages_the_backbone_and_keeps_heads(federation: Federation) -> None:
    it = Run(make_spec("fedper", federation), federation)
    heads = {name: it.own[name].clone() for name in ("head.weight", "head.bias")}
    assert all(furthest({"a": value[:1]}, {"a": value[1:2]}) > 0 for value in heads.values())
    it.warm_up()
    received: list[dict[str, torch.Tensor]] = []
    update = it.method.update

    def seen(clients: Clients, stack: Stack, message: Message) -> Update:
        received.append(copied(stack))
        return update(clients, stack, message)

    it.method.update = seen  # type: ignore[method-assign]
    it.step(0)
    trained = copied(it.own)
    it.step(1)
    for name, value in heads.items():
        assert torch.equal(received[0][name], value)
        assert torch.equal(received[1][name], trained[name])
    for name in ("conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias"):
        mean = trained[name].double().mean(dim=0)
        assert torch.allclose(received[1][name].double(), mean.expand_as(received[1][name]), atol=1e-6)
