"""What happens in a worker process: one run, and every way it can end as a state."""

from __future__ import annotations

import os
import signal
import threading
import traceback as traces
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing import connection, parent_process
from pathlib import Path
from typing import TYPE_CHECKING

from bench.errors import NoDataError, NotApplicableError

if TYPE_CHECKING:
    from bench.engine.result import RunResult, State

THREAD_VARIABLES = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
CPU_OUT_OF_MEMORY = "DefaultCPUAllocator: can't allocate memory"  # torch raises a plain RuntimeError


@contextmanager
def thread_variables(threads: int) -> Iterator[None]:
    """Processes started meanwhile load their numerical libraries with so many threads."""
    before = {name: os.environ.get(name) for name in THREAD_VARIABLES}
    os.environ.update(dict.fromkeys(THREAD_VARIABLES, str(threads)))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def prepare() -> None:
    """Set up a worker to end with the sweep and by nothing else.

    An interrupt at the terminal reaches every process of the sweep; the parent alone handles it.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=_end_with, args=(parent.sentinel,), daemon=True).start()


def _end_with(sentinel: int) -> None:
    connection.wait([sentinel])
    os._exit(1)


def execute(spec_json: str, data_roots: tuple[str, ...], device: str, threads: int) -> RunResult:
    """Execute a spec (canonical JSON) and return its outcome; no exception leaves."""
    import torch

    from bench.engine.result import RunResult
    from bench.engine.run import run
    from bench.federation.build import build
    from bench.spec import RunSpec

    torch.set_num_threads(threads)
    try:
        spec = RunSpec.model_validate_json(spec_json)
        federation = build(*spec.federation_key, roots=tuple(Path(root) for root in data_roots))
        return run(spec, federation, device)
    except NoDataError as error:
        return RunResult("no_data", str(error), device=device)
    except NotApplicableError as error:
        return RunResult("not_applicable", str(error), device=device)
    except (torch.OutOfMemoryError, MemoryError) as error:
        return RunResult("oom", _first_line(error), traces.format_exc(), device=device)
    except Exception as error:
        state: State = "oom" if CPU_OUT_OF_MEMORY in str(error) else "failed"
        return RunResult(state, _first_line(error), traces.format_exc(), device=device)


def _first_line(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0]}" if text else type(error).__name__
