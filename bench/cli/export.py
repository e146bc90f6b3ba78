"""``bench export``: results as a bundle of files that others can read, or for an experiment tracker."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Literal

from bench import paths
from bench.cli import options


def export(
    out: Path,
    *,
    to: Literal["mlflow", "tensorboard", "trackio", "wandb"] | None = None,
    filters: options.RunFilters = options.ALL_RUNS,
    grid: str | None = None,
    largest_array_kib: int = 4,
    db: options.Database = None,
    as_json: options.AsJson = False,
) -> None:
    """Write runs that have an outcome as a bundle: a folder of JSON and Parquet files.

    The states done, diverged, not_applicable and oom are outcomes. With --to, the finished runs with
    their settings, curves and accuracies go into a folder that an experiment tracker opens.

    Parameters
    ----------
    out
        The bundle's folder: a new one, or a bundle, which is replaced. For a tracker: a new or empty one.
    to
        The tracker to write for; each needs the extra of its name: pip install 'pfl-bench[mlflow]'.
    grid
        Only the runs of this grid, a name or a TOML file.
    largest_array_kib
        Leave out arrays of runs that are larger: collaboration weights of every round take some 200.
    """
    from bench.grids import expand, load_grid
    from bench.store import open_store
    from bench.store.bundle_export import write_bundle
    from bench.store.filters import filter_known_runs
    from bench.store.trackers import export_to_tracker

    with open_store(db or paths.default_database(), create=False) as store:
        runs = store.runs()
        if grid is not None:
            planned = {run.spec.hash for run in expand(load_grid(grid)) if run.spec is not None}
            runs = runs[runs["spec_hash"].isin(planned)]
        runs = filter_known_runs(runs, filters.columns)
        if to is not None:
            count = export_to_tracker(to, store, runs, out)
            summary: dict[str, Any] = {"tracker": to, "folder": str(out.resolve()), "runs": count}
            line = f"{out.resolve()}: {_runs(count)} for {to}"
        else:
            written = write_bundle(store, runs, out, largest_array_kib * 1024)
            summary = {"bundle": str(written.folder), "runs": written.runs, "bytes": written.bytes}
            summary["files"] = written.files
            line = f"{written.folder}: {_runs(written.runs)}, {written.bytes:,} bytes"
    print(json.dumps(summary) if as_json else line)


def _runs(count: int) -> str:
    return f"{count:,} run{'s' if count > 1 else ''}"
