"""The public frames: of runs, clients and curves as they are stored, and of what studies say of them.

Cells and ranks are kept as files for as long as neither results nor code change; those of the results that
ship come with the suite. Only they need torch, when they are collected.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from importlib.metadata import entry_points
from importlib.resources import files
from pathlib import Path
from typing import Any

import pandas as pd

from bench import paths
from bench.errors import unknown
from bench.metric_names import ACCURACY, Metric
from bench.replacement import replacing_file
from bench.spec import RunSpec
from bench.store.tables import Tables
from bench.studies.members import check_kept, client_rows, curves_by_run
from bench.studies.shipped import OWN

PLACE = ["run", "spec_hash", "dataset", "scenario", "clients", "method", "seed"]
"""Columns by which the rows of two frames belong together."""

READING = ("stage", "split", "rule")

MOST_NAMES = 100
"""Different texts that a column of names has at most."""

FOLDER = "frames"
CODE = ("bench", "bench.methods", "bench.datasets", "bench.reports", "bench.results")

SHIPPED_FOLDER = Path(str(files("bench.results"))) / "frames"

TOGETHER = 60
"""Seconds within which the files of one installation are written."""


def whole_frame(
    name: str, source: Tables, metric: Metric = ACCURACY, filters: Mapping[str, Any] | None = None
) -> pd.DataFrame:
    """A frame with the rows that match all ``filters``; cells and clients by a metric.

    Raises:
        RequestError: there is no run, none keeps what the metric needs, or as ``matching``.
    """
    filters = filters or {}
    if name in ("cells", "ranks"):
        return matching(name, frames_of_studies(source, metric)[name], filters)
    all_runs = source.runs().rename(columns={"id": "run"})
    if name == "runs":
        return matching(name, _with_results(all_runs, source), filters)
    done = all_runs.loc[all_runs["state"] == "done", PLACE]
    done = matching(name, done, {key: filters[key] for key in filters if key in PLACE})
    runs = done["run"].tolist()
    asked = {key: filters[key] for key in READING if isinstance(filters.get(key), str)}
    if name == "curves":
        asked["rule"] = "last"
    rows = client_rows(source, runs, metric, **asked)
    if rows.empty:  # then ``matching`` says which readings there are
        rows = client_rows(source, runs, metric, rule=asked["rule"] if name == "curves" else None)
    if metric != ACCURACY:
        check_kept(metric, runs, rows)
    if name == "curves":
        parts = [
            curves_by_run(source, rows[rows["split"] == split], split).assign(split=split)
            for split in ("test", "train", "val")
        ]
        rows = pd.concat(parts).rename(columns={"row": "evaluation", "clients": ACCURACY})
        rows = rows[["run", "stage", "split", "evaluation", ACCURACY]]
    else:
        rows = rows.assign(value=100.0 * rows["value"]).rename(columns={"value": metric})
    run_columns = _with_categories(done).set_index("run", drop=False).loc[rows["run"]]
    rows = _with_categories(rows).drop(columns="run")
    together = [run_columns.reset_index(drop=True), rows.reset_index(drop=True)]
    return matching(name, pd.concat(together, axis=1), filters)


def _with_results(runs: pd.DataFrame, source: Tables) -> pd.DataFrame:
    """All runs with settings, test accuracy and origin."""
    first_runs = runs.drop_duplicates("cell").set_index("cell")["spec"]
    settings = {
        cell: json.dumps(RunSpec.model_validate_json(text).settings(), sort_keys=True)
        for cell, text in first_runs.items()
    }
    results = client_rows(source, runs["run"].tolist(), ACCURACY, "trained", "test", "best_val")
    means = 100.0 * results.groupby("run")["value"].mean()
    runs = runs.assign(
        settings=runs["cell"].map(settings),
        test=runs["run"].map(means).astype(float),
        origin=runs["origin"].replace({OWN: "own"}) if "origin" in runs else "own",
    )
    return runs.astype(dict.fromkeys(runs.select_dtypes(["object", "str"]), "str"))


def _with_categories(rows: pd.DataFrame) -> pd.DataFrame:
    """A frame of many rows and few different texts."""
    return rows.astype(dict.fromkeys(rows.select_dtypes(["string", "object"]), "category"))


def matching(name: str, frame: pd.DataFrame, filters: Mapping[str, Any]) -> pd.DataFrame:
    """The rows of the frame of a name that match every filter: a column and a value, or several.

    Raises:
        RequestError: there is no such column, or no such name in a column of few names.
    """
    rows = frame
    for column, value in filters.items():
        if column not in frame:
            raise unknown(f"column of {name}:", column, frame.columns)
        is_several = isinstance(value, Iterable) and not isinstance(value, str | bytes)
        choices = list(value) if is_several else [value]
        known = set(frame[column].unique())
        for choice in choices:
            if isinstance(choice, str) and choice not in known and 0 < len(known) <= MOST_NAMES:
                raise unknown(f"{column} among the {name}:", choice, known)
        rows = rows[rows[column].isin(choices)]
    return rows.reset_index(drop=True)


def frames_of_studies(source: Tables, metric: Metric = ACCURACY) -> dict[str, pd.DataFrame]:
    """The frames of what studies say, all rows of each, by name; ranks are of accuracy."""
    from bench.frames.graded_cells import COLUMNS, PUBLIC, collect
    from bench.frames.ranking import RANKS, rank
    from bench.studies.study import STUDIES

    studies = [study() for study in STUDIES.all().values()]
    results = collect(source, studies, metric)
    rankings = [rank(study, results) for study in studies] if metric == ACCURACY else []
    tables = [pd.DataFrame(columns=list(RANKS)).astype(RANKS), *(each.ranks for each in rankings if each)]
    ranks = pd.concat(tables[1:] or tables, ignore_index=True)
    types = {name: COLUMNS[name] for name in PUBLIC}
    return {"cells": results.cells[PUBLIC].astype(types), "ranks": ranks[list(RANKS)].astype(RANKS)}


def kept(name: str, db: str | None, own: bool, metric: Metric) -> pd.DataFrame:
    """The frame ``cells`` or ``ranks`` of these results, collected now if it is not kept; older ones go.

    Raises:
        RequestError: as ``whole_frame``, or a database that cannot be read.
    """
    shipped_file = shipped(name, db, own) if metric == ACCURACY else None
    if shipped_file:
        return pd.read_parquet(shipped_file)
    folder = paths.home() / FOLDER / stamp(db, own)
    file = folder / f"{name if metric == ACCURACY else f'{name}-{metric}'}.parquet"
    if not file.is_file():
        from bench.studies.shipped import opened_results

        with opened_results(db, own) as source:
            frame = frames_of_studies(source, metric)[name]
        folder.mkdir(parents=True, exist_ok=True)
        with replacing_file(file) as temporary_file:
            frame.to_parquet(temporary_file, index=False)
        for old_folder in folder.parent.glob(f"{folder.name.partition('-')[0]}-*"):
            if old_folder != folder:
                shutil.rmtree(old_folder, ignore_errors=True)
    return pd.read_parquet(file)


def shipped(name: str, db: str | None, own: bool, folder: Path = SHIPPED_FOLDER) -> Path | None:
    """The file of a frame that comes with the suite; None where it may not be what would be collected: there
    is something of the user's own, or code or results that are younger than the frame.
    """
    file = folder / f"{name}.parquet"
    database = Path(paths.default_database().removeprefix("sqlite:///"))
    plugins = os.environ.get("BENCH_PLUGINS") or not entry_points().groups.isdisjoint(CODE)
    if db or own or plugins or not file.is_file() or database.exists() or any(_tuned_files()):
        return None
    last_change = max(path.stat().st_mtime for path in _sources() if path.parent != SHIPPED_FOLDER)
    return file if last_change <= file.stat().st_mtime + TOGETHER else None


def ship() -> None:
    """Write the frames that come with the suite (``make frames``).

    Not compressed, so that git can keep of a new version what has changed.
    """
    from bench.studies.shipped import opened_results

    with opened_results(None, False, shipped=True) as source:
        for name, rows in frames_of_studies(source).items():
            texts = [column for column in rows if not pd.api.types.is_float_dtype(rows[column])]
            file = SHIPPED_FOLDER / f"{name}.parquet"
            rows.to_parquet(file, index=False, compression=None, use_dictionary=texts)


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
    for path in (*_sources(), *plugins, database, wal, *sorted(_tuned_files())):
        if path.is_file():
            status = path.stat()
            digest.update(f"{path}\0{status.st_size}\0{status.st_mtime_ns}\0".encode())
    if not url.startswith("sqlite:///"):  # nobody can tell from here whether it has changed
        digest.update(os.urandom(16))
    return f"{read}-{digest.hexdigest()[:32]}"


def _tuned_files() -> Iterator[Path]:
    """The user's own tuned configurations."""
    return paths.home().glob("tuned/*")


def _sources() -> Iterator[Path]:
    """Code and results, and what decides how pages look."""
    for package in CODE:
        root = Path(str(files(package)))
        for kind in ("py", "toml", "csv", "json", "parquet", "j2", "css"):
            yield from sorted(root.rglob(f"*.{kind}"))
