"""``bench speed``."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

from rich.table import Table

from bench.cli import options
from bench.cli.output import console, table
from bench.errors import NotApplicableError, RequestError
from bench.paths import data_roots

if TYPE_CHECKING:
    from bench.timing.speed import Case, Row, WholeRow

    T = TypeVar("T", Row, WholeRow)

WIDTH = 105
"""Columns that the table takes, where there is no terminal."""

ROUNDS = 9


def speed(
    *,
    dataset: Annotated[str, options.DATASET] = "cora",
    scenario: Annotated[str | None, options.SCENARIO] = None,
    clients: options.ClientCounts = (),
    method: options.Methods = (),
    rounds: int | None = None,
    settings: options.Settings = (),
    whole: options.Flag = False,
    threads: options.Count | None = None,
    devices: str = "cpu",
    out: Path | None = None,
    as_json: options.AsJson = False,
) -> None:
    """Measure seconds a round, on graphs against a sequential reference, or seconds of whole runs.

    Parameters
    ----------
    dataset
        Data set; arxiv-size is a synthetic graph with ogbn-arxiv's size. Where Cora has no room for so
        many clients, a synthetic graph of ten times its size takes its place.
    scenario
        How it is spread over clients; the data set's first scenario by default.
    clients
        Numbers of clients; 10,20,50,100,200 by default, 20 on images.
    method
        Methods; or 'all' for every one, beside FedAvg in turns, by default at 10, 50 and 100 clients and
        without the reference; by default FedAvg at every count and, on graphs, FedSheafHN at the first. On
        images either has FedAvg with every client model.
    rounds
        Rounds measured, after two to warm up; the median is reported. 9 by default.
    settings
        A setting, such as protocol.local_epochs=1; may be given several times.
    whole
        Time whole runs instead, with all rounds of the data set's protocol: the median of three, after
        one to warm up.
    threads
        Threads of one process; all cores by default.
    devices
        cpu, or a GPU such as cuda or cuda:1.
    out
        Also write the rows to this file, as JSON.
    """
    from bench.cli.checks import check_device
    from bench.dataset import DATASETS
    from bench.resolve import parse_overrides
    from bench.timing.speed import WHOLE_RUNS, cases, measure, measure_whole

    if whole and (rounds is not None or settings):
        raise RequestError("--whole times the data set's protocol as it is: leave out --rounds and --set")
    check_device(devices, ("cpu",))
    overrides = parse_overrides(settings)
    rounds = ROUNDS if rounds is None else rounds
    data = DATASETS.named(dataset)
    scenario = scenario or data.scenarios[0]
    threads = threads or os.cpu_count() or 1
    with_all = method == ("all",)
    chosen_cases = cases(dataset, scenario, clients, method, whole)
    roots = data_roots()
    subject, place = f"{data.title}, {scenario}", f"{threads} threads, {devices}"
    rows: list[Row] | list[WholeRow]
    if whole:
        rows = _measured_rows(
            partial(measure_whole, roots=roots, device=devices, threads=threads), chosen_cases, with_all
        )
        printout = _table_of_runs(rows)
        printout.title = f"{subject}; whole runs, medians of {WHOLE_RUNS}, {place}"
    else:
        work = partial(
            measure,
            rounds=rounds,
            roots=roots,
            device=devices,
            threads=threads,
            overrides=overrides,
        )
        rows = _measured_rows(work, chosen_cases, with_all)
        printout = table_of_rounds(rows, dataset)
        printout.title = (
            f"{subject}, {overrides.get('protocol.local_epochs', data.protocol.local_epochs)} local epochs, "
            "both evaluations; "
            f"medians of {rounds} rounds, {place}"
        )
    text = json.dumps([asdict(row) for row in rows], indent=1)
    if as_json:
        print(text)
    console(WIDTH, errors=as_json).print(printout)
    if out:
        out.write_text(text + "\n")


def _measured_rows(work: Callable[[Case], T], cases: Sequence[Case], with_all: bool) -> list[T]:
    """A row of each case that can run, made in a process of its own. A method that was asked for and cannot
    is named on standard error: what was measured of the others is kept.

    Raises:
        RequestError: none can run.
    """
    from bench.timing.speed import apart

    rows, reasons = [], []
    for case in cases:
        try:
            row = apart(work, case)
        except NotApplicableError as error:
            reasons.append(f"not measured: {error}")
            continue
        rows.append(row)
        if with_all:  # minutes a line where a method trains a generator first
            print(row, file=sys.stderr)
    if not rows:
        raise RequestError(reasons[0])
    for reason in () if with_all else dict.fromkeys(reasons):
        print(f"bench: {reason}", file=sys.stderr)
    return rows


def table_of_rounds(rows: Sequence[Row], dataset: str) -> Table:
    """A line a row; it says on which data set where that is not the one asked for."""
    models = {row.model for row in rows if row.method == "fedavg"}
    lines = []
    for row in rows:
        name = row.method if row.method != "fedavg" or len(models) == 1 else f"fedavg, {row.model}"
        lines.append(
            (
                name if row.dataset == dataset else f"{name} on {row.dataset}",
                row.clients,
                _milliseconds(row.seconds_per_round),
                "-" if row.factor is None else f"{row.factor:.2f}",
                _milliseconds(row.sequential_seconds_per_round),
                "-" if row.ratio is None else f"{row.ratio:.2f}",
                f"{row.peak_mib:.0f}",
            )
        )
    numbers = ("clients", "ms a round", "x FedAvg", "sequential", "ratio", "peak MiB")
    return table(("method", *numbers), lines, right=numbers)


def _milliseconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1e3:.1f}"


def _table_of_runs(rows: Sequence[WholeRow]) -> Table:
    lines = [
        (row.method, row.clients, row.rounds, row.local_epochs, f"{row.seconds:.2f}", f"{row.peak_mib:.0f}")
        for row in rows
    ]
    numbers = ("clients", "rounds", "local epochs", "seconds a run", "peak MiB")
    return table(("method", *numbers), lines, right=numbers)
