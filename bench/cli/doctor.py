"""``bench doctor``."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table


def doctor() -> int:
    """Report the environment, devices, storage, database, plug-ins and data, and say what to fix."""
    from bench.doctor import examine

    signs = list(examine())
    table = Table.grid(padding=(0, 2))
    for sign in signs:
        table.add_row(sign.state, sign.topic, sign.text)
    Console(markup=False, highlight=False).print(table)
    broken = sum(sign.state == "fix" for sign in signs)
    print(f"{broken} to fix" if broken else "nothing to fix")
    return 1 if broken else 0
