"""Where things are kept, by the environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.errors import RequestError
from bench.paths import data_roots, default_database, expanded, home


def test_a_tilde_is_a_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("BENCH_HOME", raising=False)
    assert home() == tmp_path / ".bench"
    monkeypatch.setenv("BENCH_HOME", "~/results")
    monkeypatch.setenv("BENCH_DATA", "~/data")
    assert data_roots() == (tmp_path / "data", tmp_path / "results" / "data")
    assert default_database() == f"sqlite:///{tmp_path / 'results' / 'bench.db'}"


@pytest.mark.parametrize("variable", ["BENCH_HOME", "BENCH_DATA"])
def test_a_home_folder_that_there_is_not_is_refused_by_the_name_of_its_variable(
    variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "~no-such-user/x")
    with pytest.raises(RequestError, match=f"{variable} ~no-such-user/x"):
        data_roots()
    with pytest.raises(RequestError, match="--db ~no-such-user"):
        expanded("~no-such-user", "--db")


@pytest.mark.parametrize("below", ["", "deep/home"])
def test_a_home_that_cannot_be_a_folder_is_refused(
    below: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, link = tmp_path / "file", tmp_path / "link"
    file.touch()
    link.symlink_to("nowhere")
    for place in (file, link):
        monkeypatch.setenv("BENCH_HOME", str(place / below))
        for ask in (home, default_database, data_roots):
            with pytest.raises(RequestError, match=f"BENCH_HOME .*{place} is no folder"):
                ask()
    monkeypatch.setenv("BENCH_HOME", str(tmp_path / "new" / "home"))
    assert home() == tmp_path / "new" / "home"
    assert not (tmp_path / "new").exists()
