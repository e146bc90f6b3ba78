"""What the image sets of the FedAGHN study have in common."""

from __future__ import annotations

import pytest

from bench.dataset import DATASETS


@pytest.mark.parametrize(
    ("family", "rounds", "model"),
    [("cifar10", 200, "cnn"), ("cifar100", 200, "cnn"), ("tiny-imagenet", 40, "resnet18")],
)
def test_image_sets_have_the_study_s_protocol(family: str, rounds: int, model: str) -> None:
    """Image facts 1.3 and 3; samples have the same."""
    for kind in (DATASETS.named(family), DATASETS.named(f"{family}-sample")):
        assert (kind.protocol.rounds, kind.protocol.local_epochs) == (rounds, 5)
        assert (kind.protocol.split, kind.protocol.initial) == ((70, 10, 20), "common")
        assert (kind.client.model, kind.client.batch_size, kind.client.learning_rate) == (model, 64, 0.01)
        assert (kind.client.optimizer, kind.client.weight_decay, kind.client.dropout) == ("sgd", 0, 0)
