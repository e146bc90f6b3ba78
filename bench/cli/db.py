"""``bench db``: look after the result database."""

from __future__ import annotations

from pathlib import Path

from cyclopts import App

from bench import paths
from bench.cli.options import Database

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
        A new file.
    """
    from bench.store import connect

    database = connect.database(db or paths.default_database())
    database.backup(out)
    print(f"{database.name}: copied to {out}, {out.stat().st_size / 2**20:.1f} MiB")
