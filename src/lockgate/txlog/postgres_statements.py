"""PostgreSQL's statements for any number of rows: one array a column, so that the server plans each only once."""

from __future__ import annotations

from lockgate.txlog.store import ADD_COLUMNS, LIVE

ADD_TYPES = (
    "int4", "int8", "int8", "int4", "int8", "int8", "int8", "bool", "text", "text", "text", "text", "text", "text",
)  # fmt: skip


def _insert(table: str, **columns: str) -> str:
    arrays = ", ".join(f"%s::{kind}[]" for kind in columns.values())
    return f"INSERT INTO {table} ({', '.join(columns)}) SELECT * FROM unnest({arrays})"


INSERT_ADDS = _insert("dl_add_files", **dict(zip(ADD_COLUMNS, ADD_TYPES, strict=True)))
INSERT_VERSIONS = _insert(
    "dl_table_versions",
    table_id="int4", version="int8", timestamp="int8", txn_id="text", blind_append="bool", head="text",
)  # fmt: skip
INSERT_REMOVES = _insert(
    "dl_remove_files",
    table_id="int4", version="int8", ordinal="int4", deletion_timestamp="int8", path="text", line="text",
)  # fmt: skip
INSERT_METADATA = _insert("dl_metadata_updates", table_id="int4", version="int8", line="text")
INSERT_PROTOCOLS = _insert("dl_protocol_updates", table_id="int4", version="int8", line="text")
INSERT_TXNS = _insert("dl_txn_actions", table_id="int4", app_hash="int8", version="int8", line="text")
INSERT_DOMAINS = _insert("dl_domain_metadata", table_id="int4", domain_hash="int8", version="int8", line="text")
END_FILES = (
    "UPDATE dl_add_files f SET removed_version = r.version FROM unnest(%s::int8[], %s::int4[], %s::int8[])"
    " AS r(version, table_id, path_hash)"
    f" WHERE f.table_id = r.table_id AND f.path_hash = r.path_hash AND f.removed_version = {LIVE}"
)
