"""Clients that join after the last round, when the server no longer learns."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from bench import streams
from bench.engine.clients import Clients
from bench.engine.evaluation import Evaluation, Evaluator, Tally
from bench.engine.method import Task
from bench.engine.run import Run
from bench.federation.types import TRAIN, Federation, hide_held_out
from bench.spec import RunSpec


def held_out(spec: RunSpec, clients: int) -> NDArray[np.bool_]:
    """Mask of late clients, bool ``[clients]``, drawn from the run's seed; all False without newcomers."""
    mask = np.zeros(clients, np.bool_)
    if spec.newcomers is not None:
        order = streams.generator(spec.seed, "newcomers").permutation(clients)
        mask[order[: spec.newcomers.count(clients)]] = True
    return mask


def part(federation: Federation, mask: NDArray[np.bool_]) -> Federation:
    """The federation of some clients, in the same order."""
    return replace(federation, clients=tuple(federation.clients[index] for index in np.flatnonzero(mask)))


TRAINED_CLIENTS = "trained_clients"
"""A run with newcomers keeps the ``last_shares`` of the clients that it trained with under this name."""


def last_shares(tally: Tally) -> NDArray[np.float32]:
    """The share of correct test items of the trained models after the last round, ``[clients]``.

    It is NaN for clients without test items.
    """
    items = np.where(tally.samples["test"] > 0, tally.samples["test"], np.nan)
    return np.asarray(tally.correct()["trained", "test"][-1] / items, np.float32)


def arrive(run: Run, federation: Federation, mask: NDArray[np.bool_]) -> Tally:
    """Let newcomers join a run that is over, and evaluate them as received and as trained.

    Each newcomer makes the method's first upload, receives what the server has for it, and trains local
    epochs as the method does. The tally has all clients; earlier clients have no samples. It has one row of
    ``received``, and one row of ``trained`` per epoch. If the method trains in several phases or not at all,
    it has one row of ``trained``.
    """
    spec, method, known = run.spec, run.method, run.clients.count
    assert spec.newcomers is not None
    newcomers = part(federation, mask)
    sizes = [client.count(TRAIN) for client in newcomers.clients]
    task = Task(spec, run.model, sizes, run.device, known)
    members = method.prepare_data(hide_held_out(newcomers), run.traffic).clients
    protocol = spec.protocol.model_copy(update={"local_epochs": spec.newcomers.epochs})
    new_spec = spec.model_copy(update={"protocol": protocol})
    clients = Clients(new_spec, run.model, members, federation.classes, run.device, run.block_size, known)
    evaluator = Evaluator(federation, run.watch, numbers=np.flatnonzero(mask))
    tally = Tally(evaluator.samples)

    clients.begin_round(-1)
    with run.clients_turn():
        first = method.first_upload(clients, method.add_parameters(task.initial()), run.traffic)
    run.traffic.bytes_up += first.upload.bytes
    with run.watch.part("server"), torch.no_grad():
        message = method.onboard(clients, first.upload)
    run.traffic.bytes_down += message.bytes
    with run.clients_turn():
        received = method.load(clients, first.keep, message)
    tally.note("received", evaluator.all(method, clients, received))

    epochs: defaultdict[int, Evaluation] = defaultdict(evaluator.nothing)
    clients.begin_round(spec.protocol.rounds)
    clients.after_epoch = evaluator.after_epoch(method, clients, epochs)
    with run.clients_turn():
        update = method.update(clients, received, message)
    if len(epochs) == spec.newcomers.epochs:
        for epoch in range(spec.newcomers.epochs - 1):
            tally.note("trained", epochs[epoch])
    tally.note("trained", evaluator.all(method, clients, update.keep))
    return tally
