"""Results as pandas frames: ``bench.cells``, ``bench.ranks``, ``bench.runs``, ``bench.clients`` and
``bench.curves``; ``docs/notebook.ipynb`` shows all of them.

They are of the user's own database and of the results that come with the suite. What was collected is kept
under ``BENCH_HOME/frames`` for as long as neither results nor code change. A process of its own collects it,
as cells and ranks take many seconds and need torch; those of the suite's results alone come with it.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from importlib.metadata import entry_points
from importlib.resources import files
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pandas as pd

from bench import paths
from bench.errors import RequestError, unknown
from bench.metric_names import ACCURACY, METRICS, Metric
from bench.replacement import replacing_file

FOLDER = "frames"
CODE = ("bench", "bench.methods", "bench.datasets", "bench.reports", "bench.results")

SHIPPED_FOLDER = Path(str(files("bench.results"))) / "frames"
MADE_FROM = b"made_from"
"""Where a frame that comes with the suite says what it was made from: ``results_digest``."""

MOST_NAMES = 100
"""Different texts that a column of names has at most."""

TOGETHER = 60
"""Seconds within which the files of one installation are written."""


def cells(
    *,
    db: str | None = None,
    own: bool = False,
    primary: bool = True,
    metric: Metric = ACCURACY,
    **filters: Any,
) -> pd.DataFrame:
    """One row a cell of a study's tables beside one published table: the columns of ``bench.studies.frame``.

    ``db`` is a database URL (default: the one in ``BENCH_HOME``), ``own`` leaves out what comes with the
    suite. ``metric`` is what clients are scored by (``bench.metric_names.METRICS``); of others than accuracy
    nothing is published, and no cell has a verdict. With ``primary`` False the cells under every reading,
    else those that verdicts rest on. ``filters`` are columns and a value or a list of values each:
    ``dataset="cora", method=["local"]``.

    Raises:
        RequestError: no runs, a database that cannot be read, no such column or metric, or no run with it.
    """
    frame = _read("cells", db, own, filters, metric)
    frame = frame[frame["primary"]] if primary else frame
    return frame.drop(columns="primary").reset_index(drop=True)


def ranks(*, db: str | None = None, own: bool = False, **filters: Any) -> pd.DataFrame:
    """One row a study and method: its mean ``rank`` over ``tasks``, the 95 % interval ``low`` to ``high``,
    its ``group`` of ties (1: not significantly worse than the best), and ``minus_baseline`` in points, as
    ``bench.studies.ranking.Ranking.table`` has them. Ranks are of accuracy. ``db``, ``own`` and ``filters``
    (of these columns: ``study="fedsheafhn"``), and errors, as of ``cells``.
    """
    return _read("ranks", db, own, filters)


def runs(*, db: str | None = None, own: bool = False, **filters: Any) -> pd.DataFrame:
    """One row a run: what it was, how it ended and what it cost. Parameters and errors as of ``cells``.

    ``run`` is its number, by which ``clients`` and ``curves`` belong to it; ``dataset``, ``scenario``,
    ``clients``, ``method``, ``seed`` and ``rounds`` are what was run, ``settings`` a JSON object of all its
    settings, dotted as in ``--set``. ``state`` and ``reason`` say how it ended, ``test`` its test accuracy in
    percent (mean over clients of the trained model at the round of best validation accuracy; missing without
    one), ``seconds_total``, ``peak_memory`` (bytes), ``bytes_up`` and ``bytes_down`` what it cost, ``origin``
    whose it is: docs/results-format.md has all columns.
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

    Columns: ``run``, ``spec_hash``, ``dataset``, ``scenario``, ``clients`` (how many), ``method``, ``seed``,
    ``client`` (from 0), ``stage``, ``split``, ``rule``, the metric, ``samples``. Unless asked for otherwise
    the trained model (``stage``; or ``received``) on the ``test`` split (or ``val``, ``train``) at the round
    of best validation accuracy (``rule`` ``best_val``; or ``last``, ``best_test``, ``client_best_val``).
    Other parameters and errors as of ``cells``.
    """
    return _read("clients", db, own, {**filters, "stage": stage, "rule": rule, "split": split}, metric)


def curves(
    *, db: str | None = None, own: bool = False, stage: str = "trained", split: str = "test", **filters: Any
) -> pd.DataFrame:
    """One row a run and evaluation, numbered from 1: ``accuracy`` in percent, mean over clients.

    Columns: those that name the run in ``clients``, ``stage`` (``trained`` unless asked for ``received``),
    ``split`` (``test``), ``evaluation``, ``accuracy``. Other parameters and errors as of ``cells``.
    """
    return _read("curves", db, own, {**filters, "stage": stage, "split": split})


def _read(
    name: str, db: str | None, own: bool, filters: dict[str, Any], metric: Metric = ACCURACY
) -> pd.DataFrame:
    import pyarrow.parquet as pq

    if metric not in METRICS:
        raise unknown("metric", metric, METRICS)
    with _file(name, db, own, metric) as file:
        schema = pq.read_schema(file)
        conditions = []
        for column, value in filters.items():
            if column not in schema.names:
                raise unknown(f"column of {name}:", column, schema.names)
            _check_kind(column, schema.field(column).type, value)
            conditions.append((column, "in", list(value)) if _is_several(value) else (column, "==", value))
        frame = pd.read_parquet(file, filters=conditions or None)
        for column, value in filters.items() if metric == ACCURACY else ():  # few clients have the others
            found_names = set(frame[column].unique())
            for choice in value if _is_several(value) else [value]:
                if isinstance(choice, str) and choice not in found_names:
                    _check_name(name, column, choice, pd.read_parquet(file, columns=[column])[column])
        return frame


def _check_kind(column: str, kind: Any, value: object) -> None:
    """Refuse a filter's value that is of another kind than its column, which has an Arrow type."""
    import pyarrow as pa
    import pyarrow.compute as compute

    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    words = next((word for is_kind, word in KINDS if getattr(pa.types, is_kind)(kind)), str(kind))
    for choice in value if isinstance(value, Iterable) and _is_several(value) else [value]:
        try:
            compute.equal(pa.scalar(None, kind), pa.scalar(choice))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError):
            raise RequestError(f"{column}: expected {words}, got {choice!r}") from None


