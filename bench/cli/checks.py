"""``bench check-method``, ``check-gpu``, ``doctor`` and ``speed``: what is to mend, what takes how long."""

from __future__ import annotations

import os
from dataclasses import asdict
from functools import partial
from pathlib import Path

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from bench.cli import options
from bench.cli.output import Screen, console, say, table
from bench.errors import NotApplicableError, RequestError


def check_method(file: Path) -> int:
    """Check the methods of a Python file against the contract, and say what to mend.

    The methods run for a few rounds on a small made-up federation; no data is needed.

    Args:
        file: A file with one or more classes that extend bench.engine.method.Method.
    """
    from bench.comparison import methods_in
    from bench.contract.checks import check

    problems: list[str] = []
    for name in methods_in(file):
        family = ""
        for finding in check(name):
            if finding.family != family:
                family = finding.family
                say(f"{name} ({file.name}) on {family} data")
            is_repeated = finding.problem in problems
            mark = "mend" if finding.problem else "ok"
            line = f"{mark} {finding.rule}{': the same' if is_repeated else ''}"
            console().print(Padding(Text(line), (0, 0, 0, 2)))
            if finding.problem and not is_repeated:
                console().print(Padding(Text(finding.problem), (0, 0, 0, 7)))
            problems += [finding.problem] if finding.problem else []
    say(f"{len(problems)} to mend" if problems else "every rule is kept")
    return 1 if problems else 0


def check_gpu() -> int:
    """Run on the GPU what only a GPU can show, and print a table; says so where there is none.

    Stacked against sequential training for every client model, a run that is short of memory, one that is
    taken up again. Exit code 1 if anything is not as it should be.
    """
    import torch

    from bench.timing.gpu import examine

    if not torch.cuda.is_available():
        print("no GPU here: torch sees no CUDA device, and nothing was checked")
        return 0
    rows = []
    for finding, seconds in examine("cuda"):
        state = "ok" if finding.well else "not ok"
        rows.append((finding.part, finding.subject, finding.text, state, f"{seconds:.1f}"))
    say(f"{torch.cuda.get_device_name()}, torch {torch.__version__}")
    console().print(table(("part", "of", "what was seen", "", "seconds"), rows, right={"seconds"}))
    return 1 if any(state == "not ok" for *_, state, _ in rows) else 0


def doctor() -> int:
    """Report the environment, devices, storage, database, plug-ins and data, and say what to fix."""
    from bench.doctor import examine

    signs = list(examine())
    grid = Table.grid(padding=(0, 2))
    for sign in signs:
        grid.add_row(*sign)
    Screen(markup=False, highlight=False).print(grid)
    count = sum(state == "fix" for state, _, _ in signs)
    print(f"{count} to fix" if count else "nothing to fix")
    return 1 if count else 0


def speed(
    *,
    dataset: options.OneDataset = "cora",
    clients: options.ClientCounts = (),
    method: options.Methods = (),
    rounds: int = 9,
    devices: str = "cpu",
) -> None:
    """Measure seconds a round, on graphs against a sequential reference.

    Args:
        clients: Numbers of clients; 10,50,100 by default, 20 on images.
        method: Methods, by default FedAvg.
        rounds: Rounds measured, after two to warm up; the median is reported.
        devices: cpu, on all cores, or a GPU such as cuda or cuda:1.
    """
    from bench.dataset import DATASETS
    from bench.paths import data_roots
    from bench.runner.workers import choose
    from bench.timing.speed import apart, cases, measure

    data = DATASETS.named(dataset)
    scenario, threads = data.scenarios[0], os.cpu_count() or 1
    (device,) = choose(devices, 1, threads, 1).devices
    work = partial(measure, rounds=rounds, roots=data_roots(), device=device, threads=threads)
    try:
        rows = [asdict(apart(work, case)) for case in cases(dataset, scenario, clients, method)]
    except NotApplicableError as error:
        raise RequestError(f"not measured: {error}") from None
    headings = [name.replace("_", " ") for name in rows[0]]
    lines = [
        [f"{value:.4g}" if isinstance(value, float) else value for value in row.values()] for row in rows
    ]
    numbers, title = {*headings} - {"dataset", "method", "model"}, f"{data.title}, {scenario}"
    console(140).print(table(headings, lines, right=numbers, title=title))
