"""``bench tune``: find each method's configuration with the same budget for all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console

from bench import paths
from bench.cli.seeds import Seeds
from bench.sweep.devices import check_counts, choose

WIDTH = 120
"""Columns of the table where the terminal is narrower or there is none."""


def tune(
    *,
    grid: str | None = None,
    dataset: Annotated[list[str] | None, Parameter(name=["--dataset", "-d"], negative="")] = None,
    method: Annotated[list[str] | None, Parameter(name=["--method", "-m"], negative="")] = None,
    clients: Annotated[list[int] | None, Parameter(name=["--clients", "-k"], negative="")] = None,
    scenario: Annotated[list[str] | None, Parameter(name=["--scenario", "-s"], negative="")] = None,
    trials: int = 20,
    tune_seeds: Seeds = None,
    set_: Annotated[list[str] | None, Parameter(name="--set", negative="")] = None,
    db: str | None = None,
    data_root: Path | None = None,
    jobs: int | None = None,
    threads: int | None = None,
    devices: str | None = None,
    dry_run: Annotated[bool, Parameter(negative="")] = False,
    plots: Path | None = None,
    as_json: Annotated[bool, Parameter(name="--json", negative="")] = False,
) -> int:
    """Tune methods by validation accuracy; the same command again goes on where it stopped.

    A cell's winner is written to BENCH_HOME/tuned when the study's budget is used up; bench sweep
    --use-tuned runs it. Options that can be given several times: -d, -m, -k, -s, --tune-seeds, --set.

    Parameters
    ----------
    grid
        Name of a grid (tuning_fedsheafhn, ...) or a TOML file. Without it, -d and -m say what to tune.
    dataset
        Only this data set of the grid.
    method
        Only this method of the grid.
    clients
        Only this number of clients of the grid; without a grid: 10 if left out.
    scenario
        Only this scenario of the grid; without a grid: the data set's first if left out.
    trials
        Trials of a study in total; with rounds, local epochs and seeds it gives the client epochs.
    tune_seeds
        Seed of the search; default: 1000 and 1001. Seeds of reports, 0 to 19, are refused.
    set_
        Override of a setting that is not tuned, such as protocol.rounds=8.
    db
        Database whose stored runs say how long trials take; default: sqlite:///BENCH_HOME/bench.db.
    data_root
        Folder searched first for raw files.
    jobs
        Trials at a time over all devices; default: one for each core, on GPUs at most four for each of them.
    threads
        Threads of one trial; default 1.
    devices
        cpu, cuda, or GPUs such as cuda:0,cuda:1; default: every visible GPU, else cpu.
    dry_run
        Print the studies, how far they are and how long the rest takes, and run nothing.
    plots
        Folder for figures of the trials that are done; nothing is run.
    as_json
        Print the studies (--dry-run) or the winners as JSON on standard output.
    """
    check_counts(jobs, threads)
    roots = paths.data_roots(data_root)

    from bench.grids import Filters, ad_hoc, expand, load_grid
    from bench.resolve import parse_overrides
    from bench.tune.tuning import check_request, tunings

    seeds = check_request(trials, tune_seeds or ())
    filters = Filters(tuple(dataset or ()), tuple(scenario or ()), tuple(clients or ()), tuple(method or ()))
    wanted = load_grid(grid) if grid else ad_hoc(filters)
    # One partition is tuned on, that of protocol.partition_seed, also where a grid has one a seed.
    once = wanted.model_copy(update={"seeds": seeds[:1], "partition_per_seed": False})
    planned = expand(once, filters, parse_overrides(set_ or []))
    studies, skipped = tunings(planned, trials, seeds)

    from bench.store.peek import stored_runs
    from bench.sweep.estimate import Estimator
    from bench.sweep.plan import data_at_hand
    from bench.tune import show
    from bench.tune.ledger import stored_trials
    from bench.tune.run import tune as run_studies

    home = paths.home()
    slots = choose(devices, jobs, threads, len(studies) * trials)
    out, notes = Console(), Console(stderr=as_json)

    def said(text: str) -> None:
        notes.print(text, markup=False, highlight=False, soft_wrap=True)

    if plots is not None:
        from bench.tune.plots import figures_of

        for path in figures_of(studies, home, plots):
            print(path)
        return 0
    if dry_run:
        _, history = stored_runs(db or paths.default_database(), write=False)
        estimator, lacking = Estimator(history, slots.sort), data_at_hand(roots)
        done = stored_trials(home / "tuning", studies)
        every = [
            show.standing(each, done[each.name], estimator, lacking(each.spec.dataset)) for each in studies
        ]
        if as_json:
            print(json.dumps(show.as_json(every, skipped, len(slots.devices)), indent=1))
            return 0
        Console(width=max(out.width, WIDTH)).print(show.table(every))
        for name, reason in skipped.items():
            said(f"left out: {name}: {reason}")
        said(show.cost(every, len(slots.devices)))
        return 0
    tuned = run_studies(
        studies, home, roots, slots, said, lambda ledger, trial: said(show.line(ledger, trial))
    )
    if as_json:
        print(json.dumps(show.outcome_json(tuned), indent=1))
    else:
        for record, _ in tuned.records:
            said(show.result(record))
    for title, reason in tuned.failed.items():
        said(f"{title}: no winner: {reason}")
    return tuned.exit_code
