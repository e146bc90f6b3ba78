"""The schema of version 0.2.0, where the chain begins; a new database is made from ``bench.store.tables``."""

revision = "0005"
down_revision = None


def upgrade() -> None:
    """Nothing: every database has these tables."""
