"""The round loop: from a spec and its federation to counts by round, stage, split and client."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from bench import registry
from bench.engine.clients import Block, Clients
from bench.engine.costs import Stopwatch, peak_memory, reset_peak_memory
from bench.engine.evaluation import Evaluator
from bench.engine.method import Method
from bench.engine.result import RunResult
from bench.engine.task import Task, Wire
from bench.errors import DivergedError, NotApplicableError
from bench.federation.types import SPLITS, TRAIN, Client, Federation
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


def hide_held_out(federation: Federation) -> Federation:
    """The federation with every label but those of training items replaced by -1."""
    clients = tuple(
        replace(client, labels=np.where(client.roles == TRAIN, client.labels, -1))
        for client in federation.clients
    )
    return replace(federation, clients=clients)


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
        kind = registry.method(spec.method)
        if federation.family not in kind.families:
            raise NotApplicableError(
                f"{spec.method} runs on {', '.join(kind.families)} data, not on {federation.family}"
            )
        self.spec = spec
        self.device = torch.device(device)
        self.watch = Stopwatch(self.device)
        self.wire = Wire()
        self.model = build_model(spec.client, federation)
        sizes = [client.count(TRAIN) for client in federation.clients]
        task = Task(
            spec, self.model, torch.tensor(sizes, dtype=torch.float32, device=self.device), self.device
        )
        self.method: Method = kind(task, kind.Hyper.model_validate(spec.hyper))
        members: tuple[Client, ...] = self.method.inputs(hide_held_out(federation), self.wire).clients
        parameters = sum(int(np.prod(shape)) for shape in self.model.shapes.values())
        items = max(len(client.ids) for client in members)
        block_size = block_size or default_block_size(parameters, items, len(members), self.device)
        self.clients = clients_type(spec, self.model, members, federation.classes, self.device, block_size)
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

    def warm_up(self) -> None:
        """What precedes the first round."""
        self.clients.begin_round(-1)
        with self.watch.part("client"):
            self.own = self.method.warm_up(self.clients, self.own)
            reports = self.method.report(self.clients, self.own) if self._warms_up else None
        self._count_up({}, reports)
        with self.watch.part("server"):
            self.method.enrol(reports)

    @property
    def _warms_up(self) -> bool:
        return type(self.method).warm_up is not Method.warm_up

    def _count_up(self, sent: Stack, reports: Tensor | None) -> None:
        for message in [*sent.values(), *([] if reports is None else [reports])]:
            self.wire.bytes_up += message.numel() * message.element_size()

    def step(self, round: int) -> None:
        """One round: send, evaluate, train, evaluate, collect."""
        self.clients.begin_round(round)
        with self.watch.part("server"), torch.no_grad():
            sent = self.method.send(round)
        self.wire.bytes_down += sum(value.numel() * value.element_size() for value in sent.values())
        received = self.method.receive(self.own, sent)
        self._evaluate("received", round, received)
        every_epoch = self.spec.protocol.evaluate == "epoch" and type(self.method).trains
        self.clients.after_epoch = self._evaluate_epoch if every_epoch else None
        with self.watch.part("client"):
            trained = self.method.train(self.clients, received)
            reports = self.method.report(self.clients, trained)
        self.loss[round] = self.clients.loss
        if not every_epoch:
            self._evaluate("trained", round, trained)
        upload = {name: trained[name] for name in self._shared}
        self._count_up(upload, reports)
        with self.watch.part("server"):
            self.method.collect({name: received[name] for name in self._shared}, upload, reports)
        self.own = trained

    def _evaluate(self, stage: str, row: int, stack: Stack) -> None:
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


def run(
    spec: RunSpec, federation: Federation, device: str = "cpu", block_size: int | None = None
) -> RunResult:
    """Execute a spec.

    A method that cannot do what is asked ends as ``not_applicable``, one whose numbers stop being
    finite as ``diverged``; whatever else goes wrong is raised.
    """
    where = torch.device(device)
    reset_peak_memory(where)
    total = Stopwatch(where)
    round = -1
    try:
        with total.part("total"):
            it = Run(spec, federation, device, block_size)
            it.warm_up()
            for round in range(spec.protocol.rounds):
                it.step(round)
    except NotApplicableError as error:
        return RunResult("not_applicable", str(error), device=device, partition_hash=federation.hash)
    except DivergedError as error:
        reason = f"{error} in round {round}" if round >= 0 else f"{error} during warm-up"
        return RunResult("diverged", reason, device=device, partition_hash=federation.hash)
    return RunResult(
        state="done",
        correct=it.correct(),
        samples=it.evaluator.samples,
        loss=it.loss,
        seconds={"client": 0.0, "server": 0.0, "evaluation": 0.0, **it.watch.seconds, **total.seconds},
        peak_memory=peak_memory(where),
        bytes_up=it.wire.bytes_up,
        bytes_down=it.wire.bytes_down,
        device=device,
        partition_hash=federation.hash,
        artefacts={name: value.cpu().numpy() for name, value in it.method.artefacts().items()},
    )
