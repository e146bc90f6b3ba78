"""Clients that join after the last round, when the server no longer learns."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from bench import streams
from bench.engine.batch import Batch, Stack
from bench.engine.clients import Clients
from bench.engine.evaluation import Evaluation, Evaluator
from bench.engine.run import Run
from bench.engine.selected_rounds import SelectedRounds
from bench.engine.task import Task
from bench.federation.types import SPLITS, TRAIN, Federation, hide_held_out
from bench.spec import Newcomers


def held_out(newcomers: Newcomers, seed: int, clients: int) -> NDArray[np.bool_]:
    """Who joins late, bool ``[clients]``, drawn from the run's seed."""
    mask = np.zeros(clients, np.bool_)
    order = streams.generator(seed, "newcomers").permutation(clients)
    mask[order[: newcomers.count(clients)]] = True
    return mask


def part(federation: Federation, mask: NDArray[np.bool_]) -> Federation:
    """The federation of some clients, in the same order."""
    clients = tuple(client for client, is_in_part in zip(federation.clients, mask, strict=True) if is_in_part)
    return replace(federation, clients=clients)


Correct = dict[tuple[str, str], NDArray[np.int32]]
Samples = dict[str, NDArray[np.int32]]

TRAINED_CLIENTS = "trained_clients"
"""A run with newcomers keeps the ``last_shares`` of the clients that it trained with under this name."""


def last_shares(correct: Correct, samples: Samples) -> NDArray[np.float32]:
    """The share of correct test items of the trained models after the last round, ``[clients]``.

    It is NaN for clients without test items.
    """
    items = np.where(samples["test"] > 0, samples["test"], np.nan)
    return np.asarray(correct["trained", "test"][-1] / items, np.float32)


class Arrival(NamedTuple):
    """The newcomers' numbers, as the fields of ``bench.engine.result.RunResult`` over all clients.

    ``correct`` has one row of ``received``, and one row of ``trained`` an epoch; one in all for a method
    that trains in several phases or not at all. Clients that were there before have no samples.
    """

    correct: Correct
    samples: Samples
    confusion: dict[tuple[str, str], NDArray[np.int32]]
    roc_auc: dict[tuple[str, str], NDArray[np.float64]]


def arrive(run: Run, federation: Federation, mask: NDArray[np.bool_]) -> Arrival:
    """Let newcomers join a run that is over, and evaluate them as received and as trained.

    Each newcomer makes the method's first upload, receives what the server has for it, and trains local
    epochs as the method does.
    """
    spec, method = run.spec, run.method
    assert spec.newcomers is not None
    count = run.clients.count
    newcomers = part(federation, mask)
    sizes = torch.tensor([client.count(TRAIN) for client in newcomers.clients], dtype=torch.float32)
    task = Task(spec, run.model, sizes.to(run.device), run.device, count)
    members = method.prepare_data(hide_held_out(newcomers), run.traffic).clients
    protocol = spec.protocol.model_copy(update={"local_epochs": spec.newcomers.epochs})
    new_spec = spec.model_copy(update={"protocol": protocol})
    clients = Clients(new_spec, run.model, members, federation.classes, run.device, run.block_size, count)
    evaluator = Evaluator(newcomers.clients, run.device, federation.classes)

    clients.begin_round(-1)
    first_models = method.add_parameters(task.own() if spec.protocol.initial == "own" else task.common())
    with run.watch.part("client"):
        first = method.first_upload(clients, first_models, run.traffic)
    run.traffic.bytes_up += first.upload.bytes
    with run.watch.part("server"), torch.no_grad():
        message = method.onboard(clients, first.upload)
    run.traffic.bytes_down += message.bytes
    with run.watch.part("client"):
        received = method.load(clients, first.keep, message)
    with run.watch.part("evaluation"):
        first_evaluation = evaluator.all(method, clients, received)

    epochs: defaultdict[int, Evaluation] = defaultdict(evaluator.nothing)

    def evaluate(epoch: int, batch: Batch, models: Stack) -> None:
        numbers = np.arange(clients.count)[batch.rows]
        epochs[epoch].put(numbers, evaluator.block(method, batch, models, numbers))

    clients.begin_round(spec.protocol.rounds)
    clients.after_epoch = evaluate
    with run.watch.part("client"):
        update = method.update(clients, received, message)
    with run.watch.part("evaluation"):
        last_evaluation = evaluator.all(method, clients, update.keep)
    earlier_rows = [epochs[epoch] for epoch in range(spec.newcomers.epochs - 1) if epoch in epochs]
    is_complete = len(epochs) == spec.newcomers.epochs
    trained_rows = [*earlier_rows, last_evaluation] if is_complete else [last_evaluation]

    selected_rounds = SelectedRounds(evaluator.samples)
    correct: Correct = {}
    for stage, rows in (("received", [first_evaluation]), ("trained", trained_rows)):
        for role, split in enumerate(SPLITS):
            correct[stage, split] = np.stack([row.correct[role] for row in rows])
        for row in rows:
            selected_rounds.note(stage, row)

    def of_all(values: NDArray[Any], axis: int = 0, fill: float = 0) -> NDArray[Any]:
        shape = list(values.shape)
        shape[axis] = len(mask)
        spread = np.full(shape, fill, values.dtype)
        np.moveaxis(spread, axis, 0)[mask] = np.moveaxis(values, axis, 0)
        return spread

    return Arrival(
        {key: of_all(counts, axis=1) for key, counts in correct.items()},
        {split: of_all(samples) for split, samples in evaluator.samples.items()},
        {key: of_all(counts) for key, counts in selected_rounds.confusion().items()},
        {key: of_all(areas, fill=np.nan) for key, areas in selected_rounds.roc_auc().items()},
    )
