"""The round loop: from a spec and its federation to counts by round, stage, split and client."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bench.engine.attack import Attacker
from bench.engine.checkpoint import Checkpoint
from bench.engine.clients import Block, Clients
from bench.engine.costs import Stopwatch, peak_memory, reset_peak_memory
from bench.engine.denormals import flushed_denormals
from bench.engine.evaluation import Evaluator
from bench.engine.method import Method
from bench.engine.methods import METHODS
from bench.engine.newcomers import arrive, held_out, part
from bench.engine.result import RunResult
from bench.engine.task import Task, Wire
from bench.errors import DivergedError, NotApplicableError
from bench.federation.types import SPLITS, TRAIN, Client, Federation, hide_held_out
from bench.nn.models import build_model
from bench.spec import STAGES, RunSpec

Stack = Mapping[str, Tensor]

BLOCK_BYTES = 96 * 2**20
"""Bytes of parameters, gradients and moments that a block may hold on a CPU.

Measured with ``bench speed``'s FedAvg round at 100 clients: 100 ms at 32 MiB, 82 at 80, 77 at 160,
and slower again with all clients in one block at 50.
"""


BLOCK_ITEMS = 4096
"""Items that a block may hold on a CPU: beyond that activations fall out of the cache.

Measured on PubMed (2,000 nodes a client, 15 epochs): 1.2 s a round in blocks of one or two clients,
1.5 with all ten in one; on Computers 0.8 against 0.93.
"""


def default_block_size(parameters: int, items: int, clients: int, device: torch.device) -> int:
    """Clients trained together: as many as fit the cache on a CPU, all of them on an accelerator.

    ``parameters`` and ``items`` are those of one client, the largest one.
    """
    if device.type != "cpu":
        return clients
    blocks = max(-(-clients * 16 * parameters // BLOCK_BYTES), -(-clients * items // BLOCK_ITEMS))
    return -(-clients // min(blocks, clients))  # blocks of nearly equal size


class Run:
    """One run, round by round; ``bench speed`` and the tests drive it, ``run`` runs it to its end."""

    def __init__(
        self,
        spec: RunSpec,
        federation: Federation,
        device: str = "cpu",
        block_size: int | None = None,
        clients_type: type[Clients] = Clients,
    ) -> None:
        kind = METHODS.named(spec.method)
        if federation.family not in kind.families:
            raise NotApplicableError(
                f"{spec.method} runs on {', '.join(kind.families)} data, not on {federation.family}"
            )
        if kind.client_models and spec.client.model not in kind.client_models:
            raise NotApplicableError(
                f"{spec.method} works on the layers of client model {' or '.join(kind.client_models)}, "
                f"not {spec.client.model}"
            )
        self.spec = spec
        self.device = torch.device(device)
        self.watch = Stopwatch(self.device)
        self.wire = Wire()
        self.attacker = Attacker(spec.attack, spec.seed, len(federation)) if spec.attack else None
        self.model = build_model(spec.client, federation)
        sizes = [client.count(TRAIN) for client in federation.clients]
        task = Task(
            spec, self.model, torch.tensor(sizes, dtype=torch.float32, device=self.device), self.device
        )
        self.method: Method = kind(task, kind.Hyper.model_validate(spec.hyper))
        if self.attacker is not None:
            self.attacker.check(kind.report is not Method.report)
        if spec.newcomers and (reason := self.method.refuses_newcomers()):
            raise NotApplicableError(reason)
        members: tuple[Client, ...] = self.method.inputs(hide_held_out(federation), self.wire).clients
        parameters = sum(int(np.prod(shape)) for shape in self.model.shapes.values())
        items = max(len(client.ids) for client in members)
        self.block_size = block_size or default_block_size(parameters, items, len(members), self.device)
        self.clients = clients_type(
            spec, self.model, members, federation.classes, self.device, self.block_size
        )
        self.evaluator = Evaluator(federation.clients, self.clients.blocks, self.device)
        rows: dict[str, int] = dict.fromkeys(STAGES, spec.protocol.rounds)
        if spec.protocol.evaluate == "epoch" and kind.trains:
            rows["trained"] *= spec.protocol.local_epochs
        self.counts = {
            stage: np.zeros((count, len(SPLITS), len(members)), np.int32) for stage, count in rows.items()
        }
        self.loss = np.full(spec.protocol.rounds, np.nan, np.float32)
        self._shared = tuple(self.method.shared())
        own = task.own() if spec.protocol.initial == "own" else task.common()
        self.own: Stack = self.method.extend(own)
        self.enrolled: Tensor | None = None

    def warm_up(self) -> None:
        """What precedes the first round."""
        self.clients.begin_round(-1)
        with self.watch.part("client"):
            self.own = self.method.warm_up(self.clients, self.own)
            self.enrolled = self._reports(self.own) if self.warms_up else None
        self.count_up({}, self.enrolled)
        self.method.enrol(self.enrolled)  # in no part, as ``start`` is: the server's seconds are its rounds'

    @property
    def warms_up(self) -> bool:
        """Whether the method's clients do anything before the first round."""
        return type(self.method).warm_up is not Method.warm_up

    def _reports(self, trained: Stack) -> Tensor | None:
        """What the clients report, as it reaches the server."""
        reports = self.method.report(self.clients, trained)
        if reports is not None and self.attacker is not None:
            reports = self.attacker.replace(reports, self.clients.round)
        return reports

    def count_up(self, sent: Stack, reports: Tensor | None) -> None:
        """Count the bytes that clients send."""
        for message in [*sent.values(), *([] if reports is None else [reports])]:
            self.wire.bytes_up += message.numel() * message.element_size()

    def count_down(self, sent: Stack) -> None:
        """Count the bytes that the server sends."""
        self.wire.bytes_down += sum(value.numel() * value.element_size() for value in sent.values())

    def step(self, round: int) -> None:
        """One round: send, evaluate, train, evaluate, collect."""
        self.clients.begin_round(round)
        with self.watch.part("server"), torch.no_grad():
            sent = self.method.send(round)
        self.count_down(sent)
        received = self.method.receive(self.own, sent)
        self._evaluate("received", round, received)
        every_epoch = self.spec.protocol.evaluate == "epoch" and type(self.method).trains
        self.clients.after_epoch = self._evaluate_epoch if every_epoch else None
        with self.watch.part("client"):
            trained = self.method.train(self.clients, received)
            reports = self._reports(trained)
        self.loss[round] = self.clients.loss
        if not every_epoch:
            self._evaluate("trained", round, trained)
        upload = {name: trained[name] for name in self._shared}
        self.count_up(upload, reports)
        with self.watch.part("server"):
            self.method.collect({name: received[name] for name in self._shared}, upload, reports)
        self.own = trained

    def _evaluate(self, stage: str, row: int, stack: Stack) -> None:
        if self.spec.newcomers:
            return  # the results are those of the newcomers
        with self.watch.part("evaluation"):
            self.counts[stage][row] = self.evaluator.all(self.method, self.clients.blocks, stack)

    def _evaluate_epoch(self, epoch: int, block: Block, models: Stack) -> None:
        epochs = self.spec.protocol.local_epochs
        if epoch >= epochs:
            return  # a method that trains longer than the protocol says has no row for it
        row = self.clients.round * epochs + epoch
        with self.watch.part("evaluation"):
            self.counts["trained"][row][:, block.clients] = self.evaluator.block(self.method, block, models)

    def correct(self) -> dict[tuple[str, str], NDArray[np.int32]]:
        """Correct predictions ``[rows, clients]`` by stage and split."""
        return {
            (stage, split): np.ascontiguousarray(self.counts[stage][:, role])
            for stage in STAGES
            for role, split in enumerate(SPLITS)
        }

    def artefacts(self) -> dict[str, NDArray[Any]]:
        """Arrays kept with the run: the method's, who was malicious, and what was exchanged."""
        kept = {name: value.cpu().numpy() for name, value in self.method.artefacts().items()}
        exchanged = self.wire.exchanges()
        if len(exchanged):
            kept["exchanged_bytes"] = exchanged
        if self.attacker is not None:
            kept["malicious"] = self.attacker.malicious.astype(np.float32)
        return kept


