"""Running statistics of batch normalisation stay at their clients."""

from __future__ import annotations

import numpy as np
import torch
from plain_cnn import IMAGE_COUNTS, normalised, plain_copy
from plain_cnn import federation as image_federation
from plain_cnn import spec as image_spec

from bench.engine.run import Run
from bench.federation.types import SPLITS


def test_fedavg_keeps_running_statistics_at_their_clients() -> None:
    """The averaged weights with everyone's own statistics are what the second round receives."""
    toy = image_federation(*IMAGE_COUNTS)
    it = Run(image_spec("fedavg", len(toy), rounds=2, epochs=1), toy)
    it.warm_up()
    it.step(0)
    after = {name: value.clone() for name, value in it.own.items()}
    sent = it.method.broadcast().model
    assert set(after) - set(sent) == it.model.buffers
    for name in it.model.buffers:
        rows = after[name].unique(dim=0)
        assert len(rows) == len(toy)
    values = sum(int(np.prod(after[name].shape)) for name in sent)
    assert it.traffic.bytes_down == 4 * values
    assert it.traffic.bytes_up == 4 * values
    it.step(1)
    received = {
        name: value if name in it.model.buffers else value.mean(dim=0).expand(value.shape)
        for name, value in after.items()
    }
    for number, client in enumerate(toy.clients):
        with torch.no_grad():
            predicted = plain_copy(received, number).eval()(normalised(client.features)).argmax(dim=1).numpy()
        for role in range(len(SPLITS)):
            right = ((predicted == client.labels) & (client.roles == role)).sum()
            assert it.counts["received"][1][role, number] == right
