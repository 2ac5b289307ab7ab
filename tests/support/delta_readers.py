"""Other readers of Delta tables, which share no code with ours."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import deltalake
import pyarrow as pa

_OLDER = Path(sys.prefix) / "older" / "duckdb-1.5"  # by make
_EXTENSION = next(_OLDER.glob("duckdb_extension_delta/extensions/*/delta.duckdb_extension"), None)
_SCRIPT = """
import json, sys, duckdb
connection = duckdb.connect()
connection.execute("SET TimeZone = 'UTC'")
connection.load_extension(sys.argv[1])
for line in sys.stdin:
    location, version = json.loads(line)
    rows = connection.execute("SELECT * FROM delta_scan($1, version => $2)", [location, version]).to_arrow_table()
    print(json.dumps([repr(sorted(row.items())) for row in rows.to_pylist()]), flush=True)
"""


def by_deltalake(location: str, version: int) -> list[str]:
    return spelled(deltalake.DeltaTable(location, version=version).to_pyarrow_table())


def by_duckdb(location: str, versions: list[int]) -> list[list[str]]:
    """All versions at once: the extension lives in a process of its own, with the DuckDB that it is for."""
    asked = "".join(json.dumps([location, version]) + "\n" for version in versions)
    told = subprocess.run(
        [sys.executable, "-c", _SCRIPT, str(_EXTENSION)],
        input=asked, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": str(_OLDER)},
    )  # fmt: skip
    assert told.returncode == 0, told.stderr
    return [sorted(json.loads(line)) for line in told.stdout.splitlines()]


def spelled(rows: pa.Table) -> list[str]:
    """Rows without an order; NaN equals NaN."""
    return sorted(repr(sorted(row.items())) for row in rows.to_pylist())
