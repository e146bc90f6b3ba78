"""From a request to per-client results on fabricated images."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from plain_cnn import BATCH, CLASSES, SETTINGS, image_client

from bench.data import Images
from bench.dataset import DATASETS, Dataset
from bench.engine.execute import run
from bench.federation.build import build
from bench.federation.types import TEST, TRAIN, Federation
from bench.resolve import resolve
from bench.sources import Sources
from bench.spec import Protocol


class Tinted(Dataset):
    name = "tinted"
    title = "Tinted noise"
    family = "images"
    homepage = ""
    scenarios = ("dirichlet0.5",)
    protocol = Protocol(rounds=1, local_epochs=5, split=(70, 10, 20), initial="common")
    client = SETTINGS

    def load(self, sources: Sources) -> Images:
        every = image_client(150, seed=9)
        return Images(every.features, every.labels, CLASSES)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BENCH_HOME", str(tmp_path))


def majority(federation: Federation) -> float:
    """Mean test accuracy of every client's most frequent training class."""
    right = []
    for client in federation.clients:
        training = client.labels[client.roles == TRAIN]
        common = np.unique_counts(training)
        guess = common.values[common.counts.argmax()]
        right.append((client.labels[client.roles == TEST] == guess).mean())
    return float(np.mean(right))


@pytest.mark.parametrize("method", ["local", "fedavg", "majority"])
def test_one_round_on_fabricated_images(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DATASETS, "all", lambda: {"tinted": Tinted})
    request = resolve("tinted", "dirichlet0.5", 4, method, seed=0)
    federation = build(*request.federation_key)
    sizes = [client.count(TRAIN) for client in federation.clients]
    assert min(sizes) < BATCH < max(sizes)  # one client is smaller than a batch
    result = run(request, federation)
    assert result.state == "done"
    assert sum(int(count.sum()) for count in result.samples.values()) == 150
    for (stage, split), correct in result.correct.items():
        assert correct.shape == (1, 4), stage
        assert np.all(correct <= result.samples[split])
    if method == "majority":
        accuracies = result.correct["trained", "test"][-1] / result.samples["test"]
        assert accuracies.mean() == pytest.approx(majority(federation))
    else:
        assert 0 < result.loss[0] < np.log(CLASSES)
