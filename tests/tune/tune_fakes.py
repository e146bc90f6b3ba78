"""Stand-ins for trials; light to import, as every worker process does."""

import hashlib
import json
import os
import signal
import time
from collections import defaultdict
from concurrent.futures import Future
from pathlib import Path
from threading import Lock, Timer
from typing import Any

from bench.engine.result import RunResult
from bench.errors import NotApplicableError
from bench.resolve import resolve
from bench.sweep.devices import Slots
from bench.sweep.pool import Lost
from bench.sweep.worker import Order
from bench.tune.space import Space, search_space
from bench.tune.trial import TrialOrder, TrialResult
from bench.tune.tuning import Tuning

ROUNDS = 6
EPOCHS = 2


class FakeFederation:
    """What is read of a federation."""

    hash = "fake"
    provenance: dict[str, Any] = {}  # noqa: RUF012


def any_federation(*key: Any, roots: tuple[Path, ...]) -> Any:
    """Whatever was asked for."""
    return FakeFederation()


def tuning(method: str = "local", trials: int = 8, space: Space | None = None, **names: Any) -> Tuning:
    """A study of few rounds on embedded data."""
    settings = {"protocol.rounds": ROUNDS, "protocol.local_epochs": EPOCHS}
    spec = resolve(
        names.get("dataset", "cora"), "non-overlapping", names.get("clients", 3), method, 1000, settings
    )
    return Tuning(spec, search_space(spec) if space is None else space, (1000, 1001), trials)


def cpu(slots: int) -> Slots:
    """Slots on the processor."""
    return Slots(("cpu",) * slots, 1)


def expected_curve(order: TrialOrder) -> list[float]:
    """A curve that follows from the configuration alone."""
    settings = json.loads(order.spec)
    settings.pop("seed")
    digest = hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).digest()
    last = 0.3 + 0.6 * int.from_bytes(digest[:4], "little") / 2**32
    return [last * (round + 1) / ROUNDS for round in range(ROUNDS)]


def answer(order: Order) -> TrialResult:
    """What a trial would: it stops below a threshold, and where its allowance ends."""
    assert isinstance(order, TrialOrder)
    result = TrialResult("done", seconds={"total": 0.25})
    curve: list[float] = []
    for round, value in enumerate(expected_curve(order)):
        if (round + 1) * EPOCHS * 2 > order.allowance + 1e-6:
            result.stopped = "cut"
            break
        curve.append(value)
        if value < order.thresholds[round]:
            result.stopped = "pruned"
            break
    result.curve, result.client_epochs = tuple(curve), float(len(curve) * EPOCHS * 2)
    return result


def logged(order: Order) -> RunResult:
    """Leaves a file for every trial in the first data root, and takes the seconds that the second names."""
    time.sleep(float(order.roots[1]))
    (Path(order.roots[0]) / f"{time.monotonic_ns()}-{os.getpid()}").write_text(order.spec)
    return answer(order)


def costly(order: Order) -> RunResult:
    """Uses half as much again as the protocol says, if it may: a warm-up."""
    assert isinstance(order, TrialOrder)
    whole = 1.5 * ROUNDS * EPOCHS * 2
    used = min(whole, order.allowance)
    stopped = "cut" if used < whole else ""
    return TrialResult(
        "done",
        seconds={"total": 0.25},
        curve=tuple(expected_curve(order)),
        client_epochs=used,
        stopped=stopped,
    )


def faulty(order: Order) -> RunResult:
    """Goes wrong in a way that the weight decay chooses, but for the default one."""
    decay = json.loads(order.spec)["client"]["weight_decay"]
    rate = json.loads(order.spec)["client"]["learning_rate"]
    if decay == 0:
        raise ValueError("first line\nsecond line")
    if decay == 0.005:
        if rate == 0.001:
            os.kill(os.getpid(), signal.SIGKILL)
        return TrialResult(
            "diverged",
            "the loss is nan after 1 rounds",
            seconds={"total": 0.25},
            curve=(0.99,),
            client_epochs=4.0,
        )
    return answer(order)


def broken(order: Order) -> RunResult:
    """Always fails."""
    raise ValueError("no good")


def too_large(order: Order) -> RunResult:
    """Never fits."""
    raise MemoryError("no room")


class Crowded:
    """In the place of workers: a trial of the default weight decay does not fit unless it is alone on its
    device from its begin to its end.
    """

    def __init__(self, *_: Any) -> None:
        self._at_work: dict[str, set[Future[RunResult]]] = defaultdict(set)
        self._beside: set[Future[RunResult]] = set()
        self._lock = Lock()

    def start(self, slot: int, order: Order, log: Path | None, fresh: bool) -> Future[RunResult]:
        future: Future[RunResult] = Future()
        with self._lock:
            device = self._at_work[order.device]
            device.add(future)
            if len(device) > 1:
                self._beside |= device
        Timer(0.03 * (slot + 1), self._end, (future, order)).start()
        return future

    def _end(self, future: Future[RunResult], order: Order) -> None:
        with self._lock:
            self._at_work[order.device].remove(future)
        large = json.loads(order.spec)["client"]["weight_decay"] == 0.0005
        future.set_result(RunResult("oom", "no room") if large and future in self._beside else answer(order))

    def ended(self, slot: int, future: Future[RunResult], device: str) -> RunResult:
        return future.result()

    def replace(self, slot: int) -> None:
        pass

    def stop(self) -> None:
        pass


class Killed(Crowded):
    """In the place of workers: the system kills every trial for want of memory, and counts that."""

    kills = 0

    def start(self, slot: int, order: Order, log: Path | None, fresh: bool) -> Future[Any]:
        future: Future[Any] = Future()
        Killed.kills += 1
        future.set_result(Lost("the worker process died (killed by signal 9)", sigkill=True))
        return future


def not_applicable(order: Order) -> RunResult:
    """Cannot be."""
    raise NotApplicableError("not on this")
