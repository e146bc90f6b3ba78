"""What the image sets of the FedAGHN study have in common: its scenarios, protocol and client."""

from __future__ import annotations

from bench.spec import ClientSettings, Protocol

SCENARIOS = (
    "dirichlet0.1",
    "pathological",
    "pathological-distinct",
    "case-study",
    "dirichlet0.1-released",
    "pathological-released",
)

PROTOCOL = Protocol(rounds=200, local_epochs=5, split=(70, 10, 20), initial="common")

CLIENT = ClientSettings(
    model="cnn", hidden=512, dropout=0, optimizer="sgd", learning_rate=0.01, weight_decay=0, batch_size=64
)
