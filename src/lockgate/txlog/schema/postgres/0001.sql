CREATE TABLE dl_tables (
  table_id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name text COLLATE "C" NOT NULL UNIQUE,
  location text COLLATE "C" NOT NULL,
  created bigint NOT NULL,
  current_version bigint NOT NULL DEFAULT -1,
  last_timestamp bigint NOT NULL DEFAULT -1,
  metadata_version bigint NOT NULL DEFAULT -1,
  protocol_version bigint NOT NULL DEFAULT -1,
  -- What is committed and not yet published are the versions after `published_version`.
  publish boolean NOT NULL,
  published_version bigint NOT NULL DEFAULT -1
);

-- A location may be longer than a key of an index.
CREATE UNIQUE INDEX dl_tables_location ON dl_tables (md5(location));

-- `head` is what the commit's file begins with, byte for byte: every line but those of files.
CREATE TABLE dl_table_versions (
  table_id integer NOT NULL,
  version bigint NOT NULL,
  timestamp bigint NOT NULL,
  txn_id text COLLATE "C" NOT NULL,
  blind_append boolean NOT NULL,
  head text NOT NULL,
  PRIMARY KEY (table_id, version)
);
CREATE UNIQUE INDEX dl_table_versions_txn_id ON dl_table_versions (txn_id, table_id);

-- A file is live from `added_version` until before `removed_version`, which is the largest integer while it lives.
CREATE TABLE dl_add_files (
  table_id integer NOT NULL,
  added_version bigint NOT NULL,
  removed_version bigint NOT NULL,
  ordinal integer NOT NULL,
  path_hash bigint NOT NULL,
  size bigint NOT NULL,
  modification_time bigint NOT NULL,
  data_change boolean NOT NULL,
  path text COLLATE "C" NOT NULL,
  partition_values text NOT NULL,
  stats text,
  tags text,
  deletion_vector text,
  extra text
);
CREATE INDEX dl_add_files_added ON dl_add_files (table_id, added_version);
CREATE UNIQUE INDEX dl_add_files_live ON dl_add_files (table_id, path_hash)
  WHERE removed_version = 9223372036854775807;
CREATE INDEX dl_add_files_removed ON dl_add_files (table_id, removed_version)
  WHERE removed_version < 9223372036854775807;

CREATE TABLE dl_remove_files (
  table_id integer NOT NULL,
  version bigint NOT NULL,
  ordinal integer NOT NULL,
  deletion_timestamp bigint NOT NULL,
  path text COLLATE "C" NOT NULL,
  line text NOT NULL,
  PRIMARY KEY (table_id, version, ordinal)
);

CREATE TABLE dl_metadata_updates (
  table_id integer NOT NULL,
  version bigint NOT NULL,
  line text NOT NULL,
  PRIMARY KEY (table_id, version)
);

CREATE TABLE dl_protocol_updates (
  table_id integer NOT NULL,
  version bigint NOT NULL,
  line text NOT NULL,
  PRIMARY KEY (table_id, version)
);

CREATE TABLE dl_txn_actions (
  table_id integer NOT NULL,
  app_hash bigint NOT NULL,
  version bigint NOT NULL,
  line text NOT NULL,
  PRIMARY KEY (table_id, app_hash, version)
);

CREATE TABLE dl_domain_metadata (
  table_id integer NOT NULL,
  domain_hash bigint NOT NULL,
  version bigint NOT NULL,
  line text NOT NULL,
  PRIMARY KEY (table_id, domain_hash, version)
);

-- What a transaction notes beside its tables: how far a pipeline has read its sources.
CREATE TABLE dl_notes (
  name text COLLATE "C" NOT NULL PRIMARY KEY,
  version bigint NOT NULL,
  txn_id text NOT NULL,
  note text NOT NULL
);
