"""Malicious clients: the engine replaces what they report, and nothing else."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from bench import streams
from bench.errors import NotApplicableError
from bench.spec import Attack


class Attacker:
    """Replaces the reports of some clients, drawn once from the run's seed.

    ``malicious`` is a bool ``[clients]``. Every message of a malicious client is drawn from a
    stream of its own, so that neither the order of clients nor a client's being attacked changes
    what another one sends. ``replaced``: whether there was any report to replace.
    """

    def __init__(self, attack: Attack, seed: int, clients: int) -> None:
        self.attack = attack
        self.malicious = np.zeros(clients, np.bool_)
        order = streams.generator(seed, "attack", "clients").permutation(clients)
        self.malicious[order[: attack.count(clients)]] = True
        self._seed = seed
        self.replaced = False

    def replace(self, reports: Tensor, round: int) -> Tensor:
        """The reports ``[clients, ...]`` as the server gets them."""
        replaced = reports.clone()
        for client in np.flatnonzero(self.malicious).tolist():
            rng = streams.generator(self._seed, "attack", client, round)
            shape = () if self.attack.kind == "same" else reports.shape[1:]
            drawn = rng.normal(0.0, self.attack.tau, shape)
            replaced[client] = torch.as_tensor(drawn, dtype=reports.dtype, device=reports.device)
        self.replaced = True
        return replaced

    def check(self, reports: bool) -> None:
        """Raises ``NotApplicableError`` where there are no ``reports`` to replace."""
        if not reports:
            raise NotApplicableError("its clients report nothing beside their models: no attack is possible")
