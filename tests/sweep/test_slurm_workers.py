"""Sweeps as Slurm jobs, submitted to the processes that submitit offers in place of a cluster."""

import errno
import os
import pickle
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
import scripted as scripts
from fake_runs import cpu, grid, stored_numbers
from processes import alive, wait_for
from scripted import Scripted

from bench.errors import RequestError
from bench.grids import expand
from bench.sweep.execution import execute
from bench.sweep.order import Order
from bench.sweep.policy import Limits, Placement, Slots
from bench.sweep.run import Outcome, sweep

pytest.importorskip("submitit", reason="needs the extra 'slurm'")

from submitit.core.utils import pickle_load
from submitit.slurm.slurm import SlurmExecutor

from bench.sweep import slurm_workers


@pytest.fixture(autouse=True)
def jobs_import_the_scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent), prepend=os.pathsep)
    monkeypatch.setattr("submitit.core.core.Job._results_timeout_s", 1)  # files come at once here


def as_jobs(work: Scripted, monkeypatch: pytest.MonkeyPatch, script: Mapping[str, list[str]]) -> Outcome:
    one = slurm_workers.executor(work.folder / "slurm", {"timeout_min": 5}, cluster="local")
    make = partial(slurm_workers.SlurmPool, executor=one, alone=one)
    with monkeypatch.context() as patch:
        patch.setattr(scripts, "sweep", partial(sweep, make_pool=make))
        slots = Slots(("cpu",) * 2, 1, elsewhere=True)
        return work.sweep(expand(grid(seeds=(0, 1))), dict(script), slots, Limits(timeout=30))


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
    outcome = as_jobs(work, monkeypatch, script)
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
    here.sweep(expand(grid(seeds=(0, 1))), {"local 3 0": ["raise"]}, cpu(2))
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
    one = slurm_workers.executor(tmp_path / "slurm", {"timeout_min": 5}, cluster="local")
    workers = slurm_workers.SlurmPool(1, scripts.scripted, None, one, one)
    spec = expand(grid())[0].spec
    workers.start(0, Order(spec, (str(tmp_path),), "cpu", 1))
    wait_for(lambda: work.attempts("local 3 0"))
    run = psutil.Process(work.attempts("local 3 0")[0]["pid"])
    processes = [run, *run.parents()[:2]]
    workers.stop()
    wait_for(lambda: not alive(processes))


class Recorded:
    """Stands for an executor and keeps what it was given."""

    def __init__(self) -> None:
        self.submitted: list[object] = []

    def submit(self, *arguments: object) -> object:
        self.submitted.append(arguments)
        raise slurm_workers.FailedJobError("sbatch: error: invalid partition\nthat is all")


def test_what_slurm_refuses_is_lost_with_its_words(tmp_path: Path) -> None:
    shared, alone = Recorded(), Recorded()
    workers = slurm_workers.SlurmPool(1, execute, None, shared, alone)  # type: ignore[arg-type]
    spec = expand(grid())[0].spec
    order = Order(spec, (), "cpu", 1)
    future = workers.start(0, order)
    assert future.result(timeout=60) == slurm_workers.Lost("the Slurm job failed: that is all")
    workers.start(0, replace(order, alone=True))
    assert (len(shared.submitted), len(alone.submitted)) == (1, 1), "alone is for the other executor"
    workers.stop()


def full() -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def unreadable() -> None:
    raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))


class EndedJobs:
    """Stands for an executor whose jobs have ended; their files are as the steps make them."""

    def __init__(
        self,
        folder: Path,
        submit: Callable[[], object] | None = None,
        done: Callable[[], object] | None = None,
    ) -> None:
        self._folder, self._submit, self._done = folder, submit, done

    def submit(self, *_: object) -> "EndedJobs":
        if self._submit is not None:
            self._submit()
        return self

    job_id = "7"

    @property
    def paths(self) -> SimpleNamespace:
        return SimpleNamespace(folder=self._folder)

    def done(self) -> bool:
        step, self._done = self._done, None  # only once: a hiccup
        if step is not None:
            step()
        return True

    def result(self) -> object:
        return pickle_load(self._folder / "7_0_result.pkl")

    def cancel(self, check: bool) -> None: ...


