"""Two studies as a process: python tune_script.py HOME LOG SECONDS TRIALS SLOTS."""

import os
import signal
import sys
from pathlib import Path


def main(home: str, log: str, seconds: str, trials: str, slots: str) -> None:
    os.fsync = lambda descriptor: None  # a killed process loses nothing that it has written
    # Imported here: worker processes import this file, too.
    from tune_fakes import any_federation, cpu, logged, tuning

    from bench.tune.run import tune

    studies = [tuning("local", int(trials)), tuning("fedprox", int(trials))]
    tuned = tune(
        studies,
        Path(home),
        (Path(log), Path(seconds)),
        cpu(int(slots)),
        lambda text: print(text, flush=True),
        lambda ledger, trial: print("ended", trial.number, flush=True),
        logged,
        any_federation,
    )
    print(len(tuned.records), tuned.failed)


if __name__ == "__main__":
    # A shell starts background jobs with interrupts ignored, and their children inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        main(*sys.argv[1:])
    except KeyboardInterrupt:
        sys.exit(130)
