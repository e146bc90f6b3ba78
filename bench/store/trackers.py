"""Stored runs for experiment trackers: MLflow, Weights & Biases (offline), TensorBoard and Trackio.

Every run becomes a run of the tracker with its settings, where it came from, its accuracies by round (mean
over clients) and its training loss. Nothing leaves the machine: each tracker writes files into a folder.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bench.errors import RequestError, unknown
from bench.metric_names import ACCURACY
from bench.selection import client_mean
from bench.spec import RunSpec
from bench.store.bundle_check import STATES
from bench.store.store import Store

PROJECT = "pfl-bench"
TAGS = ("spec_hash", "state", "reason", "bundle", "device", "code_version", "partition_hash")
COSTS = ("seconds_total", "seconds_client", "seconds_server", "peak_memory", "bytes_up", "bytes_down")

Scalar = str | int | float | bool


@dataclass(frozen=True)
class TrackedRun:
    """A run as a tracker takes it.

    ``group`` is common to the runs that differ in their seed alone; ``started`` are seconds since 1970.
    ``curves`` hold a value a row: a round, or a local epoch where the protocol evaluates after every epoch.
    ``summary`` holds what the selection rules choose, and costs (seconds, bytes). Accuracies are 0 to 1,
    means over clients.
    """

    name: str
    group: str
    started: float
    settings: dict[str, Scalar]
    tags: dict[str, str]
    summary: dict[str, float]
    curves: dict[str, list[float]]

    def steps(self) -> Iterator[tuple[int, dict[str, float]]]:
        """Row from 0, and the values of the curves that have it."""
        for row in range(max(map(len, self.curves.values()), default=0)):
            yield row, {name: values[row] for name, values in self.curves.items() if row < len(values)}


Adapter = Callable[[Iterable[TrackedRun], Path], None]


def tracked_runs(store: Store, runs: pd.DataFrame) -> Iterator[TrackedRun]:
    """Rows of ``Store.runs`` as trackers take them."""
    for run in runs.to_dict("records"):
        spec = RunSpec.model_validate_json(run["spec"])
        results = store.client_results([run["id"]], metric=ACCURACY)
        means = (
            results["value"].groupby(results["rule"] + "/" + results["split"] + "/" + results["stage"]).mean()
        )
        summary = {f"selected/{reading}": float(value) for reading, value in means.to_dict().items()}
        names = {name: run[name] for name in ("dataset", "scenario", "clients", "method", "seed")}
        settings = {key: _scalar(value) for key, value in spec.settings().items()}
        yield TrackedRun(
            name="/".join(map(str, names.values())),
            group=run["cell"],
            started=run["started"].tz_localize("UTC").timestamp(),
            settings={**names, **settings},
            tags={name: str(run[name]) for name in TAGS if run[name]},
            summary=summary | {name: float(run[name]) for name in COSTS},
            curves=_curves(store, run["id"], results),
        )


def _scalar(value: Any) -> Scalar:
    return value if isinstance(value, (str, int, float, bool)) else str(value)


def _curves(store: Store, run_id: int, results: pd.DataFrame) -> dict[str, list[float]]:
    curves: dict[str, list[float]] = {}
    for split in ("train", "val", "test"):
        samples = results[results["split"] == split].groupby("client")["samples"].first()
        for (_, stage), counts in store.curves([run_id], split).items():
            sizes = samples.reindex(range(counts.shape[1]), fill_value=0).to_numpy(np.int32)
            curves[f"{ACCURACY}/{split}/{stage}"] = client_mean(counts, sizes).tolist()
    if "loss" in store.artefact_names(run_id):
        curves["loss/train"] = [float(value) for value in store.artefact(run_id, "loss")]
    return curves


# Adapters -----------------------------------------------------------------------------------------


def _mlflow(runs: Iterable[TrackedRun], folder: Path) -> None:
    client = import_module("mlflow").MlflowClient(tracking_uri=folder.absolute().as_uri())
    entities = import_module("mlflow.entities")
    experiment = client.create_experiment(PROJECT)
    for run in runs:
        start = int(1000 * run.started)
        tags = {**run.tags, "cell": run.group}
        number = client.create_run(experiment, start_time=start, tags=tags, run_name=run.name).info.run_id
        metrics = [entities.Metric(name, value, start, 0) for name, value in run.summary.items()]
        metrics += [
            entities.Metric(name, value, start, step)
            for step, values in run.steps()
            for name, value in values.items()
        ]
        settings = [entities.Param(key, str(value)) for key, value in run.settings.items()]
        for position in range(0, len(settings), 100):  # a batch takes so many, and 1,000 metrics
            client.log_batch(number, params=settings[position : position + 100])
        for position in range(0, len(metrics), 1000):
            client.log_batch(number, metrics=metrics[position : position + 1000])
        status = "FINISHED" if run.tags["state"] == "done" else "FAILED"
        client.set_terminated(number, status, end_time=start + int(1000 * run.summary["seconds_total"]))


def _tensorboard(runs: Iterable[TrackedRun], folder: Path) -> None:
    from torch.utils.tensorboard import SummaryWriter

    for run in runs:
        name = f"{run.name.replace('/', '_')}_{run.tags['spec_hash'][:8]}"
        with SummaryWriter(str(folder / name)) as writer:
            for step, values in run.steps():
                for curve, value in values.items():
                    writer.add_scalar(curve, value, step, walltime=run.started)
            writer.add_text("tags", "\n\n".join(f"{key}: {value}" for key, value in run.tags.items()))
            writer.add_hparams(run.settings, run.summary, run_name=".")


def _wandb(runs: Iterable[TrackedRun], folder: Path) -> None:
    wandb = import_module("wandb")
    settings = wandb.Settings(silent=True, console="off", x_disable_stats=True, x_disable_meta=True)
    for run in runs:
        tracked_run = wandb.init(
            project=PROJECT,
            name=run.name,
            group=run.group,
            dir=str(folder),
            config={**run.settings, "origin": run.tags},
            mode="offline",
            settings=settings,
        )
        for step, values in run.steps():
            tracked_run.log(values, step=step)
        tracked_run.summary.update(run.summary)
        tracked_run.finish()


def _trackio(runs: Iterable[TrackedRun], folder: Path) -> None:
    os.environ["TRACKIO_DIR"] = str(folder.absolute())
    trackio = import_module("trackio")
    if folder.absolute() != import_module("trackio.utils").TRACKIO_DIR:
        raise RuntimeError("it was imported before and writes elsewhere: export in a process of its own")
    for run in runs:
        trackio.init(
            project=PROJECT,
            name=f"{run.name} {run.tags['spec_hash'][:8]}",
            group=run.group,
            config={**run.settings, **run.tags},
            embed=False,
            auto_log_cpu=False,
            auto_log_gpu=False,
        )
        for step, values in run.steps():
            trackio.log(values, step=step)
        trackio.log(run.summary)
        trackio.finish()


ADAPTERS: dict[str, Adapter] = {
    "mlflow": _mlflow,
    "tensorboard": _tensorboard,
    "trackio": _trackio,
    "wandb": _wandb,
}
"""Tracker -> its adapter; the extra and the package have the tracker's name."""

