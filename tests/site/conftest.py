"""The site of the small database, built once."""

from __future__ import annotations

from pathlib import Path

import pytest
from site_database import build_renamed, build_site, fill
from undrawn import undrawn as undrawn


@pytest.fixture(scope="session")
def database(tmp_path_factory: pytest.TempPathFactory) -> str:
    """URL of the small database."""
    url = f"sqlite:///{tmp_path_factory.mktemp('database') / 'bench.db'}"
    fill(url)
    return url


@pytest.fixture(scope="session")
def site(database: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site's folder."""
    out = tmp_path_factory.mktemp("site") / "site"
    build_site(database, out)
    return out


@pytest.fixture(scope="session")
def renamed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a site on which a method has a name of the study's own."""
    return build_renamed(tmp_path_factory.mktemp("renamed"))
