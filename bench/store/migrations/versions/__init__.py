"""One file a schema version; the newest one's name is ``bench.store.migrate.HEAD``."""