SWITCHES = {
    "MLFLOW_ALLOW_FILE_STORE": "true",
    "MLFLOW_DISABLE_TELEMETRY": "true",
    "WANDB_ERROR_REPORTING": "false",
    "HF_HUB_DISABLE_TELEMETRY": "1",
}
"""Environment variables that let the trackers write plain files, and tell nobody of it."""


def export_to_tracker(
    tracker: str,
    store: Store,
    runs: pd.DataFrame,
    folder: Path,
    adapters: Mapping[str, Adapter] = ADAPTERS,
    is_installed: Callable[[str], bool] = lambda package: find_spec(package) is not None,
) -> int:
    """Write the runs that have an outcome into a new or empty folder as the tracker keeps them.

    ``runs`` are rows of ``Store.runs``. Returned is how many were written. What the tracker prints goes to
    standard error.

    Raises:
        RequestError: no such tracker, its package is not installed, no run has an outcome, the folder holds
            something, or the tracker cannot write; nothing is left in the folder then.
    """
    if tracker not in adapters:
        raise unknown("tracker", tracker, adapters)
    if not is_installed(tracker):
        raise RequestError(f"--to {tracker} needs the extra '{tracker}': pip install 'pfl-bench[{tracker}]'")
    runs = runs[runs["state"].isin(STATES)]
    if runs.empty:
        raise RequestError(f"no run to export: expected some in state {', '.join(STATES)}")
    os.environ.update(SWITCHES)
    with _new_folder(folder), redirect_stdout(sys.stderr):
        try:
            adapters[tracker](tracked_runs(store, runs), folder)
        except RequestError:
            raise
        except Exception as error:
            first_line = str(error).strip().partition("\n")[0]
            raise RequestError(f"--to {tracker}: {type(error).__name__}: {first_line}") from error
    return len(runs)


@contextmanager
def _new_folder(folder: Path) -> Iterator[None]:
    """A folder, made where there is none, of which nothing stays if something goes wrong."""
    existed = folder.exists()
    if existed and (not folder.is_dir() or any(folder.iterdir())):
        raise RequestError(f"--out {folder}: expected a new folder or an empty one")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RequestError(f"--out {folder}: cannot write there: {error.strerror}") from None
    try:
        yield
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        if existed:
            folder.mkdir()
        raise
