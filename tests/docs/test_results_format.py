"""The Python of docs/results-format.md runs, and its frame holds what a report says."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from stored_runs import MemoryStore

from bench.studies.frame_rows import whole_frame

PAGE = Path(__file__).parents[2] / "docs" / "results-format.md"


@pytest.mark.slow
def test_the_frame_of_shipped_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("BENCH_HOME", str(tmp_path))
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)
    frame = names["frame"]
    assert set(frame["method"]) == {"local", "fedavg"}
    run = frame[(frame["method"] == "local") & (frame["clients"] == 10)].groupby("id")
    assert (run.size() == 10).all()
    spec = json.loads(frame["spec"].iloc[0])
    assert spec["protocol"]["rounds"] == frame["rounds"].iloc[0]


def test_the_table_of_runs_has_every_column() -> None:
    store = MemoryStore()
    store.add("local", 0, [70, 80])
    (rows,) = re.findall(r"The columns of `runs`:\n\n(.*?)\n\n", PAGE.read_text(), re.DOTALL)
    named = [name for row in rows.splitlines() for name in re.findall(r"`(\w+)`", row.split("|")[1])]
    assert sorted(named) == sorted({*whole_frame("runs", store), "origin"})
