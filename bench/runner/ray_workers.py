"""Makes runs on a Ray cluster: one task per run, with the cores and the part of a GPU that the run needs."""

from __future__ import annotations

import logging
import os
from concurrent.futures import Future
from functools import partial
from typing import Any

import ray
from ray.exceptions import RayError, RayTaskError

from bench.engine.result import RunResult
from bench.errors import RequestError
from bench.runner import Placement
from bench.runner.workers import PER_GPU, Lost, Order, Pool, attempt_on_node


class RayPool(Pool):
    """Gives runs to the Ray cluster of this machine or of ``RAY_ADDRESS``. ``jobs`` run at a time; by default
    as many as the cluster has room for. Runs use GPUs if there are any, unless ``devices`` is ``cpu``.
    """

    elsewhere = True

    def __init__(self, placement: Placement, runs: int) -> None:
        variables = {name: value for name, value in os.environ.items() if name.startswith("BENCH_")}
        try:
            ray.init(
                "auto",
                logging_level=logging.ERROR,
                log_to_driver=False,
                runtime_env={"env_vars": variables},
            )
        except (OSError, ValueError, RuntimeError, RayError) as error:
            raise RequestError(f"--backend ray: {error}") from error
        resources = ray.cluster_resources()
        gpus = 0 if placement.devices == "cpu" else int(resources.get("GPU", 0))
        threads = placement.threads or 1
        room = int(resources.get("CPU", 0)) // threads
        default = min(PER_GPU * gpus, room) if gpus else room
        count = max(1, min(placement.jobs or default, runs))
        super().__init__(("cuda:0" if gpus else "cpu",) * count, threads)
        self._tasks: dict[int, Any] = {}  # by slot

    def start(self, slot: int, order: Order) -> Future[RunResult]:
        """Submit a run; Ray finds the node."""
        task = ray.remote(attempt_on_node).options(
            num_cpus=order.threads,
            num_gpus=0 if order.device == "cpu" else 1 / PER_GPU,
            max_retries=0,  # the sweep retries a lost run, and counts the tries
        )
        self._tasks[slot] = task.remote(self._execute, order, self._timeout)
        future: Future[RunResult] = Future()
        self._tasks[slot].future().add_done_callback(partial(_hand_on, future))
        return future

    def close(self) -> None:
        """Cancel running and waiting tasks, and leave the cluster."""
        for task in self._tasks.values():
            ray.cancel(task, force=True)
        self._tasks.clear()
        ray.shutdown()


def _hand_on(future: Future[RunResult], task: Future[RunResult]) -> None:
    """Set the result of a future from an ended task; an error becomes a failed or lost run."""
    try:
        result = task.result()
    except RayTaskError as error:  # the node cannot make runs
        reason = str(error.cause).partition("\n")[0]
        result = RunResult("failed", f"a node of the cluster: {reason}", str(error))
    except RayError as error:
        result = Lost("failed", f"the run's node or process was lost ({type(error).__name__})")
    future.set_result(result)
