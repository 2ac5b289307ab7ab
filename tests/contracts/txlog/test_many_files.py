"""Commits of many files, which are checked and stored a column at a time: the same as file by file."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import replace

import pyarrow as pa
import pytest

import lockgate
from lockgate.txlog.actions import Add, Txn
from lockgate.txlog.file_rows import rows_of, split
from lockgate.txlog.files import path_hash
from lockgate.txlog.store import MANY
from lockgate.txlog.writer import TxnLogWriter
from support.txlogs import PARTITIONED, PROTOCOL, TABLE, Place, add, adds, paths, remove

ODD = ["day=ü%20a/x.parquet", "it's", 'q"q', "a;b", "日本", "x" * 30_000, "a..b/c"]


@pytest.fixture
def parted(somewhere: Place) -> Iterator[TxnLogWriter]:
    with somewhere.open() as log:
        somewhere.table(log, metadata=PARTITIONED)
        yield log


def many(**every: object) -> list[Add]:
    """Files with all that a plain file may have, and with none of it."""
    found = []
    for n, path in enumerate([*ODD, *(f"part-{n}.parquet" for n in range(MANY))]):
        one = add(path, partition_values={"day": [None, "1", "ü\n\"'"][n % 3]}, size=n, modification_time=-n, **every)
        if n % 2:
            one = replace(one, stats='{"a":"\\u0000 é"}' if n % 4 == 1 else None, data_change=False)
        found.append(replace(one, tags={"k": "v\n\\\"'"}) if n % 5 == 0 else one)
    return found


def test_they_are_kept_as_they_were_given(parted: TxnLogWriter) -> None:
    given = many()
    assert split(given)[0] is not None
    parted.commit(TABLE, None, [Txn("loader", 1), *given])
    written = next(parted.changes(TABLE, 1)).actions
    assert written[2:] == given
    by_path = {row["path"]: row for row in parted.snapshot(TABLE).files.to_pylist()}
    for each in given:
        row = by_path[each.path]
        assert (row["size"], row["modification_time"], row["data_change"], row["stats"]) == (
            each.size, each.modification_time, each.data_change, each.stats,
        )  # fmt: skip
    parted.commit(TABLE, None, [remove(each.path) for each in given[:-1]])
    assert paths(parted) == [given[-1].path]
    assert len(paths(parted, 1)) == len(given)


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (add("../x", partition_values={"day": "1"}), "leaves the table"),
        (add("a\nb", partition_values={"day": "1"}), "UTF-8"),
        (add("a\ud800b", partition_values={"day": "1"}), "UTF-8"),
        (add("part-7.parquet", partition_values={"day": "1"}), "twice"),
        (add("z", partition_values={}), "partitioned by"),
        (add("z", partition_values={"day": ""}), "empty text"),
        (add("z", partition_values={"day": "1"}, stats="[]"), "not a JSON object"),
        (add("z", partition_values={"day": "1"}, stats='{"a":"\n"}'), "not a JSON object"),
        (add("z", partition_values={"day": "1"}, size=-1), "size -1"),
        (remove("part-7.parquet"), "twice"),
    ],
)
def test_one_bad_file_among_many_is_refused(parted: TxnLogWriter, bad: Add, said: str) -> None:
    with pytest.raises(lockgate.ValidationError, match=said):
        parted.commit(TABLE, None, [*many(), bad])
    assert parted.current_version(TABLE) == 0


def test_a_file_that_lives_is_told_by_its_name(log: TxnLogWriter) -> None:
    log.commit(TABLE, None, adds(["f3"]))
    with pytest.raises(lockgate.ValidationError, match=r"'f3' is in sales\.orders already"):
        log.commit(TABLE, None, adds(f"f{n}" for n in range(MANY)))
    assert paths(log) == ["f3"]


def test_what_was_given_as_arrow_is_checked_again_when_the_schema_has_changed(somewhere: Place) -> None:
    files = pa.table({"path": ["f"], "size": [1], "modification_time": [1]})
    with somewhere.open() as one, somewhere.open() as other:
        somewhere.table(one)
        one.commit(TABLE, None, [add("a")])
        other.commit(TABLE, None, [remove("a"), PARTITIONED, PROTOCOL])
        with pytest.raises(lockgate.ValidationError, match="partitioned by"):
            one.commit(TABLE, None, adds=files)
        assert paths(one) == []


def test_a_file_is_not_removed_and_added_as_arrow_at_once(log: TxnLogWriter) -> None:
    files = pa.table({"path": ["a"], "size": [1], "modification_time": [1]})
    log.commit(TABLE, None, adds=files)
    with pytest.raises(lockgate.ValidationError, match="'a' twice"):
        log.commit(TABLE, None, [remove("a")], adds=files)
    assert log.current_version(TABLE) == 1


def test_more_files_than_are_read_at_once(parted: TxnLogWriter, monkeypatch: pytest.MonkeyPatch) -> None:
    """From PostgreSQL, they come to Arrow over a connection of its own."""
    from lockgate.txlog import postgres_files

    parted.commit(TABLE, None, many())
    whole = parted.snapshot(TABLE).files
    monkeypatch.setattr(postgres_files, "_FEW", 100)
    assert parted.snapshot(TABLE).files.sort_by("path").equals(whole.sort_by("path"))


def test_rows_have_the_hashes_of_their_paths() -> None:
    table, _ = split([add(each.path) for each in many()])
    assert table is not None
    rows = rows_of(table, set(), TABLE)
    assert rows.column("path_hash").to_pylist() == [path_hash(each) for each in rows.column("path").to_pylist()]


def test_text_that_is_longer_than_sqlite_allows_is_read_row_by_row(parted: TxnLogWriter) -> None:
    parted.commit(TABLE, None, many())
    whole = parted.snapshot(TABLE).files
    if not hasattr(parted.store, "reading"):
        return  # PostgreSQL sends rows anyway
    with parted.store.reading() as connection:
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 40_000)
    assert parted.snapshot(TABLE).files.sort_by("path").equals(whole.sort_by("path"))
