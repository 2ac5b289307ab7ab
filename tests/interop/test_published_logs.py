"""What is published is read alike by delta-rs, by DuckDB and by this log, at every version."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lockgate.txlog.actions import Add, Metadata, Protocol, Remove
from lockgate.txlog.paths import as_uri, from_uri
from support.txlogs import TABLE, Place

ROOT = Path(__file__).parents[2]
FIELDS = [("id", "long"), ("amount", "decimal(12,2)"), ("day", "date"), ("shop", "string")]
SCHEMA = json.dumps(
    {"type": "struct", "fields": [{"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in FIELDS]}
)
SHOPS = [None, "a b", "50%", "a/b", "ü日", "it's", 'q"', "a=b&c", "%20", "x:y"]


def write_file(place: Place, name: str, ids: list[int], day: str | None, shop: str | None) -> Add:
    """A data file under a name with everything that has to be encoded."""
    relative = f"day={day}/{name} %41 ü.parquet"
    path = Path(place.location) / relative
    path.parent.mkdir(parents=True, exist_ok=True)
    table = pa.table({"id": ids, "amount": pa.array(ids, pa.decimal128(12, 2))})
    pq.write_table(table, path)
    stats = {
        "numRecords": len(ids), "minValues": {"id": min(ids)}, "maxValues": {"id": max(ids)}, "nullCount": {"id": 0},
    }  # fmt: skip
    return Add(
        as_uri(relative), {"day": day, "shop": shop}, path.stat().st_size, 1_700_000_000_000, stats=json.dumps(stats)
    )


@pytest.fixture
def published(tmp_path: Path) -> Place:
    """A table of 24 versions, with checkpoints, removals and every odd partition value."""
    place = Place(tmp_path, f"sqlite:///{tmp_path}/log.db")
    with place.open(publish=False) as log:
        log.create_table(TABLE, place.location)
        log.commit(TABLE, 0, [Protocol(1, 2), Metadata("1f", SCHEMA, ("day", "shop"), created_time=1_700_000_000_000)])
        files: list[Add] = []
        for n in range(20):
            files.append(write_file(place, f"f{n}", [n * 10, n * 10 + 1], [None, "2026-01-02"][n % 2], SHOPS[n // 2]))
            log.commit(TABLE, None, [files[-1]])
        for gone in files[:3]:
            log.commit(TABLE, None, [Remove(gone.path, partition_values=gone.partition_values, size=gone.size)])
        log.publish()
        assert log.table(TABLE).lag == 0
    return place


def expected(place: Place, version: int) -> list[tuple[Any, ...]]:
    rows = []
    with place.open(publish=False) as log:
        for file in log.snapshot(TABLE, version=version).files.to_pylist():
            values = json.loads(file["partition_values"])
            ids = pq.read_table(Path(place.location) / from_uri(file["path"]), columns=["id"], partitioning=None)
            rows += [(n, values["day"], values["shop"]) for n in ids.column("id").to_pylist()]
    return sorted(rows)


def test_delta_rs_reads_every_version(published: Place) -> None:
    for version in range(24):
        table = deltalake.DeltaTable(published.location, version=version)
        rows = table.to_pyarrow_table(columns=["id", "day", "shop"]).to_pylist() if version else []
        found = sorted((r["id"], r["day"] and r["day"].isoformat(), r["shop"]) for r in rows)
        assert found == expected(published, version), version
    assert deltalake.DeltaTable(published.location).version() == 23


def test_delta_rs_needs_the_checkpoint_alone(published: Place) -> None:
    """Older commit files may be cleaned up once a checkpoint holds their state."""
    for version in range(20):
        (Path(published.location) / "_delta_log" / f"{version:020}.json").unlink()
    table = deltalake.DeltaTable(published.location)
    rows = table.to_pyarrow_table(columns=["id", "day", "shop"]).to_pylist()
    assert sorted((r["id"], r["day"] and r["day"].isoformat(), r["shop"]) for r in rows) == expected(published, 23)
    assert table.metadata().partition_columns == ["day", "shop"]
    assert table.protocol().min_writer_version == 2


def test_duckdb_reads_every_version(published: Place) -> None:
    script = (
        "import duckdb, json, sys, duckdb_extension_delta as d\n"
        "c = duckdb.connect(config={'allow_unsigned_extensions': 'true'})\n"
        "import pathlib\n"
        "e = next(pathlib.Path(d.__file__).parent.rglob('*.duckdb_extension'))\n"
        "c.execute(f\"LOAD '{e}'\")\n"
        "out = {}\n"
        "for v in range(1, 24):\n"
        "    q = 'SELECT id, CAST(day AS VARCHAR), shop FROM delta_scan(?, version => ?) ORDER BY ALL'\n"
        "    out[v] = c.execute(q, [sys.argv[1], v]).fetchall()\n"
        "print(json.dumps(out))\n"
    )
    older = ROOT / ".venv" / "older" / "duckdb-1.5"
    said = subprocess.run(
        [sys.executable, "-c", script, published.location],
        env={**os.environ, "PYTHONPATH": str(older)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert said.returncode == 0, said.stderr
    key = lambda row: tuple(str(v) for v in row)  # noqa: E731
    for version, rows in json.loads(said.stdout.splitlines()[-1]).items():
        wanted = expected(published, int(version))
        assert sorted((tuple(r) for r in rows), key=key) == sorted(wanted, key=key), version


def test_times_travel_alike(published: Place) -> None:
    """The commit files carry the times of the log, so that other readers find the same version at a time."""
    with published.open(publish=False) as log:
        for record in log.history(TABLE):
            path = Path(published.location) / "_delta_log" / f"{record.version:020}.json"
            assert path.stat().st_mtime_ns // 1_000_000 == record.timestamp
            assert json.loads(path.read_text().splitlines()[0])["commitInfo"]["timestamp"] == record.timestamp
