"""The site's folder, and the frozen copies in it."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.errors import RequestError
from bench.metric_names import ACCURACY, Metric
from bench.replacement import check_folder, replacing_folder

MARK = "bench-leaderboard.json"
"""File that says that a folder is a site of ours and may be replaced."""


RELEASES = "releases"
"""Folder of the frozen copies, which every later site keeps."""

RELEASE = re.compile(r"[0-9A-Za-z][0-9A-Za-z._-]{0,39}")


def is_site(folder: Path) -> bool:
    """Whether a folder is a site that we wrote."""
    return (folder / MARK).is_file()


def _mark(metric: Metric) -> str:
    """What the mark of a site by a metric says."""
    record = {"format": "bench leaderboard", "version": 1}
    return json.dumps(record if metric == ACCURACY else record | {"metric": metric}) + "\n"


def check(out: Path, metric: Metric = ACCURACY) -> None:
    """Raises ``RequestError`` unless ``out`` is absent, an empty folder or a site of ours by the metric: a
    site by another one would not continue its change log.
    """
    check_folder(out)
    if is_site(out) and (out / MARK).read_text(encoding="utf-8") != _mark(metric):
        raise RequestError(
            f"--out {out}: a leaderboard by another metric than {metric} is there: name another folder"
        )
    if out.is_dir() and not is_site(out) and any(out.iterdir()):
        raise RequestError(
            f"--out {out}: expected an empty folder or an earlier leaderboard, found other files: name "
            "another folder"
        )


def check_release(out: Path, name: str) -> None:
    """Raises ``RequestError`` unless ``name`` (empty: none) may name a release that ``out`` does not have."""
    if name and (not RELEASE.fullmatch(name) or not name.strip(".")):
        raise RequestError(f"--release {name}: expected letters, digits, '.', '-' and '_', such as 0.2.0")
    if name and (out / RELEASES / name).exists():
        raise RequestError(f"--release {name}: is frozen already in {out}: name another, or leave it away")


def releases(site: Path) -> list[str]:
    """Names of a site's frozen copies, the newest last."""
    folders = (site / RELEASES).iterdir() if (site / RELEASES).is_dir() else ()
    return sorted((path.name for path in folders), key=_version)


def freeze(site: Path, old_site: Path, release: str) -> None:
    """Give ``site`` the frozen copies of ``old_site`` (which may not exist) and, if named, one of itself but
    for ``index.html``, which has to say so.
    """
    if (old_site / RELEASES).is_dir():
        shutil.copytree(old_site / RELEASES, site / RELEASES, copy_function=_link)
    if release:
        copy, extras = site / RELEASES / release, [RELEASES, "index.html", MARK]
        shutil.copytree(
            site, copy, copy_function=_link, ignore=lambda place, _: extras if Path(place) == site else []
        )


def _version(name: str) -> list[tuple[int, str]]:
    return [(int(part) if part.isdigit() else -1, part) for part in re.split(r"[.\-_]", name)]


def _link(source: str, target: str) -> None:
    """One more name for a file that nobody changes, where the file system has that; else a copy."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


@contextmanager
def replacement(out: Path, metric: Metric = ACCURACY) -> Iterator[Path]:
    """A new folder that takes the place of ``out`` in the end; nothing changes if anything fails.

    Raises:
        RequestError: ``out`` is something else than a site by the metric, or cannot be written.
    """
    check(out, metric)
    with replacing_folder(out) as site:
        (site / MARK).write_text(_mark(metric), encoding="utf-8", newline="\n")
        yield site
