"""What running sweeps are at."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Add what a claim is of, and the table ``sweeps``."""
    op.add_column("claims", sa.Column("run", sa.String(), nullable=False, server_default=""))
    op.add_column("claims", sa.Column("device", sa.String(), nullable=False, server_default=""))
    op.add_column("claims", sa.Column("since", sa.DateTime(), nullable=True))
    op.create_table(
        "sweeps",
        sa.Column("owner", sa.String(), nullable=False),
        sa.Column("started", sa.DateTime(), nullable=False),
        sa.Column("jobs", sa.Integer(), nullable=False),
        sa.Column("total", sa.Integer(), nullable=False),
        sa.Column("counts", sa.String(), nullable=False),
        sa.Column("left", sa.Integer(), nullable=False),
        sa.Column("ends", sa.DateTime(), nullable=True),
        sa.Column("unknown_times", sa.Integer(), nullable=False),
        sa.Column("until", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("owner", name="pk_sweeps"),
    )
