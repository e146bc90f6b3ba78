"""Makes runs as Slurm jobs, one job per run, through submitit."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import Any

from submitit import AutoExecutor
from submitit.core.utils import FailedJobError

from bench.engine.result import RunResult
from bench.errors import RequestError
from bench.runner import Placement
from bench.runner.workers import Execute, Lost, Order, Pool, attempt_on_node

JOBS = 32
"""Jobs at a time; ``--jobs`` overrides it."""

TICK = 0.5
"""Seconds between two checks for ended jobs."""

MINUTES = 24 * 60
"""Minutes that Slurm gives a job; ``--slurm timeout_min=...`` overrides it."""


class SlurmPool(Pool):
    """Submits runs as jobs; a thread checks which jobs have ended. Jobs leave their files in a folder that
    all machines must share. Settings are submitit's (``mem_gb``) or Slurm's (``partition``).
    """

    elsewhere = True

    def __init__(self, folder: Path, placement: Placement, runs: int, cluster: str = "slurm") -> None:
        device = "cuda:0" if placement.devices == "cuda" else "cpu"
        super().__init__((device,) * max(1, min(placement.jobs or JOBS, runs)), placement.threads or 1)
        settings: dict[str, Any] = {"timeout_min": MINUTES, "cpus_per_task": self.threads}
        if device != "cpu":
            settings["gpus_per_node"] = 1
        for setting in placement.slurm:
            key, _, value = setting.partition("=")
            settings[key] = int(value) if value.isdecimal() else value
        common = AutoExecutor._typed_parameters()
        options = {key if key in common else f"slurm_{key}": value for key, value in settings.items()}
        try:
            self.executor = AutoExecutor(folder, cluster=cluster)
            self.executor.update_parameters(**options)
        except (RuntimeError, NameError, AssertionError) as error:
            raise RequestError(f"--backend slurm: {str(error).splitlines()[0]}") from error
        self._jobs: dict[Future[RunResult], Any] = {}
        self._closed = threading.Event()

    def open(self, execute: Execute, timeout: float | None) -> None:
        """Start to check for ended jobs."""
        super().open(execute, timeout)
        threading.Thread(target=self._look, daemon=True).start()

    def start(self, slot: int, order: Order) -> Future[RunResult]:
        """Submit a job."""
        future: Future[RunResult] = Future()
        try:
            self._jobs[future] = self.executor.submit(attempt_on_node, self._execute, order, self._timeout)
        except (FailedJobError, OSError) as error:  # Slurm refuses the job, or the disk its files
            future.set_result(Lost("failed", f"the Slurm job could not be submitted: {_words(error)}"))
        return future

    def _look(self) -> None:
        while not self._closed.wait(TICK):
            for future, job in list(self._jobs.items()):
                with suppress(OSError):  # the disk cannot be read now; check again later
                    if job.done():
                        del self._jobs[future]
                        future.set_result(_outcome(job))

    def close(self) -> None:
        """Cancel running and waiting jobs."""
        self._closed.set()
        for job in list(self._jobs.values()):
            job.cancel(check=False)


def _outcome(job: Any) -> RunResult:
    """Return the result of an ended job. A job without a result was killed, ran out of Slurm's time, or could
    not use the shared disk; then its files stay in its folder.
    """
    try:
        result: RunResult = job.result()
    except Exception as error:  # an incomplete file can raise any error
        reason = f"Slurm job {job.job_id} ended without a result ({job.state}): {_words(error)}"
        return Lost("failed", reason)
    with suppress(OSError):
        for path in job.paths.folder.glob(f"{job.job_id}_*"):
            path.unlink(missing_ok=True)
    return result


def _words(error: Exception) -> str:
    """Return an error's type and the last line of its text, without the rule and list of files below it."""
    text = str(error).rpartition("\n-----")[0] or str(error)
    return f"{type(error).__name__}: {text.strip().rpartition(chr(10))[2]}"
