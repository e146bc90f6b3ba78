"""Sweeps as Slurm jobs, submitted to the processes that submitit offers in place of a cluster."""

import errno
import os
import pickle
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from fake_execute import scripted
from fake_runs import Scripted, cpu, grid, stored_numbers
from processes import alive, wait_for

from bench.errors import RequestError
from bench.grids import expand
from bench.runner import Placement
from bench.runner.execution import execute
from bench.runner.workers import Order

pytest.importorskip("submitit", reason="needs the extra 'slurm'")

from submitit.core.utils import pickle_load
from submitit.slurm.slurm import SlurmExecutor

from bench.runner import slurm_workers
from bench.runner.slurm_workers import SlurmPool


@pytest.fixture(autouse=True)
def jobs_import_the_scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)
    monkeypatch.setattr("submitit.core.core.Job._results_timeout_s", 1)  # files come at once here


def local_jobs(folder: Path, runs: int) -> SlurmPool:
    """A pool whose jobs are processes of this machine."""
    placement = Placement(backend="slurm", slurm=["timeout_min=5"])
    return SlurmPool(folder / "slurm", placement, runs, cluster="local")


@pytest.mark.slow
def test_a_sweep_as_jobs_of_which_one_fails_and_one_is_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("jobs", "here"):
        (tmp_path / name).mkdir()
    work, here = Scripted(tmp_path / "jobs"), Scripted(tmp_path / "here")
    (work.folder / "attempts").mkdir()
    gone: list[psutil.Process] = []
    controllers: list[int] = []

    def kill() -> None:
        wait_for(lambda: work.attempts("local 3 1"), 120)
        run = psutil.Process(work.attempts("local 3 1")[0]["pid"])
        job = run.parent()
        assert job is not None
        controllers.append(job.ppid())
        gone.extend([run, job])
        job.kill()

    killer = threading.Thread(target=kill)
    killer.start()
    script = {"local 3 0": ["raise"], "local 3 1": ["done 60", "done"]}
    planned = expand(grid(seeds=(0, 1)))
    outcome = work.sweep(planned, script, local_jobs(work.folder, 2), timeout=30)
    killer.join()
    assert (outcome.counts, outcome.failed) == ({"done": 3, "failed": 1}, 1)
    assert any("Slurm job" in line and "trying again" in line for line in work.lines), work.lines
    assert {key: len(work.attempts(key)) for key in work.stored()} == {
        "local 3 0": 1,
        "local 3 1": 2,
        "fedavg 3 0": 1,
        "fedavg 3 1": 1,
    }
    assert work.stored()["local 3 0"]["reason"] == "ValueError: seed 0"
    here.sweep(planned, {"local 3 0": ["raise"]}, cpu(2))
    assert stored_numbers(work.url) == stored_numbers(here.url)
    assert len(stored_numbers(work.url)) == 4
    wait_for(lambda: not alive(gone))
    kept = {path.name.partition("_")[0] for path in (work.folder / "slurm").iterdir()}
    assert kept == {str(controllers[0])}, "the files of the killed job alone"


@pytest.mark.slow
def test_what_runs_is_cancelled_when_the_sweep_stops(tmp_path: Path) -> None:
    work = Scripted(tmp_path)
    (tmp_path / "attempts").mkdir()
    (tmp_path / "script.json").write_text('{"*": ["hang"]}')
    workers = local_jobs(tmp_path, 1)
    workers.open(scripted, None)
    spec = expand(grid())[0].spec
    workers.start(0, Order(spec, (str(tmp_path),), "cpu", 1))
    wait_for(lambda: work.attempts("local 3 0"))
    run = psutil.Process(work.attempts("local 3 0")[0]["pid"])
    processes = [run, *run.parents()[:2]]
    workers.close()
    wait_for(lambda: not alive(processes))


