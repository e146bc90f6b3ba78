"""Files and folders that take the place of older ones."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.errors import RequestError
from bench.paths import check_replaceable, replacing_file, replacing_folder, unfinished_files


def _write_half(place: Path) -> None:
    """Write something, and fail."""
    place.write_text("ne")
    raise ZeroDivisionError


def test_a_file_is_the_old_one_until_the_new_one_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    path.write_text("old")
    with replacing_file(path) as temporary:
        temporary.write_text("ne")
        assert path.read_text() == "old"
        temporary.write_text("new")
    with pytest.raises(ZeroDivisionError), replacing_file(path) as temporary:
        _write_half(temporary)
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == {"run.json": "new"}


def test_what_a_killed_process_has_left_is_found_beside_its_file_alone(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    with pytest.raises(FileNotFoundError), replacing_file(path) as temporary:  # it never was written
        leftover = temporary
    for name in (leftover.name, "run.json", "another.4711.tmp"):
        (tmp_path / name).touch()
    assert [file.name for file in unfinished_files(path)] == [leftover.name]


def test_a_folder_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    out = tmp_path / "out"
    for text in ("old", "new"):
        with replacing_folder(out) as folder:
            (folder / text).write_text(text)
    assert [file.name for file in out.iterdir()] == ["new"]
    with pytest.raises(ZeroDivisionError), replacing_folder(out) as folder:
        _write_half(folder / "newer")
    assert [file.name for file in tmp_path.rglob("*")] == ["out", "new"]


def test_a_folder_that_cannot_be_made_is_refused_before_anybody_works_for_it(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    check_replaceable(tmp_path / "several" / "new" / "folders")
    for place in (file, file / "folder", file / "deep" / "folder"):
        with pytest.raises(RequestError, match=str(place)):
            check_replaceable(place)
    assert list(tmp_path.iterdir()) == [file]


def test_the_folder_that_somebody_is_in_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "outer" / "inner"
    place.mkdir(parents=True)
    monkeypatch.chdir(place)
    for out in (Path(), place, Path(".."), tmp_path, Path("/")):
        with pytest.raises(RequestError):
            check_replaceable(out)
        with pytest.raises(RequestError), replacing_folder(out):
            pass
    assert Path.cwd().samefile(place)
    for out in (Path("new"), Path("..", "new"), tmp_path / "new"):
        with replacing_folder(out) as folder:
            (folder / "text").touch()
        assert (out / "text").exists()
