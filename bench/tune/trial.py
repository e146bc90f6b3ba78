"""A trial in a worker process: its runs side by side, round by round, looking at validation alone."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from bench.engine.result import RunResult
from bench.errors import DivergedError
from bench.spec import RunSpec
from bench.sweep.worker import FEDERATIONS, Order
from bench.tune.record import EPSILON
from bench.tune.tuning import STAGE

if TYPE_CHECKING:
    from bench.engine.clients import Clients
    from bench.engine.run import Run
    from bench.federation.types import Federation
    from bench.sweep.federations import Key


@dataclass(frozen=True)
class TrialOrder(Order):
    """An order for one configuration; ``spec`` is that of the first seed, ``others`` are the rest.

    ``thresholds`` says what the trial must have reached after every round, ``allowance`` how many client
    epochs it may use.
    """

    others: tuple[str, ...] = ()
    thresholds: tuple[float, ...] = ()
    allowance: float = 0.0

    @property
    def specs(self) -> tuple[RunSpec, ...]:
        """The runs, one for each seed."""
        return tuple(map(RunSpec.model_validate_json, (self.spec, *self.others)))


@dataclass(eq=False)
class TrialResult(RunResult):
    """What comes back of a trial; no count of a test item is in it.

    ``curve`` is the best mean validation accuracy so far after every round that was run, mean over
    seeds; ``client_epochs`` what was used, summed over seeds; ``stopped`` why it ended early.
    """

    curve: tuple[float, ...] = ()
    client_epochs: float = 0.0
    stopped: Literal["", "pruned", "cut"] = ""


class Spent(Exception):
    """A trial has no client epochs left for what it is about to do."""


@dataclass
class Purse:
    """The client epochs that a trial may use, over all its runs."""

    left: float

    def pay(self, client_epochs: float) -> None:
        """Take some out; raises ``Spent`` where there are not so many."""
        if client_epochs > self.left + EPSILON:
            raise Spent
        self.left -= client_epochs


def paying(purse: Purse) -> type[Clients]:
    """Clients that pay for every fit before they begin it."""
    from bench.engine.clients import Clients

    class Paying(Clients):
        def fit(self, *args: Any, **kwargs: Any) -> Any:
            purse.pay(self.passes_of(kwargs.get("epochs"), kwargs.get("items")))
            return super().fit(*args, **kwargs)

    return Paying


def execute(order: Order) -> RunResult:
    """Execute a trial.

    Raises:
        NoDataError: the data set is not to be had.
        NotApplicableError: the method cannot do what the spec asks.
    """
    import torch

    from bench.engine.conditions import run_conditions
    from bench.engine.run import Run

    assert isinstance(order, TrialOrder)
    torch.set_num_threads(order.threads)
    federation = _federation(order.specs[0].federation_key, order.roots)
    began = time.perf_counter()
    clients = paying(Purse(order.allowance))
    with run_conditions():
        runs = [Run(spec, federation, order.device, clients_type=clients) for spec in order.specs]
        result = _play(runs, order)
    result.seconds = {"total": time.perf_counter() - began}
    return result


def _play(runs: Sequence[Run], order: TrialOrder) -> TrialResult:
    """The rounds of all seeds in step, until one of the reasons to end."""
    result = TrialResult("done", device=order.device)
    curve: list[float] = []
    try:
        for each in runs:
            each.warm_up()
        for round in range(runs[0].spec.protocol.rounds):
            for each in runs:
                each.step(round)
            curve.append(reached(runs, round))
            if curve[-1] < order.thresholds[round]:
                result.stopped = "pruned"
                break
    except Spent:
        result.stopped = "cut"
    except DivergedError as error:
        result.state = "diverged"
        result.reason = f"{error} after {len(curve)} rounds"
    result.curve = tuple(curve)
    result.client_epochs = sum(each.clients.passes for each in runs)
    return result


def reached(runs: Sequence[Run], round: int) -> float:
    """The best mean validation accuracy over clients up to a round, mean over the runs."""
    from bench.federation.types import VALIDATION
    from bench.selection import client_mean

    best = []
    for each in runs:
        rows = each.counts[STAGE]
        upto = (round + 1) * len(rows) // each.spec.protocol.rounds
        samples = each.evaluator.samples["val"]
        best.append(float(client_mean(rows[:upto, VALIDATION], samples).max()))
    return sum(best) / len(best)


@lru_cache(maxsize=FEDERATIONS)
def _federation(key: Key, roots: tuple[str, ...]) -> Federation:
    from bench.federation.build import build

    return without_test_labels(build(*key, roots=tuple(Path(root) for root in roots)))


def without_test_labels(federation: Federation) -> Federation:
    """The federation with the labels of its test items replaced by -1: a search cannot see them."""
    import numpy as np

    from bench.federation.types import TEST

    clients = tuple(
        replace(client, labels=np.where(client.roles == TEST, -1, client.labels))
        for client in federation.clients
    )
    return replace(federation, clients=clients)