class EndedJob:
    """Stands for an executor and for a job of it that has ended, and once cannot be asked whether it has."""

    job_id, state = "7", "COMPLETED"

    def __init__(self, folder: Path, submit: Exception | None = None) -> None:
        self.paths = SimpleNamespace(folder=folder)
        self._submit, self._stale = submit, True

    def submit(self, *_: object) -> "EndedJob":
        if self._submit is not None:
            raise self._submit
        return self

    def done(self) -> bool:
        if self._stale:
            self._stale = False
            raise OSError(errno.ESTALE, "Stale file handle")
        return True

    def result(self) -> object:
        return pickle_load(self.paths.folder / "7_0_result.pkl")

    def cancel(self, check: bool) -> None: ...


@pytest.mark.parametrize(
    ("submit", "content", "words"),
    [
        (slurm_workers.FailedJobError("sbatch: invalid partition\nthat is all"), None, "that is all"),
        (OSError(errno.ENOSPC, "No space left on device"), None, "No space left on device"),
        (None, pickle.dumps(["a result"])[:-3], "pickle data was truncated"),
        (None, None, "FileNotFoundError"),
        (None, pickle.dumps("a result"), ""),
    ],
    ids=["refused", "full", "half", "gone", "whole"],
)
def test_what_cannot_be_handed_over_is_lost(
    tmp_path: Path, submit: Exception | None, content: bytes | None, words: str
) -> None:
    if content is not None:
        (tmp_path / "7_0_result.pkl").write_bytes(content)
    executor: Any = EndedJob(tmp_path, submit)
    workers = local_jobs(tmp_path, 1)
    workers.executor = executor
    workers.open(execute, None)
    try:
        ended: Any = workers.start(0, Order(expand(grid())[0].spec, (), "cpu", 1)).result(timeout=60)
    finally:
        workers.close()
    if words:
        assert isinstance(ended, slurm_workers.Lost)
        assert words in ended.reason
    else:
        assert ended == "a result"
    assert len(list(tmp_path.glob("7_*"))) == (content is not None and bool(words)), "to be read"


@pytest.fixture
def with_slurm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SlurmExecutor, "affinity", classmethod(lambda cls: 2))
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")


@pytest.mark.usefixtures("with_slurm")
def test_settings_reach_the_job_file(tmp_path: Path) -> None:
    settings = ["partition=gpu", "timeout_min=90", "account=lab-7", "mem_gb=16"]
    placement = Placement(threads=2, devices="cuda", backend="slurm", slurm=settings)
    pool = SlurmPool(tmp_path, placement, 100)
    assert (pool.devices, pool.threads) == (("cuda:0",) * slurm_workers.JOBS, 2)
    text = pool.executor._executor._make_submission_file_text("run", "1")
    for line in ("partition=gpu", "time=90", "account=lab-7", "gpus-per-node=1", "cpus-per-task=2"):
        assert f"#SBATCH --{line}\n" in text, text
    assert "#SBATCH --mem=16" in text
    few = SlurmPool(tmp_path, Placement(backend="slurm", jobs=5), 3)
    assert few.devices == ("cpu",) * 3, "no more jobs than runs, and no GPU unless asked for"


@pytest.mark.usefixtures("with_slurm")
@pytest.mark.parametrize(
    ("setting", "words"),
    [("partitoin=gpu", "partitoin"), ("mem_gb=x", "mem_gb"), ("=3", "slurm_")],
)
def test_a_setting_that_is_none_is_refused(tmp_path: Path, setting: str, words: str) -> None:
    with pytest.raises(RequestError, match="slurm.*" + words) as refused:
        SlurmPool(tmp_path, Placement(backend="slurm", slurm=[setting]), 1)
    assert "\n" not in str(refused.value)


def test_a_machine_without_slurm_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))  # this machine may have it
    with pytest.raises(RequestError, match="--backend slurm: "):
        SlurmPool(tmp_path, Placement(backend="slurm"), 1)
