"""Malicious clients: the engine replaces what they upload."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from bench import streams
from bench.engine.method import Message
from bench.errors import NotApplicableError
from bench.spec import Attack


class Attacker:
    """Replaces the part of some clients' messages that the attack is aimed at.

    Every message of a malicious client is drawn from a stream of its own. So what one client sends
    depends neither on the order of clients nor on attacks on others.

    Attributes:
        malicious: mask of the malicious clients, bool ``[clients]``; drawn once from the seed.
        replaced: True if there was anything to replace.
    """

    def __init__(self, attack: Attack, seed: int, clients: int) -> None:
        self.attack = attack
        self.malicious = np.zeros(clients, np.bool_)
        order = streams.generator(seed, "attack", "clients").permutation(clients)
        self.malicious[order[: attack.count(clients)]] = True
        self._seed = seed
        self.replaced = False

    def replace(self, message: Message, participants: Tensor, round: int) -> Message:
        """Return the message of some clients as the server receives it."""
        parts = {"extras": dict(message.extras), "model": dict(message.model)}
        aims = parts if self.attack.target == "all" else (self.attack.target,)
        for aim in aims:
            parts[aim] = {name: value.clone() for name, value in sorted(parts[aim].items())}
            self.replaced |= bool(parts[aim])
        for row, client in enumerate(participants.tolist()):
            if not self.malicious[client]:
                continue
            rng = streams.generator(self._seed, "attack", client, round)
            for values in (value for aim in aims for value in parts[aim].values()):
                shape = () if self.attack.kind == "same" else values.shape[1:]
                noise = rng.normal(0.0, self.attack.tau, shape)
                values[row] = torch.as_tensor(noise, dtype=values.dtype, device=values.device)
        return Message(parts["model"], parts["extras"])

    def check(self) -> None:
        """Raise ``NotApplicableError`` if there was nothing to replace by the end of the first round."""
        if not self.replaced:
            raise NotApplicableError(f"its clients send no {self.attack.target}: no such attack is possible")
