"""Where a system lacks SIGKILL, fork and the module ``resource``, as Windows does, one can run and report."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ELSEWHERE = """
import multiprocessing.popen_fork
import os
import signal
import sys

import psutil

multiprocessing.popen_fork.Popen.kill = multiprocessing.popen_fork.Popen.terminate
sys.modules["resource"] = None
del signal.SIGKILL, os.fork
"""
"""Runs at the start of every process, after what Python and psutil themselves need of it on this system."""


REQUEST = ["-d", "cora", "-k", "3", "-m", "majority", "-m", "fedavg", "--set", "protocol.rounds=1"]


@pytest.mark.slow
def test_a_sweep_and_a_report_without_signals_and_fork(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(ELSEWHERE)
    environment = {
        **os.environ,
        "BENCH_HOME": str(tmp_path / "home"),
        "OMP_NUM_THREADS": "1",
        "PYTHONPATH": str(tmp_path),
    }

    def bench(*words: str) -> str:
        code = "import signal; assert not hasattr(signal, 'SIGKILL'); from bench.cli.main import main; main()"
        command = [sys.executable, "-c", code, *words]
        return subprocess.run(
            command, cwd=tmp_path, env=environment, check=True, capture_output=True, text=True
        ).stdout

    bench("sweep", *REQUEST)
    runs = json.loads(bench("runs", "list", "--json"))
    assert {run["method"]: run["state"] for run in runs} == {"majority": "done", "fedavg": "done"}
    bench("report", "--own", "--out", "report")
    assert (tmp_path / "report" / "index.html").exists()
