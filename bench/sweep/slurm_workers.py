"""Runs as Slurm jobs, one each, through submitit."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from submitit import AutoExecutor
from submitit.core.utils import FailedJobError

from bench.engine.result import RunResult
from bench.errors import RequestError
from bench.sweep.order import Execute, Order
from bench.sweep.policy import Placement, Slots
from bench.sweep.workers import Lost, MakePool, attempt_on_node

JOBS = 32
"""Jobs at a time unless ``--jobs`` says otherwise."""

TICK = 0.5
"""Seconds between two looks at what has ended."""

MINUTES = 24 * 60
"""Time that Slurm gives a job unless ``--slurm timeout_min=...`` says otherwise."""


def slurm(folder: Path, placement: Placement, runs: int) -> tuple[Slots, MakePool]:
    """Slots for the Slurm jobs of a placement, and what makes runs in them. Jobs leave their files in a
    folder that all machines must share.

    Raises:
        RequestError: Slurm is not on this machine, or a setting is none.
    """
    parameters: dict[str, Any] = {"timeout_min": MINUTES, "cpus_per_task": placement.threads or 1}
    if placement.devices == "cuda":
        parameters["gpus_per_node"] = 1
    for setting in placement.slurm:
        key, _, value = setting.partition("=")
        parameters[key] = int(value) if value.isdecimal() else value
    device, jobs = "cuda:0" if placement.devices == "cuda" else "cpu", min(placement.jobs or JOBS, runs)
    slots = Slots((device,) * max(1, jobs), placement.threads or 1, elsewhere=True)
    alone = executor(folder, {**parameters, "exclusive": True})
    return slots, partial(SlurmPool, executor=executor(folder, parameters), alone=alone)


def executor(folder: Path, parameters: Mapping[str, Any], cluster: str = "slurm") -> AutoExecutor:
    """What submits jobs with submitit's parameters (``timeout_min``, ``mem_gb``, ...) or Slurm's
    (``partition``, ``account``, ...).

    Raises:
        RequestError: ``cluster`` is not on this machine, or there is no such parameter.
    """
    common = AutoExecutor._typed_parameters()
    options = {key if key in common else f"slurm_{key}": value for key, value in parameters.items()}
    try:
        submitter = AutoExecutor(folder, cluster=cluster)
        submitter.update_parameters(**options)
    except RuntimeError as error:
        raise RequestError(
            f"--backend slurm expects a machine that can submit Slurm jobs: {error}"
        ) from error
    except (NameError, AssertionError) as error:
        raise RequestError(f"--slurm: {str(error).splitlines()[0]}") from error
    return submitter


class SlurmPool:
    """Submits runs with one executor, those that must be alone with the other, and looks for what
    came of them in a thread of its own.
    """

    def __init__(
        self, slots: int, execute: Execute, timeout: float | None, executor: AutoExecutor, alone: AutoExecutor
    ) -> None:
        self._execute = execute
        self._timeout = timeout
        self._executor = executor
        self._lone_executor = alone
        self._jobs: dict[Future[RunResult], Any] = {}
        self._stopped = threading.Event()
        threading.Thread(target=self._look, daemon=True).start()

    def start(self, slot: int, order: Order) -> Future[RunResult]:
        """Submit a job; one that is to be alone has its node to itself."""
        executor = self._lone_executor if order.alone else self._executor
        arguments = (self._execute, order, self._timeout, False)
        future: Future[RunResult] = Future()
        try:
            self._jobs[future] = executor.submit(attempt_on_node, *arguments)
        except (FailedJobError, OSError) as error:  # Slurm refuses it, or the disk its files
            reason = f"the Slurm job could not be submitted: {_words(error)}"
            future.set_result(Lost("failed", reason))
        return future

    def _look(self) -> None:
        while not self._stopped.wait(TICK):
            for future, job in list(self._jobs.items()):
                with suppress(OSError):  # the disk cannot say now whether the job has ended
                    if job.done():
                        del self._jobs[future]
                        future.set_result(_outcome(job))

    def stop(self) -> None:
        """Cancel what runs or waits."""
        self._stopped.set()
        for job in list(self._jobs.values()):
            job.cancel(check=False)


def _outcome(job: Any) -> RunResult:
    """What came of a job that has ended: without a result it was killed, Slurm's time for it was over, or the
    disk that machines share failed. What it wrote stays in its folder then.
    """
    try:
        result: RunResult = job.result()
    except Exception as error:  # half a file raises whatever it looks like
        reason = f"Slurm job {job.job_id} ended without a result ({job.state}): {_words(error)}"
        return Lost("failed", reason)
    with suppress(OSError):
        for path in job.paths.folder.glob(f"{job.job_id}_*"):
            path.unlink(missing_ok=True)
    return result


def _words(error: Exception) -> str:
    """The last line of what was raised, which may stand above a rule and a list of files."""
    text = str(error).rpartition("\n-----")[0] or str(error)
    return f"{type(error).__name__}: {text.strip().rpartition(chr(10))[2]}"
