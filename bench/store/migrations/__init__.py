"""Alembic migrations of the result database, run by ``bench.store.migrate``."""
