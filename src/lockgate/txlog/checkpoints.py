"""Checkpoints: a version's whole state in one Parquet file, from which readers start."""

from __future__ import annotations

import json
from collections.abc import Callable

from lockgate.txlog import statements
from lockgate.txlog.log_files import LogFiles
from lockgate.txlog.store import Row, Store

_INTERVAL = 10
_KEY = "delta.checkpointInterval"


def is_due(rows: Callable[..., list[Row]], table_id: int, version: int) -> bool:
    """Whether a version is one after which a checkpoint is written."""
    if version == 0:
        return False
    found = rows(statements.METADATA_AT, table_id, version)
    setting = json.loads(found[0][1])["metaData"].get("configuration", {}).get(_KEY) if found else None
    interval = int(setting) if setting and setting.isdigit() and int(setting) > 0 else _INTERVAL
    return version % interval == 0


def write_checkpoint(store: Store, files: LogFiles, table_id: int, version: int) -> None:
    from lockgate.txlog.checkpoint_rows import checkpoint_bytes

    data, actions = checkpoint_bytes(store, table_id, version)
    name = f"{version:020}.checkpoint.parquet"
    files.put_if_absent(name, data)
    files.sync()
    files.replace(
        "_last_checkpoint", json.dumps({"version": version, "size": actions, "sizeInBytes": len(data)}).encode()
    )
