"""The schema where the chain begins; a new database is made from ``bench.store.models`` at once."""

revision = "0003"
down_revision = None


def upgrade() -> None:
    """Nothing: every database has these tables."""
