"""Which runs are samples of one cell."""

import hashlib
import json

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"

AT_A_TIME = 1000


def _cell(spec: str) -> str:
    tree = json.loads(spec)
    del tree["seed"]
    return hashlib.sha256(json.dumps(tree, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def upgrade() -> None:
    """Add ``runs.cell`` and fill it from the specs."""
    # Not in a batch: that would replace the table `runs`, and dropping the old one would take every result
    # with it, as the foreign keys to it say. A new column that is never NULL needs a default in SQLite.
    op.add_column("runs", sa.Column("cell", sa.String(), nullable=False, server_default=""))
    runs = sa.table("runs", sa.column("id", sa.Integer), sa.column("spec"), sa.column("cell", sa.String))
    fill = runs.update().where(runs.c.id == sa.bindparam("run")).values(cell=sa.bindparam("digest"))
    connection = op.get_bind()
    last = -1
    while found := connection.execute(
        sa.select(runs.c.id, runs.c.spec).where(runs.c.id > last).order_by(runs.c.id).limit(AT_A_TIME)
    ).all():
        connection.execute(fill, [{"run": run, "digest": _cell(spec)} for run, spec in found])
        last = found[-1].id
    op.create_index("ix_runs_cell", "runs", ["cell"])
