"""``bench speed``."""

from __future__ import annotations

import json as json_format
import os
import sys
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

from cyclopts import Parameter
from rich.console import Console
from rich.table import Table

from bench.errors import NotApplicableError, RequestError, unknown
from bench.paths import data_roots
from bench.sweep.devices import check_counts

if TYPE_CHECKING:
    from bench.speed import Case, Row, WholeRow

    T = TypeVar("T", Row, WholeRow)

WIDTH = 105
"""Columns that the table takes, whatever the terminal says."""

ROUNDS = 9
IMAGE_CLIENTS = 20
"""Clients of the image study."""


def speed(
    *,
    dataset: Annotated[str, Parameter(name=["--dataset", "-d"])] = "cora",
    scenario: Annotated[str | None, Parameter(name=["--scenario", "-s"])] = None,
    clients: Annotated[list[int] | None, Parameter(name=["--clients", "-k"])] = None,
    methods: Annotated[list[str] | None, Parameter(name=["--methods", "--method", "-m"])] = None,
    rounds: int | None = None,
    whole: Annotated[bool, Parameter(negative="")] = False,
    threads: int | None = None,
    device: str = "cpu",
    json: Path | None = None,
) -> None:
    """Measure seconds a round, on graphs against a sequential reference, or seconds of whole runs.

    Parameters
    ----------
    dataset:
        Data set; arxiv-size is a synthetic graph with ogbn-arxiv's size. Where Cora has no room for so
        many clients, a synthetic graph of ten times its size takes its place.
    scenario:
        How it is spread over clients; the data set's first scenario by default.
    clients:
        Client counts; 10 20 50 100 200 by default, 20 on images.
    methods:
        Methods, or 'all' for every one, by default at 10, 50 and 100 clients and without the reference;
        by default FedAvg at every count and, on graphs, FedSheafHN at the first. On images either has
        FedAvg with every client model, against the reference.
    rounds:
        Rounds measured, after two to warm up; the median is reported. 9 by default.
    whole:
        Time whole runs instead, with all rounds of the data set's protocol: the median of three, after
        one to warm up.
    threads:
        Threads of one process; all cores by default.
    device:
        cpu or cuda.
    json:
        Also write the rows to this file.
    """
    import torch

    from bench.dataset import DATASETS
    from bench.nn.base import CLIENT_MODELS
    from bench.speed import WHOLE_RUNS, Case, every_method, measure, measure_machine, measure_whole

    if whole and rounds is not None:
        raise RequestError("--whole times all rounds of the protocol: leave out --rounds")
    rounds = ROUNDS if rounds is None else rounds
    _check(device, threads, json)
    data = DATASETS.named(dataset)
    scenario = scenario or data.scenarios[0]
    threads = threads or os.cpu_count() or 1
    torch.set_num_threads(threads)
    every = methods == ["all"]
    images = data.family == "images"
    counts = clients or ([IMAGE_CLIENTS] if images else [10, 50, 100] if every else [10, 20, 50, 100, 200])
    names = every_method(data.family) if every else methods
    cases = [
        Case(dataset, scenario, name, count, reference=not every or (images and name == "fedavg"))
        for count in counts
        for name in names or ["fedavg"]
    ]
    if images and not whole and (every or not names):
        fitting = [name for name, kind in CLIENT_MODELS.all().items() if data.family in kind.families]
        others = [name for name in fitting if name != data.client.model]
        cases += [Case(dataset, scenario, "fedavg", count, name) for count in counts for name in others]
    if not names and data.family == "graph":
        cases.append(Case(dataset, scenario, "fedsheafhn", counts[0]))
    subject, place = f"{data.title}, {scenario}", f"{threads} threads, {device}"
    rows: list[Row] | list[WholeRow]
    if whole:
        work = partial(measure_whole, roots=data_roots(), device=device, threads=threads)
        rows = _measured(work, cases, every)
        table = _table_of_runs(rows)
        table.title = f"{subject}; whole runs, medians of {WHOLE_RUNS}, {place}"
    else:
        machine = measure_machine(torch.device(device))
        work_on_rounds = partial(
            measure,
            rounds=rounds,
            machine=machine,
            roots=data_roots(),
            device=device,
            threads=threads,
        )
        rows = _measured(work_on_rounds, cases, every)
        table = _table_of_rounds(rows, dataset)
        table.title = (
            f"{subject}, {data.protocol.local_epochs} local epochs, both evaluations; "
            f"medians of {rounds} rounds, {place}; "
            f"copy {machine.bandwidth / 1e9:.0f} GB/s, matrices {machine.matrix_rate / 1e9:.0f} GFLOP/s"
        )
    Console(width=max(Console().width, WIDTH)).print(table)
    if json:
        json.write_text(json_format.dumps([asdict(row) for row in rows], indent=1) + "\n")


def _check(device: str, threads: int | None, json: Path | None) -> None:
    """Refuse, before anything is measured, where nothing can be measured or written."""
    import torch

    check_counts(None, threads)
    gpus = [f"cuda:{index}" for index in range(torch.cuda.device_count())]
    known = ["cpu", *(["cuda"] if gpus else []), *gpus]
    if device not in known:
        raise unknown("device", device, known)
    if json is not None and not json.absolute().parent.is_dir():
        raise RequestError(f"--json: there is no folder {json.parent}")


def _measured(work: Callable[[Case], T], cases: list[Case], every: bool) -> list[T]:
    """A row of each case, made in a process of its own; of ``every`` method, those that can run."""
    from bench.speed import apart

    rows = []
    for case in cases:
        try:
            row = apart(work, case)
        except NotApplicableError as error:
            if every:
                continue
            raise RequestError(str(error)) from None
        rows.append(row)
        if every:  # minutes a line where a method trains a generator first
            print(row, file=sys.stderr)
    return rows


def _table(*headings: str) -> Table:
    table = Table()
    for heading in headings:
        table.add_column(heading, justify="left" if heading == "method" else "right")
    return table


def _table_of_rounds(rows: list[Row], dataset: str) -> Table:
    headings = ("method", "clients", "ms a round", "x FedAvg", "sequential", "ratio", "peak MiB")
    table = _table(*headings, "bound ms", "share")
    models = {row.model for row in rows if row.method == "fedavg"}
    fedavg = {
        (row.dataset, row.model, row.clients): row.seconds_per_round for row in rows if row.method == "fedavg"
    }
    for row in rows:
        name = row.method if row.method != "fedavg" or len(models) == 1 else f"fedavg, {row.model}"
        plain = fedavg.get((row.dataset, row.model, row.clients))
        table.add_row(
            name if row.dataset == dataset else f"{name} on {row.dataset}",
            str(row.clients),
            _milliseconds(row.seconds_per_round),
            "-" if plain is None else f"{row.seconds_per_round / plain:.2f}",
            _milliseconds(row.sequential_seconds_per_round),
            "-" if row.ratio is None else f"{row.ratio:.2f}",
            f"{row.peak_mib:.0f}",
            _milliseconds(row.bound_seconds),
            "-" if row.bound_share is None else f"{row.bound_share:.0%}",
        )
    return table


def _milliseconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1e3:.1f}"


def _table_of_runs(rows: list[WholeRow]) -> Table:
    table = _table("method", "clients", "rounds", "local epochs", "seconds a run", "peak MiB")
    for row in rows:
        table.add_row(
            row.method,
            str(row.clients),
            str(row.rounds),
            str(row.local_epochs),
            f"{row.seconds:.2f}",
            f"{row.peak_mib:.0f}",
        )
    return table
