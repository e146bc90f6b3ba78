"""``--data-root``: what is no folder is refused by every command, in one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.cli.main import main

COMMANDS = (
    "datasets",
    "data fetch -d pubmed",
    "data verify",
    "data stats -d cora",
    "data export {out} -d cora -s non-overlapping -k 3",
    "data import {root}",
    "sweep -d cora -m local --dry-run",
    "tune -d cora -m fedavg --dry-run",
)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BENCH_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("BENCH_DATA", raising=False)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("there", [False, True], ids=["absent", "file"])
def test_a_data_root_that_is_no_folder_is_refused(
    command: str, there: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "root"
    if there:
        root.write_text("")
    words = command.format(out=tmp_path / "out.npz", root=root).split()
    with pytest.raises(SystemExit) as ended:
        main([*words, "--data-root", str(root)])
    printed = capsys.readouterr()
    assert ended.value.code == 2
    assert printed.err == f"bench: --data-root expects a folder, got {root}\n"
    assert list(tmp_path.iterdir()) == [root][:there]
