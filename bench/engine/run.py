"""The round loop: from a spec and its federation to counts by round, stage, split and client."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bench import streams
from bench.engine.attack import Attacker
from bench.engine.batch import Stack
from bench.engine.clients import Clients
from bench.engine.costs import Stopwatch
from bench.engine.evaluation import Evaluation, Evaluator, Tally
from bench.engine.kept_models import KeptModels
from bench.engine.method import Message, Method, Task
from bench.engine.methods import METHODS
from bench.engine.stacks import replaced
from bench.errors import NotApplicableError
from bench.federation.traffic import TrafficMeter
from bench.federation.types import TRAIN, Client, Federation, hide_held_out
from bench.metric_names import ROC_AUC
from bench.nn.base import ClientModel
from bench.nn.models import build_model
from bench.spec import RunSpec

BLOCK_BYTES = 96 * 2**20
"""Bytes of parameters, gradients and moments that a block may hold on a CPU.

Measured with FedAvg's round at 100 clients: 100 ms at 32 MiB, 82 at 80, 77 at 160. With all clients in
one block, 50 clients are slower again.
"""
BLOCK_ITEMS = 4096
"""Items that a block may hold on a CPU. With more, activations do not fit into the cache.

Measured on PubMed (2,000 nodes a client, 15 epochs): 1.2 s a round in blocks of one or two clients, 1.5 s
with all ten in one. On Computers 0.8 s against 0.93 s.
"""


def default_block_size(model: ClientModel, members: Sequence[Client], device: torch.device) -> int:
    """The number of clients in a block: as many as fit a CPU's cache, on an accelerator all."""
    if device.type != "cpu":
        return len(members)
    if model.one_by_one:
        return 1
    count = len(members)
    parameters = sum(math.prod(shape) for shape in model.shapes.values())
    items = max(len(client.ids) for client in members)
    blocks = max(-(-count * 16 * parameters // BLOCK_BYTES), -(-count * items // BLOCK_ITEMS))
    return -(-count // min(blocks, count))  # blocks of nearly equal size


def check_applicable(kind: type[Method], spec: RunSpec, federation: Federation) -> None:
    """Raise ``NotApplicableError`` unless a method can do what a spec asks of it."""
    if federation.family not in kind.families:
        raise NotApplicableError(
            f"{spec.method} runs on {', '.join(kind.families)} data, not on {federation.family}"
        )
    if kind.client_models and spec.client.model not in kind.client_models:
        raise NotApplicableError(
            f"{spec.method} works on the layers of client model {' or '.join(kind.client_models)}, "
            f"not {spec.client.model}"
        )
    if spec.newcomers and "onboard" not in vars(kind):
        raise NotApplicableError(f"{spec.method} has nothing for clients that it has never seen")
    if spec.protocol.metric == ROC_AUC and (federation.classes != 2 or spec.newcomers):
        raise NotApplicableError("protocol.metric=roc_auc is of two classes and of runs without newcomers")
    if spec.protocol.evaluate == "epoch" and kind.trains and kind.update is not Method.update:
        raise NotApplicableError(
            f"{spec.method} has an update of its own, and so no model after every local epoch: "
            "set protocol.evaluate=round"
        )


class Run:
    """One run, round by round. ``execute`` takes it to its end; ``bench speed`` and tests step it."""

    def __init__(
        self,
        spec: RunSpec,
        federation: Federation,
        device: str = "cpu",
        block_size: int | None = None,
        clients_type: type[Clients] = Clients,
        kept: KeptModels | None = None,
    ) -> None:
        kind = METHODS.named(spec.method)
        check_applicable(kind, spec, federation)
        self.every_epoch = spec.protocol.evaluate == "epoch" and kind.trains
        self.spec = spec
        self.device = torch.device(device)
        self.watch = Stopwatch(self.device)
        self.traffic = TrafficMeter()
        self.attacker = Attacker(spec.attack, spec.seed, len(federation)) if spec.attack else None
        self.model = build_model(spec.client, federation)
        sizes = [client.count(TRAIN) for client in federation.clients]
        task = Task(spec, self.model, sizes, self.device)
        self.method: Method = kind(task, kind.Hyper.model_validate(spec.hyper))
        members = self.method.prepare_data(hide_held_out(federation), self.traffic).clients
        self.block_size = block_size or default_block_size(self.model, members, self.device)
        self.clients = clients_type(
            spec, self.model, members, federation.classes, self.device, self.block_size
        )
        self.evaluator = Evaluator(federation, self.watch, spec.protocol.metric)
        self.tally = Tally(self.evaluator.samples, spec.protocol.metric)
        self.loss = np.full(spec.protocol.rounds, np.nan, np.float32)
        self.own: Stack = self.method.add_parameters(task.initial())
        self.kept = kept
        if kept is not None:
            kept.begin(self.method, self.clients, self.evaluator, self.tally)
        self.first_message = Message()

    def warm_up(self) -> None:
        """Make all steps before the first round, with all clients."""
        self.clients.begin_round(-1)
        all_rows = self.clients.rows
        with self.clients_turn():
            update = self.method.first_upload(self.clients, self.own, self.traffic)
            self.own, self.first_message = update.keep, self.uploaded(update.upload, all_rows)
        # not timed, like the server's set-up: the server's seconds are those of its rounds
        self.method.receive_first(self.first_message)

    @contextmanager
    def clients_turn(self) -> Iterator[None]:
        """Count the time of the ``with`` block for the clients, and let it set no method attribute."""
        with self.watch.part("client"), self.method.as_clients():
            yield

    def uploaded(self, message: Message, participants: Tensor) -> Message:
        """Count a message of some clients, and return it as the server receives it."""
        self.traffic.bytes_up += message.bytes
        if self.attacker is None:
            return message
        return self.attacker.replace(message, participants, self.clients.round)

    def participants(self, round: int) -> Tensor:
        """The clients that take part in a round, int64, ascending; the same for every method of a seed."""
        count = self.spec.protocol.participants(self.clients.count)
        if count == self.clients.count:
            return self.clients.rows
        order = streams.generator(self.spec.seed, "participation", round).permutation(self.clients.count)
        return torch.from_numpy(np.sort(order[:count])).to(self.device)

    def step(self, round: int) -> None:
        """Make one round: broadcast, load, evaluate, update, evaluate, aggregate.

        Both stages are evaluated at every client: *received* on the model that the server has for the client,
        *trained* on the model that the client kept when it last took part.
        """
        self.clients.begin_round(round)
        self.method.round = round
        participants = self.participants(round)
        clients = self.clients.some(participants)
        with self.watch.part("server"), torch.no_grad():
            message = self.method.broadcast()
        with self.clients_turn():
            received = self.method.load(self.clients, self.own, message)
        # a run with newcomers reports only the newcomers, who join after the last round
        is_evaluated = not self.spec.newcomers or round == self.spec.protocol.rounds - 1
        if is_evaluated:
            self.tally.note("received", self.evaluator.all(self.method, self.clients, received))
        is_full_round = clients is self.clients
        if not is_full_round:
            message = message.of(participants)
            received = {name: value[participants] for name, value in received.items()}
        self.traffic.bytes_down += message.bytes
        epochs: dict[int, Evaluation] = {}
        if self.every_epoch and is_evaluated:
            # clients that take no part keep their earlier counts after every epoch
            before = self.evaluator.nothing() if is_full_round else self._evaluated()
            epochs = {epoch: deepcopy(before) for epoch in range(self.spec.protocol.local_epochs)}
            clients.after_epoch = self.evaluator.after_epoch(self.method, clients, epochs)
        with self.clients_turn():
            update = self.method.update(clients, received, message)
            upload = self.uploaded(update.upload, participants)
        self.loss[round] = clients.loss
        keep = update.keep
        if not is_full_round:
            keep = {name: replaced(value, participants, keep[name]) for name, value in self.own.items()}
        self.own = keep
        if is_evaluated:
            for evaluation in list(epochs.values()) or [self._evaluated()]:
                self.tally.note("trained", evaluation)
        if self.kept is not None:
            self.kept.note(round, self.own)
        with self.watch.part("server"):
            sent = {name: received[name] for name in upload.model if name in received}
            self.method.aggregate(participants, sent, upload)
        if self.attacker is not None:
            self.attacker.check()

    def _evaluated(self) -> Evaluation:
        """The evaluation of the models that clients keep."""
        return self.evaluator.all(self.method, self.clients, self.own)

    def correct(self) -> dict[tuple[str, str], NDArray[np.int32]]:
        """Correct predictions ``[rows, clients]`` by stage and split."""
        return self.tally.correct()

    def artefacts(self) -> dict[str, NDArray[Any]]:
        """Arrays of the run: records of method and clients, malicious clients, numbered exchanges."""
        records = self.method.records | self.clients.logged()
        for name, rounds in self.method.records_by_round.items():
            records[name] = torch.stack(list(rounds.values()))
        artefacts = {name: value.cpu().numpy() for name, value in records.items()}
        exchanges = self.traffic.exchanges()
        if len(exchanges):
            artefacts["exchanged_bytes"] = exchanges
        if self.attacker is not None:
            artefacts["malicious"] = self.attacker.malicious.astype(np.float32)
        return artefacts
