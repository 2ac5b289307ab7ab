CREATE TABLE dl_tables (
  table_id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  location TEXT NOT NULL UNIQUE,
  created INTEGER NOT NULL,
  current_version INTEGER NOT NULL DEFAULT -1,
  last_timestamp INTEGER NOT NULL DEFAULT -1,
  metadata_version INTEGER NOT NULL DEFAULT -1,
  protocol_version INTEGER NOT NULL DEFAULT -1,
  -- What is committed and not yet published are the versions after `published_version`.
  publish INTEGER NOT NULL,
  published_version INTEGER NOT NULL DEFAULT -1
) STRICT;

-- `head` is what the commit's file begins with, byte for byte: every line but those of files.
CREATE TABLE dl_table_versions (
  table_id INTEGER NOT NULL,
  version INTEGER NOT NULL,
  timestamp INTEGER NOT NULL,
  txn_id TEXT NOT NULL,
  blind_append INTEGER NOT NULL,
  head TEXT NOT NULL,
  PRIMARY KEY (table_id, version)
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX dl_table_versions_txn_id ON dl_table_versions (txn_id, table_id);

-- A file is live from `added_version` until before `removed_version`, which is the largest integer while it lives.
CREATE TABLE dl_add_files (
  table_id INTEGER NOT NULL,
  added_version INTEGER NOT NULL,
  removed_version INTEGER NOT NULL,
  ordinal INTEGER NOT NULL,
  path_hash INTEGER NOT NULL,
  size INTEGER NOT NULL,
  modification_time INTEGER NOT NULL,
  data_change INTEGER NOT NULL,
  path TEXT NOT NULL,
  partition_values TEXT NOT NULL,
  stats TEXT,
  tags TEXT,
  deletion_vector TEXT,
  extra TEXT
) STRICT;
CREATE INDEX dl_add_files_added ON dl_add_files (table_id, added_version);
CREATE UNIQUE INDEX dl_add_files_live ON dl_add_files (table_id, path_hash)
  WHERE removed_version = 9223372036854775807;
CREATE INDEX dl_add_files_removed ON dl_add_files (table_id, removed_version)
  WHERE removed_version < 9223372036854775807;

CREATE TABLE dl_remove_files (
  table_id INTEGER NOT NULL,
  version INTEGER NOT NULL,
  ordinal INTEGER NOT NULL,
  deletion_timestamp INTEGER NOT NULL,
  path TEXT NOT NULL,
  line TEXT NOT NULL,
  PRIMARY KEY (table_id, version, ordinal)
) STRICT, WITHOUT ROWID;

CREATE TABLE dl_metadata_updates (
  table_id INTEGER NOT NULL,
  version INTEGER NOT NULL,
  line TEXT NOT NULL,
  PRIMARY KEY (table_id, version)
) STRICT, WITHOUT ROWID;

CREATE TABLE dl_protocol_updates (
  table_id INTEGER NOT NULL,
  version INTEGER NOT NULL,
  line TEXT NOT NULL,
  PRIMARY KEY (table_id, version)
) STRICT, WITHOUT ROWID;

CREATE TABLE dl_txn_actions (
  table_id INTEGER NOT NULL,
  app_hash INTEGER NOT NULL,
  version INTEGER NOT NULL,
  line TEXT NOT NULL,
  PRIMARY KEY (table_id, app_hash, version)
) STRICT, WITHOUT ROWID;

CREATE TABLE dl_domain_metadata (
  table_id INTEGER NOT NULL,
  domain_hash INTEGER NOT NULL,
  version INTEGER NOT NULL,
  line TEXT NOT NULL,
  PRIMARY KEY (table_id, domain_hash, version)
) STRICT, WITHOUT ROWID;

-- What a transaction notes beside its tables: how far a pipeline has read its sources.
CREATE TABLE dl_notes (
  name TEXT NOT NULL PRIMARY KEY,
  version INTEGER NOT NULL,
  txn_id TEXT NOT NULL,
  note TEXT NOT NULL
) STRICT, WITHOUT ROWID;
