"""Results as pandas frames: ``bench.cells``, ``bench.ranks``, ``bench.runs``, ``bench.clients`` and
``bench.curves``; ``docs/notebook.ipynb`` shows all of them.

They are of the user's own database and of the results that come with the suite. Collecting one takes many
seconds, and cells need torch, so a process of its own does it once and keeps it under ``BENCH_HOME/frames``
for as long as neither results nor code change.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd

from bench import paths
from bench.errors import RequestError, unknown
from bench.metrics import ACCURACY, METRICS, Metric

FOLDER = "frames"
CODE = ("bench", "bench.methods", "bench.datasets", "bench.reports", "bench.results")


def cells(
    *,
    db: str | None = None,
    own: bool = False,
    primary: bool = True,
    metric: Metric = ACCURACY,
    **filters: Any,
) -> pd.DataFrame:
    """One row a cell of a study's tables beside one published table: the columns of ``bench.report.frame``.

    ``db`` is a database URL (default: the one in ``BENCH_HOME``), ``own`` leaves out what comes with the
    suite. ``metric`` is what clients are scored by (``bench.metrics.METRICS``); of others than accuracy
    nothing is published, and no cell has a verdict. With ``primary`` False the cells under every reading,
    else those that verdicts rest on. ``filters`` are columns and a value or a list of values each:
    ``dataset="cora", method=["local"]``.

    Raises:
        RequestError: no runs, a database that cannot be read, no such column or metric, or no run with it.
    """
    found = _read("cells", db, own, filters, metric)
    found = found[found["primary"]] if primary else found
    return found.drop(columns="primary").reset_index(drop=True)


def ranks(*, db: str | None = None, own: bool = False, **filters: Any) -> pd.DataFrame:
    """One row a study and method: its mean ``rank`` over ``tasks``, the 95 % interval ``low`` to ``high``,
    its ``group`` of ties (1: not significantly worse than the best), and ``minus_baseline`` in points, as
    ``bench.report.ranking.Ranking.table`` has them. Parameters and errors as of ``cells``.
    """
    return _read("ranks", db, own, filters)


def runs(*, db: str | None = None, own: bool = False, **filters: Any) -> pd.DataFrame:
    """One row a run: what it was, how it ended and what it cost. Parameters and errors as of ``cells``.

    ``settings`` is a JSON object of all its settings, dotted as in ``--set``.
    """
    return _read("runs", db, own, filters)


def clients(
    *,
    db: str | None = None,
    own: bool = False,
    stage: str = "trained",
    rule: str = "best_val",
    split: str = "test",
    metric: Metric = ACCURACY,
    **filters: Any,
) -> pd.DataFrame:
    """One row a run and client: ``accuracy``, or the other ``metric`` (of the test split alone), in percent
    over ``samples``, at a stage, by a selection rule.

    Other parameters and errors as of ``cells``.
    """
    return _read("clients", db, own, {**filters, "stage": stage, "rule": rule, "split": split}, metric)


def curves(
    *, db: str | None = None, own: bool = False, stage: str = "trained", split: str = "test", **filters: Any
) -> pd.DataFrame:
    """One row a run and evaluation, numbered from 1: ``accuracy`` in percent, mean over clients.

    Other parameters and errors as of ``cells``.
    """
    return _read("curves", db, own, {**filters, "stage": stage, "split": split})


def _read(
    name: str, db: str | None, own: bool, filters: dict[str, Any], metric: Metric = ACCURACY
) -> pd.DataFrame:
    import pyarrow.parquet as pq

    if metric not in METRICS:
        raise unknown("metric", metric, METRICS)
    file = _collected(name, db, own, metric)
    known = pq.read_schema(file).names
    wanted = []
    for column, value in filters.items():
        if column not in known:
            raise unknown(f"column of {name}:", column, known)
        several = isinstance(value, list | tuple | set | frozenset)
        wanted.append((column, "in", list(value)) if several else (column, "==", value))
    return pd.read_parquet(file, filters=wanted or None)


def _collected(name: str, db: str | None, own: bool, metric: Metric) -> Path:
    """The file of a frame of these results, collected now if it is not there; older ones go."""
    asked = [db, own] if metric == ACCURACY else [db, own, metric]
    stem = name if metric == ACCURACY else f"{name}-{metric}"
    folder = paths.home() / FOLDER / stamp(db, own)
    file = folder / f"{stem}.parquet"
    if file.is_file():
        return file
    folder.mkdir(parents=True, exist_ok=True)
    new = folder / f"{stem}-{os.getpid()}.new"
    command = [sys.executable, "-m", "bench.report.whole_frames", name, str(new), json.dumps(asked)]
    done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        new.unlink(missing_ok=True)
        lines = done.stderr.strip().splitlines() or [f"the frame of {name} could not be collected"]
        raise RequestError(lines[-1].removeprefix("bench: "))
    new.rename(file)
    for old in folder.parent.glob(f"{folder.name.partition('-')[0]}-*"):
        if old != folder:
            shutil.rmtree(old, ignore_errors=True)
    return file


def stamp(db: str | None, own: bool) -> str:
    """What is read, and what the frames depend on, as hashes: names, sizes and times of code, results and
    databases.
    """
    digest = hashlib.sha256(json.dumps([db, own, os.environ.get("BENCH_PLUGINS", "")]).encode())
    read = digest.hexdigest()[:8]
    url = db or paths.default_database()
    database = Path(url.removeprefix("sqlite:///"))
    wal = Path(f"{database}-wal")
    plugins = [Path(name) for name in os.environ.get("BENCH_PLUGINS", "").split(os.pathsep) if name]
    for path in (*_sources(), *plugins, database, wal, *sorted(paths.home().glob("tuned/*"))):
        if path.is_file():
            status = path.stat()
            digest.update(f"{path}\0{status.st_size}\0{status.st_mtime_ns}\0".encode())
    if not url.startswith("sqlite:///"):  # nobody can tell from here whether it has changed
        digest.update(os.urandom(16))
    return f"{read}-{digest.hexdigest()[:32]}"


def _sources() -> Iterator[Path]:
    for package in CODE:
        root = Path(str(files(package)))
        for pattern in ("*.py", "*.toml", "*.csv", "*.json", "*.parquet"):
            yield from sorted(root.rglob(pattern))
