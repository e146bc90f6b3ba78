"""Where a sweep's runs are made: on this machine, on a Ray cluster, or as Slurm jobs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from bench.errors import RequestError
from bench.sweep import devices as local
from bench.sweep.choices import Engine
from bench.sweep.devices import Slots

if TYPE_CHECKING:
    from bench.sweep.seams import MakeWorkers

PACKAGES = {"ray": "ray", "slurm": "submitit"}
"""The package that an engine needs, from the extra of the engine's name."""


@dataclass(frozen=True)
class Request:
    """What the command line says of where runs go (``bench sweep --help``)."""

    engine: Engine = "local"
    address: str | None = None
    slurm: Sequence[str] = ()
    devices: str | None = None
    jobs: int | None = None
    threads: int | None = None


@contextmanager
def opened(request: Request, runs: int, home: Path) -> Iterator[tuple[Slots, MakeWorkers]]:
    """Slots for ``runs`` runs, and what makes runs in them; what an engine has started ends at the end.
    The request is one that ``check`` accepts.

    Raises:
        RequestError: the devices or the cluster are not there, or cannot do what is asked.
    """
    devices, jobs, threads = request.devices, request.jobs, request.threads
    if request.engine == "ray":
        from bench.sweep import ray_workers

        with ray_workers.cluster(request.address, devices, jobs, threads, runs) as opened:
            yield opened
    elif request.engine == "slurm":
        from bench.sweep import slurm_workers

        yield slurm_workers.slurm(home / "slurm", request.slurm, devices, jobs, threads, runs)
    else:
        from bench.sweep import pool

        yield local.choose(devices, jobs, threads, runs), pool.Workers


def check(request: Request) -> None:
    """Refuse what does not go together or cannot be had here.

    Raises:
        RequestError: an option of another engine, no number, no setting, or an extra that is not installed.
    """
    for option, value, engine in (("--address", request.address, "ray"), ("--slurm", request.slurm, "slurm")):
        if value and request.engine != engine:
            raise RequestError(f"{option} goes with --engine {engine}, got --engine {request.engine}")
    for setting in request.slurm:
        key, equals, value = setting.partition("=")
        if not (key and equals and value):
            raise RequestError(f"--slurm expects KEY=VALUE such as partition=gpu, got '{setting}'")
    if request.engine != "local" and request.devices not in (None, "cpu", "cuda"):
        raise RequestError(
            f"--devices expects cpu or cuda with --engine {request.engine}, got '{request.devices}'"
        )
    local.check_counts(request.jobs, request.threads)
    package = PACKAGES.get(request.engine)  # last: who installs an extra should not be refused afterwards
    if package is not None and find_spec(package) is None:
        raise RequestError(
            f"--engine {request.engine} needs the extra '{request.engine}': "
            f"pip install 'pfl-bench[{request.engine}]'"
        )
