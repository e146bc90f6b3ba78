"""The schema of version 0.2.0, the first revision; new databases are made from ``bench.store.tables``."""

revision = "0005"
down_revision = None


def upgrade() -> None:
    """Do nothing: every database has these tables."""
