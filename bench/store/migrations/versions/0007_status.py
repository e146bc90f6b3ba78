"""Add test items by true and predicted class, and what a claim is for."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0005"


def upgrade() -> None:
    """Add the table ``confusions``, and a claim's run, device and start."""
    op.create_table(
        "confusions",
        sa.Column("run_id", sa.Integer(), nullable=False),
        sa.Column("stage", sa.String(), nullable=False),
        sa.Column("rule", sa.String(), nullable=False),
        sa.Column("clients", sa.Integer(), nullable=False),
        sa.Column("classes", sa.Integer(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["run_id"], ["runs.id"], name="fk_confusions_run_id_runs", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("run_id", "stage", "rule", name="pk_confusions"),
    )
    op.add_column("claims", sa.Column("run", sa.String(), nullable=False, server_default=""))
    op.add_column("claims", sa.Column("device", sa.String(), nullable=False, server_default=""))
    op.add_column("claims", sa.Column("since", sa.DateTime(), nullable=True))
