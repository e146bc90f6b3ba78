-- A database of version 0.2.0, as SQLite dumps it.
CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL, CONSTRAINT alembic_version_pkc PRIMARY KEY
  (version_num));
INSERT INTO "alembic_version" VALUES('0005');
CREATE TABLE artefacts (run_id INTEGER NOT NULL, name VARCHAR NOT NULL, data BLOB NOT NULL, CONSTRAINT
  pk_artefacts PRIMARY KEY (run_id, name), CONSTRAINT fk_artefacts_run_id_runs FOREIGN KEY(run_id)
  REFERENCES runs (id) ON DELETE CASCADE);
CREATE TABLE bundles (id INTEGER NOT NULL, name VARCHAR NOT NULL, source VARCHAR NOT NULL, hash VARCHAR NOT
  NULL, imported DATETIME NOT NULL, state VARCHAR NOT NULL, sample VARCHAR NOT NULL, checked DATETIME, CONSTRAINT pk_bundles
  PRIMARY KEY (id), CONSTRAINT uq_bundles_hash UNIQUE (hash));
CREATE TABLE claims (spec_hash VARCHAR NOT NULL, owner VARCHAR NOT NULL, until DOUBLE NOT NULL, CONSTRAINT
  pk_claims PRIMARY KEY (spec_hash));
CREATE TABLE client_results (run_id INTEGER NOT NULL, client INTEGER NOT NULL, stage VARCHAR NOT NULL, split
  VARCHAR NOT NULL, rule VARCHAR NOT NULL, metric VARCHAR NOT NULL, value DOUBLE NOT NULL, samples INTEGER
  NOT NULL, CONSTRAINT pk_client_results PRIMARY KEY (run_id, client, stage, split, rule, metric),
  CONSTRAINT fk_client_results_run_id_runs FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE)
  WITHOUT ROWID;
CREATE TABLE curves (run_id INTEGER NOT NULL, stage VARCHAR NOT NULL, split VARCHAR NOT NULL, rows INTEGER
  NOT NULL, clients INTEGER NOT NULL, data BLOB NOT NULL, CONSTRAINT pk_curves PRIMARY KEY (run_id, stage,
  split), CONSTRAINT fk_curves_run_id_runs FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE);
CREATE TABLE environments (id INTEGER NOT NULL, hash VARCHAR NOT NULL, description VARCHAR NOT NULL,
  CONSTRAINT pk_environments PRIMARY KEY (id), CONSTRAINT uq_environments_hash UNIQUE (hash));
CREATE TABLE partitions (hash VARCHAR NOT NULL, dataset VARCHAR NOT NULL, scenario VARCHAR NOT NULL, clients
  INTEGER NOT NULL, provenance VARCHAR NOT NULL, CONSTRAINT pk_partitions PRIMARY KEY (hash));
CREATE TABLE runs (id INTEGER NOT NULL, spec_hash VARCHAR NOT NULL, spec VARCHAR NOT NULL, dataset VARCHAR
  NOT NULL, scenario VARCHAR NOT NULL, clients INTEGER NOT NULL, method VARCHAR NOT NULL, seed INTEGER NOT
  NULL, rounds INTEGER NOT NULL, state VARCHAR NOT NULL, reason VARCHAR NOT NULL, traceback VARCHAR NOT
  NULL, partition_hash VARCHAR NOT NULL, environment_id INTEGER, started DATETIME NOT NULL, seconds_total
  DOUBLE NOT NULL, seconds_client DOUBLE NOT NULL, seconds_server DOUBLE NOT NULL, seconds_evaluation DOUBLE
  NOT NULL, peak_memory INTEGER NOT NULL, bytes_up INTEGER NOT NULL, bytes_down INTEGER NOT NULL, device
  VARCHAR NOT NULL, code_version VARCHAR NOT NULL, source_hash VARCHAR NOT NULL, method_numerics INTEGER NOT
  NULL, engine_numerics INTEGER NOT NULL, bundle_id INTEGER CONSTRAINT fk_runs_bundle_id_bundles REFERENCES
  bundles (id), cell VARCHAR NOT NULL DEFAULT '', CONSTRAINT pk_runs PRIMARY KEY (id), CONSTRAINT uq_runs_spec_hash UNIQUE (spec_hash),
  CONSTRAINT fk_runs_environment_id_environments FOREIGN KEY(environment_id) REFERENCES environments (id));
CREATE INDEX ix_runs_cell ON runs (cell);
CREATE INDEX ix_runs_dataset ON runs (dataset);
CREATE INDEX ix_runs_method ON runs (method);
CREATE INDEX ix_runs_state ON runs (state);
CREATE INDEX ix_runs_partition_hash ON runs (partition_hash);
