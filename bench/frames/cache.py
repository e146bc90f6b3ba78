"""Cells and ranks as files: collected once, for as long as neither results nor code change."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator
from importlib.metadata import entry_points
from importlib.resources import files
from pathlib import Path

import pandas as pd

from bench import paths
from bench.metric_names import ACCURACY, Metric
from bench.replacement import replacing_file

FOLDER = "frames"
CODE = ("bench", "bench.methods", "bench.datasets", "bench.reports", "bench.results")

SHIPPED_FOLDER = Path(str(files("bench.results"))) / "frames"

TOGETHER = 60
"""Seconds within which the files of one installation are written."""


def kept(name: str, db: str | None, own: bool, metric: Metric) -> pd.DataFrame:
    """The frame ``cells`` or ``ranks`` of these results, collected now if it is not kept; older ones go.

    Raises:
        RequestError: as ``bench.frames.whole_frames.whole_frame``, or a database that cannot be read.
    """
    shipped_file = shipped(name, db, own) if metric == ACCURACY else None
    if shipped_file is not None:
        return pd.read_parquet(shipped_file)
    folder = paths.home() / FOLDER / stamp(db, own)
    file = folder / f"{name if metric == ACCURACY else f'{name}-{metric}'}.parquet"
    if not file.is_file():
        from bench.frames.whole_frames import frames_of_studies
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
    from bench.frames.whole_frames import frames_of_studies
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
    for path in (*_sources(), *_looks(), *plugins, database, wal, *sorted(_tuned_files())):
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
    for package in CODE:
        root = Path(str(files(package)))
        for pattern in ("*.py", "*.toml", "*.csv", "*.json", "*.parquet"):
            yield from sorted(root.rglob(pattern))


def _looks() -> Iterator[Path]:
    """What decides how pages look, and no number."""
    for pattern in ("*.j2", "*.css"):
        yield from sorted(Path(str(files("bench"))).rglob(pattern))
