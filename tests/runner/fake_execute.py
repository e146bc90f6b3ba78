"""Stand-ins for a run's execution; light to import, as every worker process does."""

import errno
import hashlib
import json
import os
import signal
import sys
import time
from pathlib import Path

import numpy as np

from bench.engine.result import Code, RunResult
from bench.runner.workers import Order
from bench.spec import RunSpec

CLIENTS = 3


def outcome(spec: RunSpec) -> RunResult:
    """A finished run whose numbers follow from its spec alone."""
    bits = np.frombuffer(hashlib.sha256(spec.canonical().encode()).digest(), np.uint8).astype(np.int32)
    counts = (bits[: 2 * CLIENTS] % 5).reshape(2, CLIENTS)
    return RunResult(
        "done",
        correct={
            (stage, split): counts for stage in ("received", "trained") for split in ("train", "val", "test")
        },
        samples={split: np.full(CLIENTS, 5, np.int32) for split in ("train", "val", "test")},
        seconds={"total": 0.5},
        partition_hash="p",
    )


def instant(order: Order) -> RunResult:
    """Succeeds at once."""
    return outcome(order.spec)


def faulty(order: Order) -> RunResult:
    """Goes wrong in a way that the seed chooses; seeds from 10 on are fine."""
    match order.spec.seed:
        case 0:
            raise ValueError("first line\nsecond line")
        case 1:
            os._exit(3)
        case 2:
            os.kill(os.getpid(), signal.SIGKILL)
    return outcome(order.spec)


def told(order: Order) -> RunResult:
    """Reports the threads it was given, the environment it finds, and code that the sweep itself has not.
    Fails unless it is told whole paths.
    """
    assert all(Path(root).is_absolute() for root in order.roots)
    result = outcome(order.spec)
    result.code = Code(7, 8, "edited")
    result.peak_memory = order.threads
    result.bytes_up = int(os.environ["OMP_NUM_THREADS"])
    result.bytes_down = int(signal.getsignal(signal.SIGINT) == signal.SIG_IGN)
    result.device = order.device
    return result


def scripted(order: Order) -> RunResult:
    """Does what ``script.json`` in the first data root says for this run and attempt.

    A key of the script is ``METHOD CLIENTS SEED``, or ``*`` for every other run; its value a list with
    a word for each attempt, the last one for all that follow: ``done``, ``done SECONDS``, ``oom``,
    ``signal NUMBER``, ``exit CODE``, ``hang``, ``leave``, ``disk`` or ``raise``.
    Every attempt leaves a line in ``attempts/KEY``.
    """
    folder, spec = Path(order.roots[0]), order.spec
    key = f"{spec.method} {spec.clients} {spec.seed}"
    script = json.loads((folder / "script.json").read_text())
    log = folder / "attempts" / key
    number = len(log.read_text().splitlines()) if log.exists() else 0
    began = time.monotonic()
    words = script.get(key, script.get("*", ["done"]))
    word, _, value = words[min(number, len(words) - 1)].partition(" ")
    note = {"shrink": order.shrink, "device": order.device, "pid": os.getpid(), "began": began}
    with log.open("a") as file:
        file.write(json.dumps(note) + "\n")
    match word:
        case "oom":
            raise MemoryError("no more")
        case "signal":
            os.kill(os.getpid(), int(value))
        case "exit":
            os._exit(int(value))
        case "hang":
            while True:
                time.sleep(60)
        case "leave":
            sys.exit("left")
        case "disk":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        case "raise":
            raise ValueError(f"seed {spec.seed}")
    result = outcome(order.spec)
    result.device = order.device
    time.sleep(float(value or 0))
    (folder / "ended" / key).write_text(str(time.monotonic()))
    return result
