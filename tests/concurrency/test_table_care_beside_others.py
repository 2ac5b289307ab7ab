"""vacuum and compact beside four writers and two readers: no error, no lost row, no missing file."""

from __future__ import annotations

import time
import traceback
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lockgate
from lockgate.tables.vacuum import vacuum_table
from support import merge_processes
from support.care import elsewhere, ids

SCHEMA = pa.schema({"id": pa.int64(), "writer": pa.int64(), "n": pa.int64()})
WRITERS = 4
RETENTION = 1.0  # seconds


def write(address: str, writer: int, until: tuple[int, float], said: Any, done: Any) -> None:
    """Append a row, then change one that was appended before: rows of a writer are always 0 to the last."""
    try:
        with lockgate.open_table("t", log=address) as table:
            operations, end, count = *until, 0
            while count < operations or time.time() < end:
                row = {"id": count * WRITERS + writer, "writer": writer, "n": 0}
                table.append(pa.Table.from_pylist([row], SCHEMA))
                count += 1
                if count % 3 == 0:
                    changed = {**row, "id": (count // 2) * WRITERS + writer, "n": count}
                    table.merge(pa.Table.from_pylist([changed], SCHEMA), strategy="upsert", key_columns="id", tries=100)
        said.put((writer, count))
    except BaseException:
        said.put((writer, traceback.format_exc()))
    finally:
        done[writer].value = 1


def read(address: str, done: Any, said: Any) -> None:
    try:
        count = 0
        with lockgate.open_table("t", log=address) as table:
            while not all(each.value for each in done):
                started = time.time()
                try:
                    found = table.to_arrow()
                except lockgate.StorageError:
                    if time.time() - started > RETENTION:  # as long as the retention is promised
                        continue
                    raise
                require_whole(found)
                count += 1
        said.put(("read", count))
    except BaseException:
        said.put(("read", traceback.format_exc()))


def require_whole(found: pa.Table) -> None:
    for writer in range(WRITERS):
        mine = sorted(r["id"] // WRITERS for r in found.to_pylist() if r["writer"] == writer)
        assert mine == list(range(len(mine))), f"rows of writer {writer} are lost or doubled: {mine}"


def care(address: str, done: Any, said: Any) -> None:
    try:
        rounds = removed = compacted = 0
        with lockgate.open_table("t", log=address) as table:
            while not all(each.value for each in done):
                compacted += table.compact().files_removed
                gone = vacuum_table(table._writable(), retention_hours=RETENTION / 3600, check_retention=False)
                assert not gone.failed
                removed += len(gone.files)
                rounds += 1
        said.put(("care", (rounds, compacted, removed)))
    except BaseException:
        said.put(("care", traceback.format_exc()))


def together(address: str, location: Path, operations: int, seconds: float) -> tuple[int, int, int]:
    table = lockgate.create_table("t", SCHEMA, location=location, log=address)
    said, done = merge_processes.queue(), [merge_processes.number() for _ in range(WRITERS)]
    until = (operations, time.time() + seconds)
    workers = [merge_processes.start(write, address, w, until, said, done) for w in range(WRITERS)]
    workers += [merge_processes.start(read, address, done, said) for _ in range(2)]
    workers.append(merge_processes.start(care, address, done, said))
    told = [said.get() for _ in workers]
    for worker in workers:
        merge_processes.end_of(worker)
    failures = [text for _, text in told if isinstance(text, str)]
    assert not failures, "\n".join(failures)
    counts = {who: count for who, count in told if isinstance(who, int)}
    expected = sorted(n * WRITERS + w for w, count in counts.items() for n in range(count))
    assert ids(table) == expected
    table._log.publish("t")
    assert ids(elsewhere(table)) == expected
    for row in table.files().to_pylist():
        assert (location / row["path"]).exists()
    return next(found for who, found in told if who == "care")  # type: ignore[no-any-return]


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_for_some_operations(store: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    address = f"sqlite:///{tmp_path}/log.db" if store == "sqlite" else request.getfixturevalue("database").url
    rounds, compacted, _ = together(address, tmp_path / "t", operations=8, seconds=0)
    assert rounds > 0
    assert compacted > 0


@pytest.mark.slow
@pytest.mark.parametrize("store", ["sqlite", "postgres"])
def test_for_a_minute(store: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    address = f"sqlite:///{tmp_path}/log.db" if store == "sqlite" else request.getfixturevalue("database").url
    _, compacted, removed = together(address, tmp_path / "t", operations=0, seconds=60)
    assert compacted > 100
    assert removed > 100