def run(
    spec: RunSpec,
    federation: Federation,
    device: str = "cpu",
    block_size: int | None = None,
    checkpoint: Checkpoint | None = None,
) -> RunResult:
    """Execute a spec; with a ``checkpoint``, save the run now and then, and go on from what is saved.

    A method that cannot do what is asked ends as ``not_applicable``, one whose numbers stop being
    finite as ``diverged``; whatever else goes wrong is raised.
    """
    where = torch.device(device)
    reset_peak_memory(where)
    total = Stopwatch(where)
    round = -1
    late = held_out(spec.newcomers, spec.seed, len(federation)) if spec.newcomers else None
    try:
        with flushed_denormals(), total.part("total"):
            it = Run(spec, federation if late is None else part(federation, ~late), device, block_size)
            saved = checkpoint.resume(it) if checkpoint else None
            if saved is None:
                it.warm_up()
                first = 0
            else:
                first, total.seconds["total"] = saved.round + 1, saved.seconds
            for round in range(first, spec.protocol.rounds):
                it.step(round)
                if checkpoint:
                    checkpoint.keep(it, round, total.elapsed("total"))
            if it.attacker is not None:
                it.attacker.check(it.attacker.replaced)
            correct, samples = it.correct(), it.evaluator.samples
            if late is not None:
                correct, samples = arrive(it, federation, late)
    except NotApplicableError as error:
        return RunResult("not_applicable", str(error), device=device, partition_hash=federation.hash)
    except DivergedError as error:
        reason = f"{error} in round {round}" if round >= 0 else f"{error} during warm-up"
        return RunResult("diverged", reason, device=device, partition_hash=federation.hash)
    return RunResult(
        state="done",
        correct=correct,
        samples=samples,
        loss=it.loss,
        seconds={"client": 0.0, "server": 0.0, "evaluation": 0.0, **it.watch.seconds, **total.seconds},
        peak_memory=peak_memory(where),
        bytes_up=it.wire.bytes_up,
        bytes_down=it.wire.bytes_down,
        device=device,
        partition_hash=federation.hash,
        artefacts=it.artefacts(),
    )
