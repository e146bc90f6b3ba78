"""When runs of an imported bundle were last made again."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Add ``bundles.checked``; of what was verified before, the day is not known."""
    op.add_column("bundles", sa.Column("checked", sa.DateTime(), nullable=True))
