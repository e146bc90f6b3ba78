"""``bench db``: look after the result database."""

from __future__ import annotations

from pathlib import Path

from cyclopts import App

from bench import paths
from bench.cli.options import Database
from bench.errors import RequestError

app = App(name="db", help="Check or back up the result database, or bring its schema up to date.")


@app.command
def upgrade(*, db: Database = None) -> None:
    """Bring an existing database to this version's schema."""
    from bench.store import connect, migrate

    url = db or paths.default_database()
    name = connect.database(url).name
    before, after = migrate.upgrade(url)
    change = f"{after}, nothing to do" if before == after else f"{before or 'none'} to {after}"
    print(f"{name}: schema {change}")


@app.command
def check(*, db: Database = None) -> None:
    """Check that a database is whole and of this version's schema."""
    from bench.store import connect, migrate

    url = db or paths.default_database()
    name = connect.database(url).name
    print(f"{name}: schema {migrate.check(url)}, no damage found")


@app.command
def backup(*, out: Path, db: Database = None) -> None:
    """Copy a database into a file, as it is at one moment; sweeps may go on meanwhile.

    Parameters
    ----------
    out
        The file; an older copy is replaced.
    """
    from bench.store import connect, migrate

    place = connect.database(db or paths.default_database())
    place.check(write=False)
    with place.reading() as connection:
        if migrate.current(connection, place) is None:  # which refuses what holds other tables
            raise RequestError(f"database {place.name} is empty: there is nothing to copy")
    place.backup(out)
    print(f"{place.name}: copied to {out}, {out.stat().st_size / 2**20:.1f} MiB")
