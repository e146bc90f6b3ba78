from __future__ import annotations

import numpy as np
import pytest
import torch
from plain_cnn import federation, spec

from bench.contract.toys import make_spec, random_federation
from bench.engine.run import Run
from bench.errors import RequestError


@pytest.mark.parametrize("model", ["cnn", pytest.param("resnet18", marks=pytest.mark.slow)])
def test_bfloat16_rounds_what_the_model_computes_and_nothing_that_is_kept(model: str) -> None:
    """Its eight bits of mantissa move predictions by about a hundredth, not by their size."""
    toy = federation(24, 40)
    settings = {"client.model": model}
    runs = {}
    for precision in ("float32", "bfloat16"):
        request = spec("fedavg", 2, epochs=1).with_settings({**settings, "client.precision": precision})
        it = Run(request, toy)
        it.warm_up()
        start = {name: value.clone() for name, value in it.own.items()}
        with torch.no_grad():
            batch = it.clients.blocks[0].evaluation
            logits = batch.forward(batch.of(start)).logits
        it.step(0)
        runs[precision] = logits, it
    (exact, plain), (rounded, reduced) = runs.values()
    assert exact.dtype == rounded.dtype == torch.float32
    error = float((exact - rounded).abs().max() / exact.abs().max())
    assert 1e-5 < error < 0.1
    assert all(value.dtype == torch.float32 for value in reduced.own.values())
    assert np.isfinite(reduced.loss[0])
    assert 0 < abs(reduced.loss[0] - plain.loss[0]) < 0.2 * plain.loss[0]


def test_models_of_graphs_compute_in_float32_alone() -> None:
    graph = random_federation((24, 40))
    with pytest.raises(RequestError, match=r"client\.precision"):
        Run(make_spec("fedavg", graph, client={"precision": "bfloat16"}), graph)
