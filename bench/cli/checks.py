"""``bench check-method``, ``check-gpu``, ``doctor`` and ``speed``: what is to mend, what takes how long."""

from __future__ import annotations

import inspect
import json
import os
import sys
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text

from bench.cli import options
from bench.cli.output import Screen, console, say, table
from bench.errors import NotApplicableError, RequestError, unknown
from bench.paths import data_roots

if TYPE_CHECKING:
    from bench.timing.speed import Case, Row


def check_method(file: Path) -> int:
    """Check the methods of a Python file against the contract, and say what to mend.

    The methods run for a few rounds on a small made-up federation; no data is needed.

    Args:
        file: A file with one or more classes that extend bench.engine.method.Method.
    """
    from bench import registry
    from bench.contract.checks import check
    from bench.engine.methods import METHODS

    module = registry.add_plugin(file)
    names = [name for name, kind in METHODS.all().items() if inspect.getmodule(kind) is module]
    if not names:
        expected = "a class that extends bench.engine.method.Method and has a name of its own"
        raise RequestError(f"{file} holds no method: expected {expected}")
    problems: list[str] = []
    for name in names:
        family = ""
        for finding in check(name):
            if finding.family != family:
                family = finding.family
                say(f"{name} ({file.name}) on {family} data")
            is_repeated = finding.problem in problems
            grid = Table.grid(padding=(0, 1))  # further lines of a text stand below its first one
            mark = "  mend" if finding.problem else "  ok"
            grid.add_row(mark, Text(f"{finding.rule}: the same" if is_repeated else finding.rule))
            if finding.problem and not is_repeated:
                grid.add_row("", Text(finding.problem))
            console().print(grid)
            problems += [finding.problem] if finding.problem else []
    say(f"{len(problems)} to mend" if problems else "every rule is kept")
    return 1 if problems else 0


def check_device(device: str, *others: str) -> None:
    """Raises ``RequestError`` unless a device is one of the GPUs here or of ``others``."""
    from bench.runner.workers import visible_gpus

    gpus = visible_gpus()
    names = [*others, *(["cuda"] if gpus else []), *gpus]
    if device not in names:
        raise unknown("device", device, names)


def check_gpu(*, devices: str = "cuda") -> int:
    """Run on a GPU, such as cuda:1, what only a GPU can show, and print a table; says so where there is none.

    Stacked against sequential training for every client model, a run that is short of memory, one that is
    taken up again. Exit code 1 if anything is not as it should be.
    """
    import torch

    from bench.timing.gpu import examine

    if not torch.cuda.is_available():
        print("no GPU here: torch sees no CUDA device, and nothing was checked")
        return 0
    check_device(devices)
    rows = []
    for finding, seconds in examine(devices):
        state = "ok" if finding.well else "not ok"
        rows.append((finding.part, finding.subject, finding.text, state, f"{seconds:.1f}"))
    say(f"{torch.cuda.get_device_name(devices)}, torch {torch.__version__}")
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
    threads: options.Count | None = None,
    devices: str = "cpu",
    as_json: options.AsJson = False,
) -> None:
    """Measure seconds a round, on graphs against a sequential reference.

    Args:
        dataset: Data set.
        clients: Numbers of clients; 10,50,100 by default, 20 on images.
        method: Methods, by default FedAvg.
        rounds: Rounds measured, after two to warm up; the median is reported.
        threads: Threads of one process; all cores by default.
        devices: cpu, or a GPU such as cuda or cuda:1.
    """
    from bench.dataset import DATASETS
    from bench.timing.speed import apart, cases, measure

    check_device(devices, "cpu")
    data = DATASETS.named(dataset)
    scenario = data.scenarios[0]
    work: Callable[[Case], Row] = partial(
        measure,
        rounds=rounds,
        roots=data_roots(),
        device=devices,
        threads=threads or os.cpu_count() or 1,
    )
    records = []
    for case in cases(dataset, scenario, clients, method):
        try:
            records.append(asdict(apart(work, case)))
        except NotApplicableError as error:  # what is measured of the others is kept
            print(f"bench: not measured: {error}", file=sys.stderr)
    if not records:
        raise RequestError("no method could be measured")
    if as_json:
        print(json.dumps(records, indent=1))
        return
    headings = [name.replace("_", " ") for name in records[0]]
    lines = [
        [f"{value:.4g}" if isinstance(value, float) else value for value in record.values()]
        for record in records
    ]
    numbers, title = {*headings} - {"dataset", "method", "model"}, f"{data.title}, {scenario}"
    console(140).print(table(headings, lines, right=numbers, title=title))
