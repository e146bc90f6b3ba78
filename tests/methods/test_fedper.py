"""FedPer: which layers are averaged, and which stay."""

from __future__ import annotations

import torch
from toy_federations import begun, copied

from bench.federation.types import Federation


def test_fedper_averages_the_backbone_and_keeps_heads(federation: Federation) -> None:
    it = begun("fedper", federation)
    head, backbone = it.method.task.head, it.method.task.backbone
    assert all(not torch.equal(it.own[name][0], it.own[name][1]) for name in head)
    for round in range(2):
        kept = copied(it.own)
        received = it.method.load(it.clients, it.own, it.method.broadcast())
        assert all(torch.equal(received[name], kept[name]) for name in head)
        for name in backbone if round else ():
            mean = kept[name].double().mean(dim=0)
            assert torch.allclose(received[name].double(), mean.expand_as(received[name]), atol=1e-6)
        it.step(round)
