"""The public frames: of runs, clients and curves as they are stored, and of what studies say of them.

Frames that take long are kept as files for as long as neither results nor code change; those of cells and
ranks of the results that ship come with the suite. Only these two need torch, when they are collected.
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
from bench.replacement import replacing_file

if TYPE_CHECKING:
    from bench.store.tables import Tables

PLACE = ["run", "spec_hash", "dataset", "scenario", "clients", "method", "seed"]
"""Columns by which the rows of two frames belong together."""

FOLDER = "frames"
CODE = ("bench", "bench.methods", "bench.datasets", "bench.reports", "bench.results")

SHIPPED_FOLDER = Path(str(files("bench.results"))) / "frames"

TOGETHER = 60
"""Seconds within which the files of one installation are written."""


def whole_frame(
    name: str, source: Tables, metric: Metric = ACCURACY, filters: Mapping[str, Any] | None = None
) -> pd.DataFrame:
    """The frame ``runs``, ``clients`` or ``curves`` with the rows that match all ``filters``."""
    from bench.studies.members import check_kept, client_rows, curves_by_run

    filters = filters or {}
    all_runs = source.runs().rename(columns={"id": "run"})
    if name == "runs":
        return matching(_with_results(all_runs, source), filters)
    done = all_runs.loc[all_runs["state"] == "done", PLACE]
    done = matching(done, {key: filters[key] for key in filters if key in PLACE})
    runs = done["run"].tolist()
    rule = "last" if name == "curves" else filters.get("rule")
    rows = client_rows(source, runs, metric, filters.get("stage"), filters.get("split"), rule)
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
    return matching(pd.concat(together, axis=1), filters)


def _with_results(runs: pd.DataFrame, source: Tables) -> pd.DataFrame:
    """All runs with settings, test accuracy and origin."""
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
    """A frame of many rows and few different texts."""
    return rows.astype(dict.fromkeys(rows.select_dtypes(["string", "object"]), "category"))


def matching(frame: pd.DataFrame, filters: Mapping[str, Any]) -> pd.DataFrame:
    """The rows that match every filter: a column and a value, or several."""
    for column, value in filters.items():
        is_one = isinstance(value, str) or not isinstance(value, Iterable)
        frame = frame[frame[column].isin([value] if is_one else list(value))]
    return frame.reset_index(drop=True)


def frames_of_studies(source: Tables, metric: Metric = ACCURACY) -> dict[str, pd.DataFrame]:
    """The frames of what studies say, all rows of each, by name; ranks are of accuracy."""
    from bench.frames.graded_cells import COLUMNS, PUBLIC, collect, no_rows
    from bench.frames.ranking import RANKS, rank
    from bench.studies.study import STUDIES

    studies = [study() for study in STUDIES.all().values()]
    results = collect(source, studies, metric)
    rankings = [rank(study, results) for study in studies] if metric == ACCURACY else []
    ranks = [ranking.ranks[list(RANKS)] for ranking in rankings if ranking]
    types = {name: COLUMNS[name] for name in PUBLIC}
    all_ranks = pd.concat(ranks or [no_rows(RANKS)], ignore_index=True).astype(RANKS)
    return {"cells": results.cells[PUBLIC].astype(types), "ranks": all_ranks}


def kept(name: str, db: str | None, own: bool, metric: Metric = ACCURACY) -> pd.DataFrame:
    """The frame ``cells``, ``ranks`` or ``runs`` of these results, made now if it is not kept."""
    shipped = SHIPPED_FOLDER / f"{name}.parquet"
    if metric == ACCURACY and not (db or own) and is_up_to_date(shipped):
        return pd.read_parquet(shipped)
    read, state = stamp(db, own).split("-")
    older = f"{name}-{metric}-{read}-*.parquet"
    file = paths.home() / FOLDER / older.replace("*", state)
    if file.is_file():
        return pd.read_parquet(file)

    from bench.studies.shipped import opened_results

    with opened_results(db, own) as source:
        frame = whole_frame(name, source) if name == "runs" else frames_of_studies(source, metric)[name]
    with suppress(OSError):  # a home that cannot be written can be read
        file.parent.mkdir(parents=True, exist_ok=True)
        for older_file in file.parent.glob(older):
            older_file.unlink()
        with replacing_file(file) as temporary_file:
            frame.to_parquet(temporary_file, index=False)
    return frame


def is_up_to_date(file: Path) -> bool:
    """Whether a frame that ships is what would be collected: it is there, nothing is the user's own, and no
    code or result is younger.
    """
    if not file.is_file() or os.environ.get("BENCH_PLUGINS") or any(map(Path.exists, _own_files(None))):
        return False
    last_change = max(path.stat().st_mtime for path in _sources() if path.parent != SHIPPED_FOLDER)
    return last_change <= file.stat().st_mtime + TOGETHER


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
    plugins = os.environ.get("BENCH_PLUGINS", "")
    digest = hashlib.sha256(json.dumps([db, own, plugins]).encode())
    read = digest.hexdigest()[:8]
    for path in (*_sources(), *map(Path, filter(None, plugins.split(os.pathsep))), *_own_files(db)):
        if path.is_file():
            status = path.stat()
            digest.update(f"{path}\0{status.st_size}\0{status.st_mtime_ns}\0".encode())
    if db and not db.startswith("sqlite:///"):  # nobody can tell from here whether it has changed
        digest.update(os.urandom(16))
    return f"{read}-{digest.hexdigest()[:32]}"


def _own_files(db: str | None) -> Iterator[Path]:
    """The database, with what is not in it yet, and the user's own tuned configurations."""
    database = (db or paths.default_database()).removeprefix("sqlite:///")
    yield Path(database)
    yield Path(f"{database}-wal")
    yield from sorted(paths.home().glob("tuned/*"))


def _sources() -> Iterator[Path]:
    """Code and results, and what decides how pages look."""
    kinds = {".py", ".toml", ".csv", ".json", ".parquet", ".j2", ".css"}
    for package in CODE:
        for path in sorted(Path(str(files(package))).rglob("*")):
            if path.suffix in kinds:
                yield path
