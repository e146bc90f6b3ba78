"""The Python of docs/results-format.md runs, and its frame holds what a report says."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from unittest.mock import MagicMock

import pytest
from stored_runs import MemoryStore, database, done, spec_of

from bench.engine.result import RunResult
from bench.frames.whole_frames import whole_frame

PAGE = Path(__file__).parents[2] / "docs" / "results-format.md"
CODE = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


def test_the_runs_for_a_tracker(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    database(home / "bench.db", [(spec_of(), done()), (spec_of(seed=1), RunResult("failed"))])
    mlflow = MagicMock()
    monkeypatch.setitem(sys.modules, "mlflow", mlflow)
    exec(CODE[0], {})
    mlflow.start_run.assert_called_once_with(run_name="cora/non-overlapping/2/local/0")
    assert mlflow.log_params.call_args.args[0]["protocol.rounds"] == 3
    points = [(call.kwargs["step"], call.args[1]) for call in mlflow.log_metric.call_args_list]
    assert points == [(row + 1, pytest.approx(100 * (row / 10 + row / 11) / 2)) for row in range(3)]


def test_the_table_of_runs_has_every_column() -> None:
    store = MemoryStore()
    store.add("local", 0, [70, 80])
    (rows,) = re.findall(r"The columns of `runs`:\n\n(.*?)\n\n", PAGE.read_text(), re.DOTALL)
    named = [name for row in rows.splitlines() for name in re.findall(r"`(\w+)`", row.split("|")[1])]
    assert sorted(named) == sorted({*whole_frame("runs", store), "origin"})
