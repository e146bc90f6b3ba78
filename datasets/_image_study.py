"""What the image sets of the FedAGHN study have in common: scenarios, protocol, client, methods' values."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench.spec import ClientSettings, Protocol

SCENARIOS = (
    "dirichlet0.1",
    "pathological",
    "case-study",
    "dirichlet0.1-released",
    "pathological-released",
)

PROTOCOL = Protocol(rounds=200, local_epochs=5, split=(70, 10, 20), initial="common")

CLIENT = ClientSettings(
    model="cnn", hidden=512, dropout=0, optimizer="sgd", learning_rate=0.01, weight_decay=0, batch_size=64
)

HYPER: Mapping[str, Mapping[str, Any]] = {
    "fedavg": {"weights": "samples"},
    "fedprox": {"weights": "samples", "mu": 0.01},
    "pfedhn": {
        "learning_rate": 0.005,
        "momentum": 0.0,
        "weight_decay": 0.0,
        "output": "residual",
        "combine": "sum",
    },
}
"""Values that the study states (footnote of its Section 4) and other studies have otherwise."""
