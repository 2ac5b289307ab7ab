"""A `_delta_log` as a busy table has it: commits that add files, and rewrite some of those that are there."""

from __future__ import annotations

import json
import random
from pathlib import Path

SCHEMA = {
    "type": "struct",
    "fields": [
        {"name": name, "type": type_, "nullable": True, "metadata": {}}
        for name, type_ in (("id", "long"), ("amount", "double"), ("name", "string"), ("day", "date"))
    ],
}


def generate(table: Path, *, files: int, versions: int, rewritten: float = 0.1) -> None:
    """`files` are live in the end. No data file is made: an import does not look at them."""
    chance = random.Random(7)
    log = table / "_delta_log"
    log.mkdir(parents=True)
    live: list[str] = []
    each = files / versions
    for version in range(versions):
        lines = [_line("commitInfo", {"timestamp": 1_000 * version, "operation": "WRITE"})]
        if version == 0:
            lines.append(_line("protocol", {"minReaderVersion": 1, "minWriterVersion": 2}))
            lines.append(_line("metaData", _metadata()))
        adds = round(each * (version + 1)) - round(each * version)
        again = round(adds * rewritten) if len(live) > adds else 0
        for n, at in enumerate(chance.sample(range(len(live)), again)):
            path, live[at] = live[at], f"day={_day(version)}/part-{version:06}-r{n:05}-c000.snappy.parquet"
            body = {"path": path, "deletionTimestamp": 1, "dataChange": True, "extendedFileMetadata": True}
            lines.append(_line("remove", {**body, "partitionValues": {"day": path[4:14]}, "size": 1}))
            lines.append(_add(live[at], version, n))
        for n in range(adds):
            path = f"day={_day(version)}/part-{version:06}-{n:05}-c000.snappy.parquet"
            live.append(path)
            lines.append(_add(path, version, n))
        (log / f"{version:020}.json").write_text("\n".join(lines) + "\n")


def _line(kind: str, body: object) -> str:
    return json.dumps({kind: body}, separators=(",", ":"))


def _add(path: str, version: int, n: int) -> str:
    bounds = {"id": version * 1_000 + n, "amount": n / 7, "name": f"customer {n}"}
    stats = {"numRecords": 1_000, "minValues": bounds, "maxValues": bounds, "nullCount": dict.fromkeys(bounds, 0)}
    body = {"path": path, "partitionValues": {"day": path[4:14]}, "size": 1_000_000 + n, "modificationTime": version}
    return _line("add", {**body, "dataChange": True, "stats": json.dumps(stats, separators=(",", ":"))})


def _day(version: int) -> str:
    return f"2026-{version % 12 + 1:02}-{version % 28 + 1:02}"


def _metadata() -> dict[str, object]:
    return {
        "id": "11111111-2222-3333-4444-555555555555",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps(SCHEMA),
        "partitionColumns": ["day"],
        "configuration": {},
        "createdTime": 1,
    }
