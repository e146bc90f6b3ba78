"""One file a schema version, by whose names ``bench.store.migrate`` knows them."""
