"""The schema's version: made new, brought up to date from an old one, and refused where it cannot be."""

import sqlite3
from pathlib import Path

import numpy as np
import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from stored_runs import database, done, spec_of

from bench.engine.result import RunResult
from bench.errors import RequestError
from bench.store import connect, open_store
from bench.store.connect import Database
from bench.store.models import Base


def url_of(path: Path) -> str:
    return f"sqlite:///{path}"


def old_database(path: Path) -> None:
    """An empty database of version 0.2.0, by its SQL."""
    with sqlite3.connect(path) as raw:
        raw.executescript((Path(__file__).parent / "schema_0005.sql").read_text())
    raw.close()


def test_a_database_of_0_2_0_is_brought_up_to_date(tmp_path: Path) -> None:
    path, url = tmp_path / "old.db", url_of(tmp_path / "old.db")
    old_database(path)
    runs = [(spec_of(), done()), (spec_of(seed=1), RunResult("oom")), (spec_of(3), done(3))]
    new_url = database(tmp_path / "new.db", runs)
    with sqlite3.connect(path) as raw:  # the same rows as a new database, less what it has gained
        raw.execute("ATTACH ? AS new", [str(tmp_path / "new.db")])
        for table in ("environments", "partitions", "runs", "client_results", "curves", "artefacts"):
            names = ",".join(row[1] for row in raw.execute(f"PRAGMA main.table_info({table})"))
            raw.execute(f"INSERT INTO main.{table} ({names}) SELECT {names} FROM new.{table}")
    raw.close()
    before = path.read_bytes()
    with pytest.raises(RequestError, match=r"0005.*db upgrade"):
        open_store(url, create=False)
    assert path.read_bytes() == before
    assert connect.upgrade(Database(url)) == "0005"
    with open_store(url, create=False) as old, open_store(new_url, create=False) as new:
        assert old.runs().equals(new.runs())
        assert old.runs()["cell"].tolist() == [spec_of().cell] * 2 + [spec_of(3).cell]  # two seeds of one
        assert old.client_results([1, 3]).equals(new.client_results([1, 3]))
        assert len(old.client_results([1])) == 2 * 3 * 4 * 2  # stages, splits, rules, clients
        curves = (store.curves([1], "test")[1, "trained"] for store in (old, new))
        np.testing.assert_array_equal(*curves)
        assert old.confusions([1]) == {}
        assert old.table("artefacts").equals(new.table("artefacts"))


def test_the_schema_is_that_of_the_models_however_it_was_made(tmp_path: Path) -> None:
    old_database(tmp_path / "old.db")
    connect.upgrade(Database(url_of(tmp_path / "old.db")))
    for name in ("old.db", "new.db"):
        with (
            open_store(url_of(tmp_path / name), create=True) as store,
            store._engine.connect() as connection,
        ):
            assert compare_metadata(MigrationContext.configure(connection), Base.metadata) == []
    chain = ScriptDirectory(str(connect.MIGRATIONS)).walk_revisions()
    assert [revision.revision for revision in chain][::-1] == connect.REVISIONS


@pytest.mark.parametrize("revision", ["0004", "9999"])
def test_a_schema_before_the_chain_or_after_it_is_refused(tmp_path: Path, revision: str) -> None:
    path, url = tmp_path / "other.db", url_of(tmp_path / "other.db")
    old_database(path)
    with sqlite3.connect(path) as raw:
        raw.execute("UPDATE alembic_version SET version_num = ?", (revision,))
    raw.close()
    before = path.read_bytes()
    for attempt in (
        lambda url: connect.upgrade(Database(url)),
        lambda url: open_store(url, create=True),
        lambda url: open_store(url, create=False),
    ):
        with pytest.raises(RequestError, match=f"{revision}.*db upgrade"):
            attempt(url)
    assert path.read_bytes() == before
