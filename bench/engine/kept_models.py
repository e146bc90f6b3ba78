"""Keeps every client's trained model of the round that a rule selects, while a run is made."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bench.engine.batch import Stack
from bench.engine.clients import Clients
from bench.engine.costs import run_conditions
from bench.engine.evaluation import Evaluator, Tally
from bench.engine.method import Method
from bench.engine.stacks import replaced
from bench.errors import NotApplicableError
from bench.spec import RunSpec


def refuse(spec: RunSpec) -> None:
    """Raise ``NotApplicableError`` if a spec's selected models may not be from the end of a round."""
    if spec.newcomers is not None:
        raise NotApplicableError("models are not kept of runs with newcomers")
    if spec.protocol.evaluate == "epoch":
        raise NotApplicableError("models are not kept of runs that are evaluated after every local epoch")


class KeptModels:
    """The models of the rounds that a rule selects.

    Attributes:
        rule: one of ``bench.selection.RULES``.
        stack: one row for each client, with everything that the client keeps.
        rounds: the round of each client's model, from 0, ``[clients]``.
        method: by round, the attributes that the method predicts with.
    """

    def __init__(self, rule: str) -> None:
        self.rule = rule
        self.stack: Stack = {}
        self.rounds: NDArray[np.int64] = np.zeros(0, np.int64)
        self.method: dict[int, dict[str, Any]] = {}

    def begin(self, method: Method, clients: Clients, evaluator: Evaluator, tally: Tally) -> None:
        """Follow the run with these parts from now on. The errors are those of ``refuse``."""
        refuse(clients.spec)
        self._method, self._clients, self._evaluator, self._tally = method, clients, evaluator, tally

    def note(self, last_round: int, own: Stack) -> None:
        """Keep the rows of ``own`` of the clients for which the rule selects ``last_round``."""
        mask = self._tally.is_last["trained", self.rule]
        if not mask.any():
            return
        self.rounds = self._tally.rows["trained", self.rule]
        rows = torch.from_numpy(np.flatnonzero(mask)).to(self._clients.device)
        models = {name: value.detach().clone() for name, value in own.items()}
        if self.stack:
            models = {name: replaced(past, rows, models[name][rows]) for name, past in self.stack.items()}
        self.stack = models
        attributes = vars(self._method)  # some exist only after the first round
        names = [name for name in self._method.predicts_with if name in attributes]
        states = {index: self.method[index] for index in set(self.rounds.tolist()) - {last_round}}
        self.method = {**states, last_round: {name: deepcopy(attributes[name]) for name in names}}

    def correct(self, stack: Stack, method: Mapping[int, Mapping[str, Any]]) -> NDArray[np.int32]:
        """Correct predictions ``[clients, splits]`` of kept models, in the run that made them.

        ``method`` has, by round, the attributes that the method predicts with.
        """
        device = self._clients.device
        models = {name: value.to(device) for name, value in stack.items()}
        correct = self._evaluator.nothing().correct
        for round_index in np.unique(self.rounds):
            self._method.round = int(round_index)
            for name, value in method[int(round_index)].items():
                setattr(self._method, name, value.to(device) if isinstance(value, Tensor) else value)
            mask = self.rounds == round_index
            with run_conditions():
                correct[mask] = self._evaluator.all(self._method, self._clients, models).correct[mask]
        return correct

    def state(self) -> dict[str, Any]:
        """The state for a checkpoint."""
        return {"stack": dict(self.stack), "rounds": self.rounds, "method": self.method}

    def resume(self, state: dict[str, Any]) -> None:
        """Go on from the state of a checkpoint."""
        self.stack, self.rounds, self.method = state["stack"], state["rounds"], state["method"]
