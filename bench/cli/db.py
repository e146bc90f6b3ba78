"""``bench db``: look after the result database."""

from __future__ import annotations

from pathlib import Path

from cyclopts import App

from bench import paths
from bench.cli import options

app = App(name="db", help="Check or back up the result database, or bring its schema up to date.")


@app.command
def upgrade(*, db: options.Database = None) -> None:
    """Bring an existing database to this version's schema."""
    from bench.store import connect, migrate

    database = connect.Database(db or paths.default_database())
    before = migrate.upgrade(database)
    change = f"{before}, nothing to do" if before == migrate.HEAD else f"{before} to {migrate.HEAD}"
    print(f"{database.name}: schema {change}")


@app.command
def check(*, db: options.Database = None) -> None:
    """Check that a database is whole and of this version's schema."""
    from bench.store import connect, migrate

    database = connect.Database(db or paths.default_database())
    migrate.check(database)
    print(f"{database.name}: schema {migrate.HEAD}, no damage found")


@app.command
def backup(*, out: Path, db: options.Database = None) -> None:
    """Copy a database into a new file, as it is at one moment; sweeps may go on meanwhile."""
    from bench.store.connect import Database

    database = Database(db or paths.default_database())
    database.backup(out)
    print(f"{database.name}: copied to {out}, {out.stat().st_size / 2**20:.1f} MiB")
