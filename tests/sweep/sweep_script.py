"""A sweep of slow runs of two methods as a process: sweep_script.py DATABASE LOG SECONDS SEEDS SILENCE."""

import signal
import sys
from functools import partial
from pathlib import Path

from fake_execute import logged


def main(database: str, log: str, seconds: str, seeds: str, silence: str) -> None:
    # Imported here: worker processes import this file, too.
    sys.path.append(str(Path(__file__).parents[1]))
    from fake_runs import any_federation, cpu, grid, plan_for
    from rich.console import Console

    from bench.grids import expand
    from bench.sweep.display import Display
    from bench.sweep.run import sweep
    from bench.sweep.workers import LocalPool

    plan = plan_for(database, expand(grid(seeds=tuple(range(int(seeds))))))
    outcome = sweep(
        plan,
        database,
        (Path(log), Path(seconds)),
        cpu(2),
        Display(Console(width=200)),
        logged,
        any_federation,
        home=Path(log).parent,
        make_pool=partial(LocalPool, silence=float(silence)),
    )
    print(outcome.counts, outcome.ran)


if __name__ == "__main__":
    # A shell starts background jobs with interrupts ignored, and their children inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    main(*sys.argv[1:])
