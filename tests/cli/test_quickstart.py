"""``bench quickstart``: nothing is run for a report that could not be written."""

from __future__ import annotations

from pathlib import Path

from .conftest import Bench


def test_a_folder_of_other_files_is_refused_before_anything_is_run(
    bench: Bench, home: Path, tmp_path: Path
) -> None:
    out = tmp_path / "mine"
    out.mkdir()
    (out / "notes.txt").write_text("kept")
    assert bench(f"quickstart --out {out}").refused
    assert [path.name for path in out.iterdir()] == ["notes.txt"]
    assert not home.exists()
