from __future__ import annotations

from pathlib import Path

import pytest

from bench.cli.data import app
from bench.dataset import DATASETS, Dataset
from bench.errors import NoDataError, RequestError
from bench.sources import RawFile

Capture = pytest.CaptureFixture[str]

A = RawFile("set/a.txt", "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb")  # SHA-256 of "a"
B = RawFile("set/b.txt", md5="92eb5ffee6ae2fec3ad71c777531578f")  # MD5 of "b"


def call(arguments: str) -> object:
    return app(arguments, exit_on_error=False, print_error=False, result_action="return_value")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Data set ``toy`` has the files a and b, ``core`` is embedded."""

    class Toy(Dataset):
        name, title, family, files = "toy", "Toy", "graph", (A, B)

    class Core(Dataset):
        name, title, family, embedded = "core", "Core", "images", True

    monkeypatch.setattr(DATASETS, "all", lambda: {"core": Core, "toy": Toy})
    (tmp_path / "root" / "set").mkdir(parents=True)
    return tmp_path / "root"


def test_verify_reports_each_file_at_hand(root: Path, capsys: Capture) -> None:
    (root / "set" / "a.txt").write_text("a")
    assert call(f"verify --data-root {root}") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["-        core: embedded", f"ok       {root}/set/a.txt", "missing  set/b.txt"]


def test_verify_fails_when_one_is_wrong(root: Path, capsys: Capture) -> None:
    (root / "set" / "a.txt").write_text("a")
    (root / "set" / "b.txt").write_text("not b")
    assert call(f"verify -d toy --data-root {root}") == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == f"ok       {root}/set/a.txt"
    assert lines[1].startswith(f"wrong    {root}/set/b.txt")
    assert "expected md5 92eb5ffee6ae2fec3ad71c777531578f" in lines[1]


def test_fetch_prints_the_paths_or_says_what_is_missing(root: Path, capsys: Capture) -> None:
    (root / "set" / "a.txt").write_text("a")
    with pytest.raises(NoDataError, match=r"missing set/b\.txt"):
        call(f"fetch -d toy --data-root {root}")
    (root / "set" / "b.txt").write_text("b")
    call(f"fetch --dataset toy --data-root {root}")
    assert capsys.readouterr().out.split() == [f"{root}/set/a.txt", f"{root}/set/b.txt"]
    call("fetch -d core")
    assert capsys.readouterr().out == "core: embedded, nothing to fetch\n"


@pytest.mark.parametrize("command", ["fetch", "verify"])
def test_an_unknown_data_set_gets_the_nearest_name(command: str) -> None:
    with pytest.raises(RequestError, match="unknown dataset 'pubmet': did you mean 'pubmed'"):
        call(f"{command} -d pubmet")


def test_the_whole_group_is_registered(capsys: Capture) -> None:
    assert {"fetch", "verify", "stats", "classes", "export", "import"} <= set(app)
