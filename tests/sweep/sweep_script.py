"""A sweep of twelve slow runs as a process: python sweep_script.py DATABASE LOG SECONDS."""

import signal
import sys
from pathlib import Path

from fake_execute import logged


def main(database: str, log: str, seconds: str) -> None:
    # Imported here: worker processes import this file, too.
    from fake_runs import any_federation, cpu, grid, plan_for
    from rich.console import Console

    from bench.grids import expand
    from bench.sweep.progress import PlainLines
    from bench.sweep.run import sweep

    plan = plan_for(database, expand(grid(seeds=tuple(range(6)))))
    outcome = sweep(
        plan, database, (Path(log), Path(seconds)), cpu(2), PlainLines(Console()), logged, any_federation
    )
    print(outcome.counts, outcome.ran)


if __name__ == "__main__":
    # A shell starts background jobs with interrupts ignored, and their children inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    main(*sys.argv[1:])
