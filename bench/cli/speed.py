"""``bench speed``."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from bench.cli import options
from bench.cli.output import console, table
from bench.errors import NotApplicableError, RequestError
from bench.paths import data_roots

if TYPE_CHECKING:
    from bench.timing.speed import Case, Row, WholeRow


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

    Args:
        dataset: Data set; arxiv-size is a synthetic graph with ogbn-arxiv's size. Where Cora has no room for
            so many clients, a synthetic graph of ten times its size takes its place.
        scenario: The data set's first scenario by default.
        clients: Numbers of clients; 10,20,50,100,200 by default, 20 on images.
        method: Methods; or 'all' for every one, beside FedAvg in turns, by default at 10, 50 and 100 clients
            and without the reference; by default FedAvg at every count and, on graphs, FedSheafHN at the
            first. On images either has FedAvg with every client model.
        rounds: Rounds measured, after two to warm up; the median is reported. 9 by default.
        settings: A setting, such as protocol.local_epochs=1; may be given several times.
        whole: Time whole runs instead, with all rounds of the protocol: the median of three, after a first.
        threads: Threads of one process; all cores by default.
        devices: cpu, or a GPU such as cuda or cuda:1.
        out: Also write the rows to this file, as JSON.
    """
    from bench.cli.checks import check_device
    from bench.dataset import DATASETS
    from bench.resolve import parse_overrides
    from bench.timing.speed import apart, cases, measure, measure_whole

    if whole and (rounds is not None or settings):
        raise RequestError("--whole times the data set's protocol as it is: leave out --rounds and --set")
    check_device(devices, "cpu")
    data = DATASETS.named(dataset)
    scenario = scenario or data.scenarios[0]
    machine = {"roots": data_roots(), "device": devices, "threads": threads or os.cpu_count() or 1}
    work: Callable[[Case], Row | WholeRow] = partial(measure_whole, **machine)
    if not whole:
        work = partial(measure, rounds=rounds or 9, overrides=parse_overrides(settings), **machine)
    records: list[dict[str, Any]] = []
    reasons: dict[str, None] = {}
    for case in cases(dataset, scenario, clients, method, whole):
        try:
            row: Row | WholeRow = apart(work, case)
        except NotApplicableError as error:  # what is measured of the others is kept
            reasons[f"not measured: {error}"] = None
            continue
        records.append(asdict(row))
        if method == ("all",):  # minutes a line where a method trains a generator first
            print(row, file=sys.stderr)
    if not records:
        raise RequestError(next(iter(reasons)))
    for reason in () if method == ("all",) else reasons:
        print(f"bench: {reason}", file=sys.stderr)
    text = json.dumps(records, indent=1)
    if as_json:
        print(text)
    headings = [name.replace("_", " ") for name in records[0]]
    lines = [
        [f"{value:.4g}" if isinstance(value, float) else value for value in record.values()]
        for record in records
    ]
    numbers, title = {*headings} - {"dataset", "method", "model"}, f"{data.title}, {scenario}"
    console(140, errors=as_json).print(table(headings, lines, right=numbers, title=title))
    if out:
        out.write_text(text + "\n")
