"""The site's folder: names of its files, its replacement as a whole, and serving it."""

from __future__ import annotations

import threading
from pathlib import Path
from urllib.request import urlopen

import pytest

from bench.errors import RequestError
from bench.leaderboard import folder
from bench.leaderboard.folder import HOST, file_name, server

from .site_database import EVIL, build_site


def test_names_of_files_are_harmless_and_differ() -> None:
    assert file_name("fedsheafhn_released") == "fedsheafhn_released"
    for name in ("../../etc/passwd", "A", "a/b", "", "con.", "é", "x" * 300, EVIL, "a\0b", "index.html"):
        made = file_name(name)
        assert made != name
        assert set(made) <= set("abcdefghijklmnopqrstuvwxyz0123456789_-.")
        assert not made.startswith(".")
        assert len(made) < 80
    assert len({file_name(name).lower() for name in ("a", "A", "a/", "a.", " a")}) == 5


def written(out: Path, text: str) -> None:
    """A site of one page."""
    with folder.replacement(out) as made:
        (made / "index.html").write_text(text)


def test_an_earlier_site_is_replaced_whole(database: str, own_site: Path) -> None:
    (own_site / "board" / "stale.html").write_text("old")
    build_site(database, own_site)
    assert not (own_site / "board" / "stale.html").exists()
    assert [path.name for path in own_site.parent.iterdir()] == ["site"]


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
