"""Which sweep is doing which run."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Add ``claims``."""
    op.create_table(
        "claims",
        sa.Column("spec_hash", sa.String(), nullable=False),
        sa.Column("owner", sa.String(), nullable=False),
        sa.Column("until", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("spec_hash", name="pk_claims"),
    )