def handed_over(one: Any) -> object:
    """What comes of a run that goes through a ``EndedJobs``."""
    workers = slurm_workers.SlurmPool(1, execute, None, one, one)
    spec = expand(grid())[0].spec
    future = workers.start(0, Order(spec, (), "cpu", 1))
    try:
        return future.result(timeout=60)
    finally:
        workers.stop()


NOT_HANDED_OVER = "the Slurm job's order or result could not be handed over"


def test_an_order_that_cannot_be_written_is_lost(tmp_path: Path) -> None:
    assert handed_over(EndedJobs(tmp_path, submit=full)) == slurm_workers.Lost(
        f"{NOT_HANDED_OVER} (OSError: [Errno 28] No space left on device)"
    )


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "EOFError: Ran out of input"),
        (pickle.dumps(["a result"])[:-3], "UnpicklingError: pickle data was truncated"),
        (None, "FileNotFoundError: "),
    ],
    ids=["empty", "half", "gone"],
)
def test_a_result_that_cannot_be_read_is_lost(tmp_path: Path, content: bytes | None, words: str) -> None:
    if content is not None:
        (tmp_path / "7_0_result.pkl").write_bytes(content)
    ended = handed_over(EndedJobs(tmp_path))
    assert isinstance(ended, slurm_workers.Lost)
    assert ended.how.startswith(f"{NOT_HANDED_OVER} ({words}")
    assert [path.exists() for path in tmp_path.iterdir()] == [True] * (content is not None), "to be read"


def test_a_job_that_cannot_be_looked_at_for_a_moment_is_not_lost(tmp_path: Path) -> None:
    (tmp_path / "7_0_result.pkl").write_bytes(pickle.dumps("a result"))
    assert handed_over(EndedJobs(tmp_path, done=unreadable)) == "a result"
    assert not list(tmp_path.iterdir())


def test_files_that_cannot_be_removed_lose_no_result(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "7_0_result.pkl").write_bytes(pickle.dumps("a result"))
    monkeypatch.setattr(Path, "unlink", lambda *_, **__: unreadable())
    assert handed_over(EndedJobs(tmp_path)) == "a result"


@pytest.fixture
def with_slurm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SlurmExecutor, "affinity", classmethod(lambda cls: 2))
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")


@pytest.mark.usefixtures("with_slurm")
def test_settings_reach_the_job_file(tmp_path: Path) -> None:
    settings = ["partition=gpu", "timeout_min=90", "account=lab-7", "mem_gb=16"]
    slots, make = slurm_workers.slurm(
        tmp_path, Placement(threads=2, devices="cuda", backend="slurm", slurm=settings), 100
    )
    assert slots == Slots(("cuda:0",) * slurm_workers.JOBS, 2, elsewhere=True)
    assert isinstance(make, partial)
    files = {
        name: make.keywords[name]._executor._make_submission_file_text("run", "1")
        for name in ("executor", "alone")
    }
    for text in files.values():
        for line in ("partition=gpu", "time=90", "account=lab-7", "gpus-per-node=1", "cpus-per-task=2"):
            assert f"#SBATCH --{line}\n" in text, text
        assert "#SBATCH --mem=16" in text
    assert "#SBATCH --exclusive\n" in files["alone"]
    assert "exclusive" not in files["executor"]


@pytest.mark.usefixtures("with_slurm")
def test_no_more_jobs_than_runs_and_cores_unless_gpus_are_asked_for(tmp_path: Path) -> None:
    assert slurm_workers.slurm(tmp_path, Placement(backend="slurm"), 3)[0].devices == ("cpu",) * 3
    assert (
        slurm_workers.slurm(tmp_path, Placement(backend="slurm", devices="cpu", jobs=5), 30)[0].devices
        == ("cpu",) * 5
    )


@pytest.mark.usefixtures("with_slurm")
@pytest.mark.parametrize(("setting", "words"), [("partitoin=gpu", "partitoin"), ("mem_gb=x", "mem_gb")])
def test_a_setting_that_is_none_is_refused(tmp_path: Path, setting: str, words: str) -> None:
    with pytest.raises(RequestError, match="^--slurm.*" + words) as refused:
        slurm_workers.slurm(tmp_path, Placement(backend="slurm", slurm=[setting]), 1)
    assert "\n" not in str(refused.value)


def test_a_machine_without_slurm_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RequestError, match="a machine that can submit Slurm jobs"):
        slurm_workers.slurm(tmp_path, Placement(backend="slurm"), 1)
