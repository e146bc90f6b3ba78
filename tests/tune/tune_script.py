"""Two searches as a process: python tune_script.py HOME LOG SECONDS TRIALS SLOTS."""

import os
import signal
import sys
import time
from pathlib import Path

from bench.engine.result import RunResult
from bench.sweep.order import Order


def logged(order: Order) -> RunResult:
    """Leaves a file for every run in the first data root, and takes the seconds that the second names."""
    from toy_tuning import answer

    (Path(order.roots[0]) / f"{time.monotonic_ns()}-{os.getpid()}").write_text(order.spec.canonical())
    time.sleep(float(order.roots[1]))
    return answer(order)


def main(home: str, log: str, seconds: str, trials: str, slots: str) -> None:
    # Imported here: worker processes import this file, too.
    from toy_tuning import any_federation, cpu, tuning

    from bench.tune.run import tune

    tuned = tune(
        [tuning("local", int(trials)), tuning("fedprox", int(trials))],
        f"sqlite:///{Path(home) / 'tuning.db'}",
        Path(home),
        (Path(log), Path(seconds)),
        cpu(int(slots)),
        1,
        print,
        lambda search, where, trial: print("ended", trial.number, flush=True),
        execute=logged,
        build=any_federation,
    )
    print(len(tuned.records), tuned.failed)


if __name__ == "__main__":
    # A shell starts background jobs with interrupts ignored, and their children inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        main(*sys.argv[1:])
    except KeyboardInterrupt:
        sys.exit(130)
