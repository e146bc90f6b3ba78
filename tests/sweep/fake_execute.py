"""Stand-ins for a run's execution; light to import, as every worker process does."""

import hashlib
import json
import os
import signal
import time
from pathlib import Path

import numpy as np

from bench.engine.result import RunResult

CLIENTS = 3


def outcome(spec_json: str) -> RunResult:
    """A finished run whose numbers follow from its spec alone."""
    bits = np.frombuffer(hashlib.sha256(spec_json.encode()).digest(), np.uint8).astype(np.int32)
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


def instant(spec_json: str, roots: tuple[str, ...], device: str, threads: int) -> RunResult:
    """Succeeds at once."""
    return outcome(spec_json)


def logged(spec_json: str, roots: tuple[str, ...], device: str, threads: int) -> RunResult:
    """Leaves a file for every start in the first data root and takes the seconds that the second names."""
    log = Path(roots[0])
    (log / f"{time.monotonic_ns()}-{os.getpid()}").write_text(spec_json)
    time.sleep(float(roots[1]))
    return outcome(spec_json)


def faulty(spec_json: str, roots: tuple[str, ...], device: str, threads: int) -> RunResult:
    """Goes wrong in a way that the seed chooses; seeds from 10 on are fine."""
    match json.loads(spec_json)["seed"]:
        case 0:
            raise ValueError("first line\nsecond line")
        case 1:
            os._exit(3)
        case 2:
            os.kill(os.getpid(), signal.SIGKILL)
        case 3:
            return RunResult("diverged", "the loss is nan in round 4")
        case 4:
            return RunResult("oom", "MemoryError")
        case 5:
            raise Unpicklable(lambda: None)
    return outcome(spec_json)


def told(spec_json: str, roots: tuple[str, ...], device: str, threads: int) -> RunResult:
    """Reports the threads and device it was given, and the environment it finds."""
    result = outcome(spec_json)
    result.peak_memory = threads
    result.bytes_up = int(os.environ["OMP_NUM_THREADS"])
    result.bytes_down = int(signal.getsignal(signal.SIGINT) == signal.SIG_IGN)
    result.device = device
    return result


class Unpicklable(Exception):
    """Cannot come back from a worker."""
