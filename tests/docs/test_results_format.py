"""The Python of docs/results-format.md runs, and its frame holds what a report says."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[2] / "docs" / "results-format.md"


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
