"""Imported bundles, and which runs came with them."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Add ``bundles`` and ``runs.bundle_id``."""
    op.create_table(
        "bundles",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("source", sa.String(), nullable=False),
        sa.Column("hash", sa.String(), nullable=False),
        sa.Column("imported", sa.DateTime(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("sample", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_bundles"),
        sa.UniqueConstraint("hash", name="uq_bundles_hash"),
    )
    # Not in a batch: that would replace the table `runs`, and dropping the old one would take every
    # result with it, as the foreign keys to it say.
    op.execute(
        "ALTER TABLE runs ADD COLUMN bundle_id INTEGER "
        "CONSTRAINT fk_runs_bundle_id_bundles REFERENCES bundles (id)"
    )