KINDS = (
    ("is_integer", "whole numbers"),
    ("is_floating", "numbers"),
    ("is_boolean", "True or False"),
    ("is_string", "text"),
    ("is_large_string", "text"),
    ("is_timestamp", "a time"),
)
"""Questions of ``pyarrow.types``, and what a column of such a type holds, in words."""


def _is_several(value: object) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | bytes)


def _check_name(name: str, column: str, choice: str, values: pd.Series[str]) -> None:
    """Refuse a text that no row of a frame has, but for hashes and the like, of which there are many."""
    names = set(values.unique())
    if choice not in names and 0 < len(names) <= MOST_NAMES:
        raise unknown(f"{column} among the {name}:", choice, names)


@contextmanager
def _file(name: str, db: str | None, own: bool, metric: Metric) -> Iterator[Path]:
    """The file of a frame of these results, collected now if it is not there; older ones go.

    Where nothing can be kept it is collected into a temporary folder.
    """
    stem = name if metric == ACCURACY else f"{name}-{metric}"
    shipped_file = shipped(name, db, own) if metric == ACCURACY else None
    if shipped_file is not None:
        yield shipped_file
        return
    folder = paths.home() / FOLDER / stamp(db, own)
    file = folder / f"{stem}.parquet"
    if file.is_file():
        yield file
    elif not _can_be_made(folder):
        with TemporaryDirectory() as temporary_folder:
            _collect(name, db, own, metric, Path(temporary_folder) / file.name)
            yield Path(temporary_folder) / file.name
    else:
        with replacing_file(file) as temporary_file:
            _collect(name, db, own, metric, temporary_file)
        for old_folder in folder.parent.glob(f"{folder.name.partition('-')[0]}-*"):
            if old_folder != folder:
                shutil.rmtree(old_folder, ignore_errors=True)
        yield file


def _can_be_made(folder: Path) -> bool:
    """Make a folder; False where it cannot be, or nothing be written into it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)


def _collect(name: str, db: str | None, own: bool, metric: Metric, file: Path) -> None:
    arguments = json.dumps([db, own, metric])
    command = [sys.executable, "-m", "bench.studies.frame_rows", name, str(file), arguments]
    process = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    if process.returncode:
        file.unlink(missing_ok=True)
        lines = process.stderr.strip().splitlines() or [f"the frame of {name} could not be collected"]
        raise RequestError(lines[-1].removeprefix("bench: "))


def shipped(name: str, db: str | None, own: bool, folder: Path = SHIPPED_FOLDER) -> Path | None:
    """The file of a frame that comes with the suite; None where it may not be what would be collected: there
    is something of the user's own, or other results, or code that is younger than the frame.
    """
    import pyarrow.parquet as pq

    file = folder / f"{name}.parquet"
    database = Path(paths.default_database().removeprefix("sqlite:///"))
    plugins = os.environ.get("BENCH_PLUGINS") or not entry_points().groups.isdisjoint(CODE)
    if db or own or plugins or not file.is_file() or database.exists() or any(_tuned_files()):
        return None
    last_change = max(path.stat().st_mtime for path in _sources() if path.suffix == ".py")
    stored_digest = pq.read_schema(file).metadata.get(MADE_FROM)
    is_current = last_change <= file.stat().st_mtime + TOGETHER and stored_digest == results_digest()
    return file if is_current else None


def ship() -> None:
    """Write the frames that come with the suite, and into them what they are made from (``make frames``).

    Not compressed, so that git can keep of a new version what has changed.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    from bench.studies.frame_rows import of_studies
    from bench.studies.shipped import opened_results

    with opened_results(None, False) as source:
        for name, rows in of_studies(source).items():
            table = pa.Table.from_pandas(rows, preserve_index=False)
            made_from = {**table.schema.metadata, MADE_FROM: results_digest()}
            texts = [field.name for field in table.schema if not pa.types.is_floating(field.type)]
            pq.write_table(
                table.replace_schema_metadata(made_from),
                SHIPPED_FOLDER / f"{name}.parquet",
                compression="none",
                use_dictionary=texts,
            )


def results_digest() -> bytes:
    """SHA-256, hexadecimal, of the results that come with the suite, of what is published, and of what the
    studies' experiments say.
    """
    digest = hashlib.sha256()
    for path in _sources():  # a bundle's own file has the hashes of the others
        if path.suffix != ".py" and path.suffix != ".parquet":
            digest.update(f"{path.name}\0".encode() + path.read_bytes())
    return digest.hexdigest().encode()


def _tuned_files() -> Iterator[Path]:
    """The user's own tuned configurations."""
    return paths.home().glob("tuned/*")


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
    for path in (*_sources(), *_looks(), *plugins, database, wal, *sorted(_tuned_files())):
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


def _looks() -> Iterator[Path]:
    """What decides how pages look, and no number."""
    for pattern in ("*.j2", "*.css"):
        yield from sorted(Path(str(files("bench"))).rglob(pattern))
