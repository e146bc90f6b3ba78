"""The first schema."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None

LARGE = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def _run_id() -> sa.Column[int]:
    return sa.Column("run_id", sa.Integer(), nullable=False)


def _of_run(table: str) -> sa.ForeignKeyConstraint:
    return sa.ForeignKeyConstraint(
        ["run_id"], ["runs.id"], name=f"fk_{table}_run_id_runs", ondelete="CASCADE"
    )


def upgrade() -> None:
    """Make every table."""
    op.create_table(
        "environments",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("hash", sa.String(), nullable=False),
        sa.Column("description", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_environments"),
        sa.UniqueConstraint("hash", name="uq_environments_hash"),
    )
    op.create_table(
        "partitions",
        sa.Column("hash", sa.String(), nullable=False),
        sa.Column("dataset", sa.String(), nullable=False),
        sa.Column("scenario", sa.String(), nullable=False),
        sa.Column("clients", sa.Integer(), nullable=False),
        sa.Column("provenance", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("hash", name="pk_partitions"),
    )
    op.create_table(
        "runs",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("spec_hash", sa.String(), nullable=False),
        sa.Column("spec", sa.String(), nullable=False),
        sa.Column("dataset", sa.String(), nullable=False),
        sa.Column("scenario", sa.String(), nullable=False),
        sa.Column("clients", sa.Integer(), nullable=False),
        sa.Column("method", sa.String(), nullable=False),
        sa.Column("seed", sa.Integer(), nullable=False),
        sa.Column("rounds", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.Column("traceback", sa.String(), nullable=False),
        sa.Column("partition_hash", sa.String(), nullable=False),
        sa.Column("environment_id", sa.Integer(), nullable=True),
        sa.Column("started", sa.DateTime(), nullable=False),
        sa.Column("seconds_total", sa.Double(), nullable=False),
        sa.Column("seconds_client", sa.Double(), nullable=False),
        sa.Column("seconds_server", sa.Double(), nullable=False),
        sa.Column("seconds_evaluation", sa.Double(), nullable=False),
        sa.Column("peak_memory", LARGE, nullable=False),
        sa.Column("bytes_up", LARGE, nullable=False),
        sa.Column("bytes_down", LARGE, nullable=False),
        sa.Column("device", sa.String(), nullable=False),
        sa.Column("code_version", sa.String(), nullable=False),
        sa.Column("source_hash", sa.String(), nullable=False),
        sa.Column("method_numerics", sa.Integer(), nullable=False),
        sa.Column("engine_numerics", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_runs"),
        sa.UniqueConstraint("spec_hash", name="uq_runs_spec_hash"),
        sa.ForeignKeyConstraint(
            ["environment_id"], ["environments.id"], name="fk_runs_environment_id_environments"
        ),
    )
    for column in ("dataset", "method", "state", "partition_hash"):
        op.create_index(f"ix_runs_{column}", "runs", [column])
    op.create_table(
        "client_results",
        _run_id(),
        sa.Column("client", sa.Integer(), nullable=False),
        sa.Column("stage", sa.String(), nullable=False),
        sa.Column("split", sa.String(), nullable=False),
        sa.Column("rule", sa.String(), nullable=False),
        sa.Column("metric", sa.String(), nullable=False),
        sa.Column("value", sa.Double(), nullable=False),
        sa.Column("samples", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint(
            "run_id", "client", "stage", "split", "rule", "metric", name="pk_client_results"
        ),
        _of_run("client_results"),
        sqlite_with_rowid=False,
    )
    op.create_table(
        "curves",
        _run_id(),
        sa.Column("stage", sa.String(), nullable=False),
        sa.Column("split", sa.String(), nullable=False),
        sa.Column("rows", sa.Integer(), nullable=False),
        sa.Column("clients", sa.Integer(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "stage", "split", name="pk_curves"),
        _of_run("curves"),
    )
    op.create_table(
        "artefacts",
        _run_id(),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("run_id", "name", name="pk_artefacts"),
        _of_run("artefacts"),
    )
