"""``bench leaderboard`` as a user calls it."""

from __future__ import annotations

import threading
from datetime import date
from pathlib import Path
from urllib.request import urlopen

import pytest
from site_database import build_site

from bench.cli.main import main
from bench.errors import RequestError
from bench.leaderboard import changes, folder
from bench.leaderboard.serve import HOST, server


def call(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of ``bench leaderboard``."""
    with pytest.raises(SystemExit) as ended:
        main(["leaderboard", *arguments])
    printed = capsys.readouterr()
    return int(ended.value.code or 0), printed.out, printed.err


def test_build_writes_the_site_of_a_database(
    database: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "new" / "site"
    code, text, error = call(capsys, "build", "--out", str(out), "--db", database, "--own")
    assert (code, error) == (0, "")
    files = [path for path in out.rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in files)
    assert text == f"15 runs in {len(files)} files, {size / 1e6:.1f} MB: {out / 'index.html'}\n"
    # real studies: Cora's board of FedSheafHN holds the runs
    page = (out / "board" / "fedsheafhn-cora.html").read_text()
    assert '76.50 <span class="std">± 2.65</span>' in page
    assert [path.name for path in out.parent.iterdir()] == ["site"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("build", "--out", "{other}"), "expected an empty folder or an earlier leaderboard"),
        (("build", "--out", "{file}"), "expected a folder"),
        (("build", "--out", "{new}", "--db", "sqlite:////nowhere/bench.db", "--own"), "nowhere"),
        (("build", "--out", "{new}", "--release", "../x"), "--release"),
        (("build", "--ouT", "x"), "--ouT"),
        (("serve", "--out", "{new}"), "no leaderboard is there"),
        (("serve", "--out", "{other}", "--own"), "leave --db and --own away"),
        (("serve", "--port", "70000"), "expected a number from 0 to 65535"),
    ],
)
def test_a_wrong_request_is_one_line_and_writes_nothing(
    arguments: tuple[str, ...], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "thesis.tex").write_text("mine")
    (tmp_path / "file").write_text("mine")
    before = sorted(tmp_path.rglob("*"))
    places = {name: str(tmp_path / name) for name in ("other", "file", "new")}
    code, text, error = call(capsys, *(argument.format(**places) for argument in arguments))
    assert (code, text, error.count("\n")) == (2, "", 1)
    assert said in error
    assert sorted(tmp_path.rglob("*")) == before


def test_an_earlier_site_is_replaced_whole(database: str, site: Path, own_site: Path) -> None:
    (own_site / "board" / "stale.html").write_text("old")
    build_site(database, own_site, today=date(2026, 1, 2))
    assert not (own_site / "board" / "stale.html").exists()
    assert [path.name for path in own_site.parent.iterdir()] == ["site"]
    # the results have not changed, and so there is nothing new
    assert (own_site / changes.LOG).read_bytes() == (site / changes.LOG).read_bytes()


def written(out: Path, text: str, fails: bool = False) -> None:
    """A site of one page; with ``fails`` something goes wrong after it was written."""
    with folder.replacement(out) as made:
        (made / "index.html").write_text(text)
        if fails:
            raise ZeroDivisionError


def test_a_build_that_fails_leaves_the_earlier_site(tmp_path: Path) -> None:
    out = tmp_path / "site"
    written(out, "first")
    with pytest.raises(ZeroDivisionError):
        written(out, "second", fails=True)
    assert (out / "index.html").read_text() == "first"
    assert [path.name for path in tmp_path.iterdir()] == ["site"]


def test_a_site_that_cannot_be_put_in_place_leaves_the_earlier_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "site"
    written(out, "first")
    rename = Path.rename

    def fails(self: Path, target: Path) -> Path:
        if Path(target) == out and (self / "index.html").read_text() == "second":
            raise PermissionError(13, "Permission denied")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", fails)
    with pytest.raises(RequestError, match="cannot write there: Permission denied"):
        written(out, "second")
    assert (out / "index.html").read_text() == "first"


def test_the_server_answers_this_machine_alone(site: Path) -> None:
    with server(site, 0) as serving:
        assert serving.server_address[0] == HOST == "127.0.0.1"
        thread = threading.Thread(target=serving.serve_forever)
        thread.start()
        try:
            with urlopen(f"http://{HOST}:{serving.server_port}/index.html", timeout=10) as answer:
                assert answer.read() == (site / "index.html").read_bytes()
            with pytest.raises(RequestError, match="cannot be used"):
                server(site, serving.server_port)
        finally:
            serving.shutdown()
            thread.join()
