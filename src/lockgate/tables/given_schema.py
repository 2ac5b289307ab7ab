"""The schema of a table that is to be made, from a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa

from lockgate.errors import ArgumentError
from lockgate.merging.source import open_source
from lockgate.storage.local import explained
from lockgate.txlog.schema_json import arrow_schema

_NOTHING = "nothing was written"


def given_schema(schema_file: str | None, like: str | None) -> pa.Schema:
    """Of a JSON file, or of Parquet files."""
    if (schema_file is None) == (like is None):
        raise ArgumentError("give --schema or --like, one of them", in_place=_NOTHING)
    if like is not None:
        return open_source(like).schema.remove_metadata()
    assert schema_file is not None
    path = Path(schema_file)
    try:
        with explained("read", path):
            given = json.loads(path.read_bytes())
    except ValueError as error:
        raise ArgumentError(f"{path} is not JSON: {error}", in_place=_NOTHING) from error
    return schema_from(given, str(path))


def schema_from(given: Any, where: str) -> pa.Schema:
    """
    >>> schema_from({"id": "long", "day": "date"}, "schema.json").names
    ['id', 'day']
    """
    if isinstance(given, dict) and given.get("type") == "struct":
        return arrow_schema(json.dumps(given))
    if isinstance(given, dict) and given and all(isinstance(kind, str | dict) for kind in given.values()):
        fields = [{"name": name, "type": kind, "nullable": True, "metadata": {}} for name, kind in given.items()]
        return arrow_schema(json.dumps({"type": "struct", "fields": fields}))
    raise ArgumentError(
        f"{where} holds no schema",
        in_place=_NOTHING,
        hint='write {"id": "long", "day": "date"}, or the schema as Delta or Spark writes it',
    )
