"""``bench check-method``."""

from __future__ import annotations

import inspect
from pathlib import Path

from rich.console import Console

from bench.engine.methods import METHODS
from bench.errors import RequestError


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
    console = Console(highlight=False)
    broken = 0
    for name in names:
        family = ""
        for finding in check(name):
            if finding.family != family:
                family = finding.family
                console.print(f"{name} ({file.name}) on {family} data", markup=False, soft_wrap=True)
            broken += bool(finding.problem)
            console.print(
                f"  {'mend' if finding.problem else 'ok  '} {finding.rule}", markup=False, soft_wrap=True
            )
            if finding.problem:
                console.print(f"         {finding.problem}", markup=False, soft_wrap=True)
    console.print("every rule is kept" if not broken else f"{broken} to mend")
    return 1 if broken else 0
