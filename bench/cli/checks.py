"""``bench check-method``, ``bench check-gpu`` and ``bench doctor``: what is to mend here."""

from __future__ import annotations

import inspect
import re
import textwrap
from pathlib import Path

from rich.table import Table

from bench.cli.output import Screen, console, say, table
from bench.engine.methods import METHODS
from bench.errors import RequestError, unknown


def check_method(file: Path) -> int:
    """Check the methods of a Python file against the contract, and say what to mend.

    The methods run for a few rounds on a small made-up federation; no data is needed.

    Parameters
    ----------
    file:
        A file with one or more classes that extend bench.engine.method.Method.
    """
    from bench import registry
    from bench.contract.checks import check

    module = registry.add_plugin(file)
    names = [name for name, kind in METHODS.all().items() if inspect.getmodule(kind) is module]
    if not names:
        raise RequestError(
            f"{file} holds no method: expected a class that extends bench.engine.method.Method "
            "and has a name of its own"
        )
    count, width = 0, console().width - 1
    for name in names:
        family, problems = "", set[str]()
        for finding in check(name):
            if finding.family != family:
                family, problems = finding.family, set()
                say(f"{name} ({file.name}) on {family} data")
            count += bool(finding.problem)
            is_repeated = finding.problem in problems
            problems |= {finding.problem} - {""}
            mark = f"  {'mend' if finding.problem else 'ok  '} "
            say(indented(mark, f"{finding.rule}{': the same' if is_repeated else ''}", width))
            if finding.problem and not is_repeated:
                say(indented(" " * 9, finding.problem, width))
    say("every rule is kept" if not count else f"{count} to mend")
    return 1 if count else 0


def indented(mark: str, text: str, width: int) -> str:
    """A text in lines of so many columns, the first after a mark, the others below its text."""
    indent = " " * len(mark)
    wrapper = textwrap.TextWrapper(
        width,
        initial_indent=mark,
        subsequent_indent=indent,
        break_on_hyphens=False,
        break_long_words=False,
    )
    return wrapper.fill(text)


def check_gpu(*, devices: str = "cuda") -> int:
    """Run on a GPU what only a GPU can show, and print a table; says so where there is none.

    Stacked against sequential training for every client model, two runs at once, a run that is short of
    memory, one that is taken up again, one that is not finite. Exit code 1 if anything is not as it should
    be.

    Parameters
    ----------
    devices
        The GPU: cuda, or cuda:1 for the second one.
    """
    if not re.fullmatch(r"cuda(:[0-9]+)?", devices):
        raise RequestError(f"--devices: expected a GPU, cuda or cuda:1, got '{devices}'")

    from bench.sweep.workers import visible_gpus

    gpus = visible_gpus()
    if not gpus:
        print("no GPU here: torch sees no CUDA device, and nothing was checked")
        return 0

    import torch

    from bench.timing.gpu import examine

    names = ["cuda", *gpus]
    if devices not in names:
        raise unknown("device", devices, names)
    rows, count = [], 0
    with console(errors=True).status("starting") as progress:
        for finding, seconds in examine(devices):
            count += finding.well is False
            state = {True: "ok", False: "not ok", None: "-"}[finding.well]
            rows.append((finding.part, finding.subject, finding.text, state, f"{seconds:.1f}"))
            progress.update(f"{len(rows)} checked, the last: {finding.part}, {finding.subject}: {state}")
    say(f"{torch.cuda.get_device_name(devices)}, torch {torch.__version__}")
    console().print(table(("part", "of", "what was seen", "", "seconds"), rows, right={"seconds"}))
    return 1 if count else 0


def doctor() -> int:
    """Report the environment, devices, storage, database, plug-ins and data, and say what to fix."""
    from bench.doctor import examine

    signs = list(examine())
    grid = Table.grid(padding=(0, 2))
    for sign in signs:
        grid.add_row(sign.state, sign.topic, sign.text)
    Screen(markup=False, highlight=False).print(grid)
    count = sum(sign.state == "fix" for sign in signs)
    print(f"{count} to fix" if count else "nothing to fix")
    return 1 if count else 0
