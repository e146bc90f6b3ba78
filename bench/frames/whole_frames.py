"""The public frames: runs, clients and curves as they are stored; cells and ranks computed from them.

If only the suite's own results are requested, the frames of cells and ranks are read from files that come
with the suite. Otherwise they are computed once, and kept in ``BENCH_HOME`` until results or code change.
Only this computation needs torch.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from bench import paths
from bench.metric_names import ACCURACY, Metric
from bench.paths import replacing_file

if TYPE_CHECKING:
    from bench.store.tables import Tables

PLACE = ["run", "spec_hash", "dataset", "scenario", "clients", "method", "seed"]
"""Columns that join the rows of two frames."""

SHIPPED_FOLDER = Path(str(files("bench.results"))) / "frames"


def cells(*, db: str | None = None, own: bool = False, primary: bool = True, **filters: Any) -> pd.DataFrame:
    """Return one row per cell of a study's tables and published table compared with it;
    ``bench/frames/columns.csv`` describes the columns.

    ``db`` is a database URL (default: the one in ``BENCH_HOME``). ``own`` leaves out the suite's results.
    ``primary`` keeps the cells that verdicts rest on; False returns the cells of every reading. ``filters``
    name columns, each with a value or a list of values: ``dataset="cora", method=["local"]``.

    Raises:
        RequestError: there are no runs, or the database cannot be read.
    """
    frame = kept("cells", db, own)
    frame = frame[frame["primary"]] if primary else frame
    return matching(frame.drop(columns="primary"), filters)


def ranks(*, db: str | None = None, own: bool = False, **filters: Any) -> pd.DataFrame:
    """Return one row per study and method: mean ``rank`` by accuracy over ``tasks``, its 95 % interval
    ``low`` to ``high``, ``group`` of ties (1: not significantly worse than the best), ``minus_baseline`` in
    points. For parameters and errors see ``cells``.
    """
    return matching(kept("ranks", db, own), filters)


def runs(*, db: str | None = None, own: bool = False, **filters: Any) -> pd.DataFrame:
    """Return one row per run: its spec, state and costs. docs/results-format.md describes all columns.

    ``run`` is the run's number, also in ``clients`` and ``curves``. ``settings`` is a JSON object of all
    settings, with dotted keys as in ``--set``. ``test`` is the test accuracy in percent: mean over clients of
    the trained model at the round of best validation accuracy. For parameters and errors see ``cells``.
    """
    return matching(kept("runs", db, own), filters)


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
    """Return one row per run and client: ``accuracy``, or another ``metric`` of
    ``bench.metric_names.METRICS`` (test split only), in percent over ``samples``.

    Columns: ``run``, ``spec_hash``, ``dataset``, ``scenario``, ``clients`` (how many), ``method``, ``seed``,
    ``client`` (from 0), ``stage``, ``split``, ``rule``, the metric, ``samples``. ``stage`` is ``trained`` or
    ``received``; ``split`` is ``test``, ``val`` or ``train``. ``rule`` selects the round: ``best_val`` (best
    validation accuracy), ``last``, ``best_test`` or ``client_best_val``. For other parameters and errors see
    ``cells``; it is also an error if no run has the metric.
    """
    return _read("clients", db, own, metric, {"stage": stage, "rule": rule, "split": split, **filters})


def curves(
    *, db: str | None = None, own: bool = False, stage: str = "trained", split: str = "test", **filters: Any
) -> pd.DataFrame:
    """Return one row per run and evaluation (numbered from 1): ``accuracy`` in percent, mean over clients.

    Columns: ``run`` to ``seed`` as in ``clients``, ``stage`` (``trained`` or ``received``), ``split``,
    ``evaluation``, ``accuracy``. For other parameters and errors see ``cells``.
    """
    return _read("curves", db, own, ACCURACY, {"stage": stage, "split": split, **filters})


def _read(
    name: str, db: str | None, own: bool, metric: Metric = ACCURACY, filters: Mapping[str, Any] | None = None
) -> pd.DataFrame:
    from bench.studies.shipped import opened_results

    with opened_results(db, own) as source:
        return whole_frame(name, source, metric, filters)


def whole_frame(
    name: str, source: Tables, metric: Metric = ACCURACY, filters: Mapping[str, Any] | None = None
) -> pd.DataFrame:
    """Return the frame ``name`` with the rows that match all ``filters``, which cells and ranks ignore."""
    from bench.studies.members import check_kept, client_rows, curves_by_run

    filters = filters or {}
    if name in ("cells", "ranks"):
        return frames_of_studies(source)[name]
    runs = source.runs().rename(columns={"id": "run"})
    if name == "runs":
        return matching(_with_results(runs, source), filters)
    done = runs.loc[runs["state"] == "done", PLACE]
    done = matching(done, {key: value for key, value in filters.items() if key in PLACE})
    rule = "last" if name == "curves" else filters.get("rule")
    rows = client_rows(source, done["run"].tolist(), metric, filters.get("stage"), filters.get("split"), rule)
    if metric != ACCURACY:
        check_kept(metric, done["run"].tolist(), rows)
    if name == "curves":
        splits = ("test", "train", "val")
        parts = [curves_by_run(source, rows[rows["split"] == one], one).assign(split=one) for one in splits]
        rows = pd.concat(parts).rename(columns={"row": "evaluation", "clients": ACCURACY})
        rows = rows[["run", "stage", "split", "evaluation", ACCURACY]]
    else:
        rows = rows.assign(value=100.0 * rows["value"]).rename(columns={"value": metric})
    return matching(_with_categories(done).merge(_with_categories(rows), on="run"), filters)


def _with_results(runs: pd.DataFrame, source: Tables) -> pd.DataFrame:
    """Add settings, test accuracy and origin to the runs."""
    from bench.spec import RunSpec
    from bench.studies.members import client_rows

    settings = {
        cell: json.dumps(RunSpec.model_validate_json(text).settings(), sort_keys=True)
        for cell, text in runs.drop_duplicates("cell").set_index("cell")["spec"].items()
    }
    results = client_rows(source, runs["run"].tolist(), ACCURACY, "trained", "test", "best_val")
    means = 100.0 * results.groupby("run")["value"].mean()
    runs = runs.assign(
        settings=runs["cell"].map(settings),
        test=runs["run"].map(means).astype(float),
        origin=runs["origin"].replace({"": "own"}) if "origin" in runs else "own",
    )
    return runs.astype(dict.fromkeys(runs.select_dtypes(["object", "str"]), "str"))


def _with_categories(rows: pd.DataFrame) -> pd.DataFrame:
    """Store texts as categories: a frame has many rows and few different texts."""
    return rows.astype(dict.fromkeys(rows.select_dtypes(["string", "object"]), "category"))


def matching(frame: pd.DataFrame, filters: Mapping[str, Any]) -> pd.DataFrame:
    """Select the rows that match every filter: a column with a value or several values."""
    for column, value in filters.items():
        is_one = isinstance(value, str) or not isinstance(value, Iterable)
        frame = frame[frame[column].isin([value] if is_one else list(value))]
    return frame.reset_index(drop=True)


def frames_of_studies(source: Tables) -> dict[str, pd.DataFrame]:
    """Compute the frames of cells and ranks over all studies, by name."""
    from bench.frames.graded_cells import COLUMNS, WRITTEN, collect, no_rows
    from bench.frames.ranking import RANKS, rank
    from bench.studies.study import STUDIES

    studies = [study() for study in STUDIES.all().values()]
    results = collect(source, studies)
    rankings = [rank(study, results) for study in studies]
    ranks = [ranking.ranks[list(RANKS)] for ranking in rankings if ranking]
    types = {name: COLUMNS[name] for name in (*WRITTEN, "primary")}
    all_ranks = pd.concat(ranks or [no_rows(RANKS)], ignore_index=True).astype(RANKS)
    return {"cells": results.cells[list(types)].astype(types), "ranks": all_ranks}


def kept(name: str, db: str | None, own: bool) -> pd.DataFrame:
    """Return the frame ``cells``, ``ranks`` or ``runs`` of these results; compute it if no file holds it."""
    is_own = db or own or os.environ.get("BENCH_PLUGINS") or any(path.exists() for path in _own_files(None))
    file = SHIPPED_FOLDER / f"{name}.parquet"
    if not is_own and file.is_file():
        return pd.read_parquet(file)
    file = paths.home() / "frames" / f"{name}-{stamp(db, own)}.parquet"
    if file.is_file():
        return pd.read_parquet(file)

    frame = _read(name, db, own)
    with suppress(OSError):  # a home that cannot be written can be read
        file.parent.mkdir(parents=True, exist_ok=True)
        for older_file in file.parent.glob(f"{name}-*"):
            older_file.unlink()
        with replacing_file(file) as temporary_file:
            frame.to_parquet(temporary_file, index=False)
    return frame


def stamp(db: str | None, own: bool) -> str:
    """Return a hash over names, sizes and times of the frames' inputs: code, results and databases."""
    plugins = os.environ.get("BENCH_PLUGINS", "")
    digest = hashlib.sha256(json.dumps([db, own, plugins]).encode())
    for path in (*_sources(), *map(Path, filter(None, plugins.split(os.pathsep))), *_own_files(db)):
        if path.is_file():
            status = path.stat()
            digest.update(f"{path}\0{status.st_size}\0{status.st_mtime_ns}\0".encode())
    if db and not db.startswith("sqlite:///"):  # nobody can tell from here whether it has changed
        digest.update(os.urandom(16))
    return digest.hexdigest()[:32]


def _own_files(db: str | None) -> Iterator[Path]:
    """Yield the database, its write-ahead log, and the user's own tuned configurations."""
    database = (db or paths.default_database()).removeprefix("sqlite:///")
    yield Path(database)
    yield Path(f"{database}-wal")
    yield from sorted(paths.home().glob("tuned/*"))


def _sources() -> Iterator[Path]:
    """Yield the files of code and results, and the templates and styles of pages."""
    kinds = {".py", ".toml", ".csv", ".json", ".parquet", ".j2", ".css"}
    for package in ("bench", "bench.methods", "bench.datasets", "bench.reports", "bench.results"):
        for path in sorted(Path(str(files(package))).rglob("*")):
            if path.suffix in kinds:
                yield path
