"""The log's statements, written once for both databases. `?` stands for a value."""

from __future__ import annotations

from functools import cache

_TABLE = (
    "SELECT table_id, name, location, current_version, last_timestamp, metadata_version, protocol_version, publish,"
    " published_version FROM dl_tables"
)
TABLES = f"{_TABLE} ORDER BY name"
TABLE_BY_NAME = f"{_TABLE} WHERE name = ?"
TABLE_BY_ID = f"{_TABLE} WHERE table_id = ?"
TABLE_BY_LOCATION = f"{_TABLE} WHERE location = ?"
CREATE_TABLE = (
    "INSERT INTO dl_tables (name, location, created, publish) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING"
    " RETURNING table_id"
)
UPDATE_TABLE = (
    "UPDATE dl_tables SET current_version = ?, last_timestamp = ?, metadata_version = ?, protocol_version = ?"
    " WHERE table_id = ?"
)
# A slower publisher must not move it back, and nobody publishes what is not committed.
PUBLISHED = "UPDATE dl_tables SET published_version = ? WHERE table_id = ? AND published_version < ? RETURNING table_id"

INSERT_VERSION = (
    "INSERT INTO dl_table_versions (table_id, version, timestamp, txn_id, blind_append, head) VALUES (?, ?, ?, ?, ?, ?)"
)
VERSION = (
    "SELECT version, timestamp, txn_id, blind_append, head FROM dl_table_versions WHERE table_id = ? AND version = ?"
)
VERSIONS = (
    "SELECT version, timestamp, txn_id, blind_append, head FROM dl_table_versions"
    " WHERE table_id = ? AND version BETWEEN ? AND ? ORDER BY version"
)
# Timestamps grow with versions, so the newest version that is not younger is the last one.
VERSION_AT_TIME = "SELECT max(version) FROM dl_table_versions WHERE table_id = ? AND timestamp <= ?"
DONE = "SELECT txn_id, table_id, version FROM dl_table_versions WHERE txn_id = ?"
DONE_SQLITE = DONE.replace("= ?", "IN (SELECT value FROM json_each(?))")
OLDEST = "SELECT min(version), min(timestamp) FROM dl_table_versions WHERE table_id = ?"

INSERT_REMOVE = (
    "INSERT INTO dl_remove_files (table_id, version, ordinal, deletion_timestamp, path, line) VALUES (?, ?, ?, ?, ?, ?)"
)
REMOVES = (
    "SELECT version, line FROM dl_remove_files WHERE table_id = ? AND version BETWEEN ? AND ? ORDER BY version, ordinal"
)
REMOVED_PATHS = "SELECT version, path FROM dl_remove_files WHERE table_id = ? AND version > ? ORDER BY version"
REMOVED_BY = "SELECT max(version) FROM dl_remove_files WHERE table_id = ? AND path = ? AND version > ?"
TOMBSTONES = (
    "SELECT version, path, line FROM dl_remove_files WHERE table_id = ? AND version <= ? AND deletion_timestamp > ?"
    " ORDER BY version, ordinal"
)
END_FILE = (
    "UPDATE dl_add_files SET removed_version = ? WHERE table_id = ? AND path_hash = ?"
    " AND removed_version = 9223372036854775807"
)
ADDS = (
    "SELECT added_version, path, partition_values, size, modification_time, data_change, stats, tags, deletion_vector,"
    " extra FROM dl_add_files WHERE table_id = ? AND added_version BETWEEN ? AND ? ORDER BY added_version, ordinal"
)
# What commits that are no blind appends added: it may hold a key that somebody looked for.
ADDED_BY_READERS = (
    "SELECT a.added_version, a.path, a.partition_values FROM dl_add_files a JOIN dl_table_versions v"
    " ON v.table_id = a.table_id AND v.version = a.added_version"
    " WHERE a.table_id = ? AND a.added_version > ? AND a.data_change AND NOT v.blind_append ORDER BY a.added_version"
)
ADDED = (
    "SELECT added_version, path, partition_values FROM dl_add_files WHERE table_id = ? AND added_version > ?"
    " AND data_change ORDER BY added_version"
)

INSERT_METADATA = "INSERT INTO dl_metadata_updates (table_id, version, line) VALUES (?, ?, ?)"
METADATA_AT = (
    "SELECT version, line FROM dl_metadata_updates WHERE table_id = ? AND version <= ? ORDER BY version DESC LIMIT 1"
)
INSERT_PROTOCOL = "INSERT INTO dl_protocol_updates (table_id, version, line) VALUES (?, ?, ?)"
PROTOCOL_AT = (
    "SELECT version, line FROM dl_protocol_updates WHERE table_id = ? AND version <= ? ORDER BY version DESC LIMIT 1"
)
INSERT_TXN = "INSERT INTO dl_txn_actions (table_id, app_hash, version, line) VALUES (?, ?, ?, ?)"
TXNS_OF = "SELECT version, line FROM dl_txn_actions WHERE table_id = ? AND app_hash = ? ORDER BY version DESC"
TXNS_AT = "SELECT version, line FROM dl_txn_actions WHERE table_id = ? AND version <= ? ORDER BY version"
INSERT_DOMAIN = "INSERT INTO dl_domain_metadata (table_id, domain_hash, version, line) VALUES (?, ?, ?, ?)"
DOMAINS_AT = "SELECT version, line FROM dl_domain_metadata WHERE table_id = ? AND version <= ? ORDER BY version"
DOMAINS_OF = "SELECT version, line FROM dl_domain_metadata WHERE table_id = ? AND domain_hash = ? ORDER BY version DESC"

# Two index ranges: what lives now, and what died after the version.
FILES_AT = (
    "SELECT {columns} FROM dl_add_files WHERE table_id = ? AND removed_version = 9223372036854775807"
    " AND added_version <= ? UNION ALL SELECT {columns} FROM dl_add_files WHERE table_id = ? AND removed_version > ?"
    " AND removed_version < 9223372036854775807 AND added_version <= ?"
)
FILE_COLUMNS = (
    "path", "partition_values", "size", "modification_time", "data_change", "stats", "tags", "deletion_vector",
)  # fmt: skip
_LIVE = "SELECT path_hash, path FROM dl_add_files WHERE table_id = ? AND removed_version = 9223372036854775807"
LIVE_SQLITE = f"{_LIVE} AND path_hash IN (SELECT value FROM json_each(?))"
LIVE_POSTGRES = f"{_LIVE} AND path_hash = ANY(?)"

NOTE = "SELECT version, txn_id, note FROM dl_notes WHERE name = ?"
NOTES = "SELECT name, version, note FROM dl_notes WHERE name >= ? AND name < ? ORDER BY name"
SET_NOTE = (
    "INSERT INTO dl_notes (name, version, txn_id, note) VALUES (?, ?, ?, ?) ON CONFLICT (name) DO UPDATE SET"
    " version = excluded.version, txn_id = excluded.txn_id, note = excluded.note"
)


@cache
def insert_adds(columns: tuple[str, ...]) -> str:
    """The statement for one file, of which these columns are given."""
    return f"INSERT INTO dl_add_files ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})"
