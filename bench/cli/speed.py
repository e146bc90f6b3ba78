"""``bench speed``."""

from __future__ import annotations

import json as json_format
import os
import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console
from rich.table import Table

from bench.errors import NotApplicableError, RequestError
from bench.paths import data_roots

WIDTH = 105
"""Columns that the table takes, whatever the terminal says."""


def speed(
    *,
    dataset: Annotated[str, Parameter(name=["--dataset", "-d"])] = "cora",
    clients: Annotated[list[int] | None, Parameter(name=["--clients", "-k"])] = None,
    methods: Annotated[list[str] | None, Parameter(name=["--methods", "--method", "-m"])] = None,
    rounds: int = 9,
    threads: int | None = None,
    device: str = "cpu",
    json: Path | None = None,
) -> None:
    """Measure seconds a round: the stacked engine against the sequential reference.

    Parameters
    ----------
    dataset:
        Graph data set; arxiv-size is a synthetic one with ogbn-arxiv's size.
    clients:
        Client counts; 10 20 50 100 200 by default.
    methods:
        Methods, or 'all' for every one at 10, 50 and 100 clients; by default FedAvg at every count
        and FedSheafHN at the first.
    rounds:
        Rounds measured, after two to warm up; the median is reported.
    threads:
        Threads of one process; all cores by default.
    device:
        cpu or cuda.
    json:
        Also write the rows to this file.
    """
    import torch

    from bench import registry
    from bench.speed import apart, as_rows, every_method, is_plain, measure, measure_machine

    data = registry.dataset(dataset)
    threads = threads or os.cpu_count() or 1
    torch.set_num_threads(threads)
    every = methods == ["all"]
    counts = clients or ([10, 50, 100] if every else [10, 20, 50, 100, 200])
    names = every_method() if every else methods
    cells = (
        [(name, count) for count in counts for name in names]
        if names
        else [*(("fedavg", count) for count in counts), ("fedsheafhn", counts[0])]
    )
    machine = measure_machine(torch.device(device))
    rows = []
    for name, count in cells:
        sequential_too = is_plain(name) and not every
        try:
            row = apart(
                measure, dataset, name, count, rounds, machine, data_roots(), device, threads, sequential_too
            )
        except NotApplicableError as error:
            if every:
                continue
            raise RequestError(str(error)) from None
        rows.append(row)
        if every:  # minutes a line where a method trains a generator first
            print(f"{name} {count}: {row.seconds_per_round * 1e3:.1f} ms a round", file=sys.stderr)
    table = Table(
        title=f"{data.title}, {data.protocol.local_epochs} local epochs, both evaluations; "
        f"medians of {rounds} rounds, "
        f"{threads} threads, {device}; "
        f"copy {machine.bandwidth / 1e9:.0f} GB/s, matrices {machine.matrix_rate / 1e9:.0f} GFLOP/s"
    )
    for heading in (
        "method",
        "clients",
        "ms a round",
        "sequential",
        "ratio",
        "peak MiB",
        "bound ms",
        "share",
    ):
        table.add_column(heading, justify="left" if heading == "method" else "right")
    for row in rows:
        table.add_row(
            row.method,
            str(row.clients),
            f"{row.seconds_per_round * 1e3:.1f}",
            "-"
            if row.sequential_seconds_per_round is None
            else f"{row.sequential_seconds_per_round * 1e3:.1f}",
            "-" if row.ratio is None else f"{row.ratio:.2f}",
            f"{row.peak_mib:.0f}",
            f"{row.bound_seconds * 1e3:.1f}",
            f"{row.bound_share:.0%}",
        )
    Console(width=max(Console().width, WIDTH)).print(table)
    if json:
        json.write_text(json_format.dumps(as_rows(rows), indent=1) + "\n")
