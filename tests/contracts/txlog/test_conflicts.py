"""Every pair of operations that were prepared on one version: what the second to commit is told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import lockgate
from lockgate.txlog.actions import Protocol, Txn
from lockgate.txlog.commits import TableCommit
from lockgate.txlog.writer import TxnLogWriter
from support.txlogs import METADATA, PARTITIONED, PROTOCOL, TABLE, Place, add, paths, remove


def operation(name: str, tag: str) -> TableCommit:
    """What each operation on version 1 (files a and b) commits; `tag` keeps the new files of two apart."""
    new = add(f"{name}-{tag}")
    kinds: dict[str, dict[str, Any]] = {
        "append": {"actions": [new]},
        "merge a": {"actions": [remove("a"), new], "read_files": ["a"]},
        "merge b": {"actions": [remove("b"), new], "read_files": ["b"]},
        "merge of new rows": {"actions": [new], "read_files": []},
        "read a, write": {"actions": [new], "read_files": ["a"]},
        "overwrite": {"actions": [remove("a"), remove("b"), new], "read_table": True},
        "compaction": {
            "actions": [replace(remove("a"), data_change=False), replace(new, data_change=False)],
            "read_files": ["a"],
        },
        "schema": {"actions": [replace(METADATA, configuration={"tag": tag})]},
        "protocol": {"actions": [Protocol(1, 3)]},
        "application": {"actions": [Txn("loader", 1 if tag == "first" else 2), new]},
    }
    return TableCommit(TABLE, None, read_version=1, **kinds[name])


REBASES = {  # first: those that stand when they come second
    "append": {
        "append", "merge a", "merge b", "merge of new rows", "read a, write", "overwrite", "compaction", "application",
    },
    "merge a": {"append", "application"},
    "merge b": {"append", "compaction", "application"},
    "merge of new rows": {"append", "merge a", "merge b", "application"},
    "read a, write": {"append", "merge b", "application"},
    "overwrite": {"append", "application"},
    "compaction": {"append", "merge b", "merge of new rows", "application"},
    "schema": set(),
    "protocol": set(),
    "application": {"append", "merge a", "merge b", "merge of new rows", "read a, write", "overwrite", "compaction"},
}  # fmt: skip
# What adds rows after reading clashes with whoever reads: the new rows may have the keys that were looked for.
READERS = {"merge a", "merge b", "merge of new rows", "read a, write", "overwrite", "compaction"}
for _first in READERS - {"compaction"}:
    REBASES[_first] -= READERS
# A change of the schema or protocol has read no file, so that only another such change clashes with it.
for _first in REBASES.keys() - {"schema", "protocol"}:
    REBASES[_first] |= {"schema", "protocol"}


@pytest.mark.parametrize("first", REBASES)
def test_a_pair(somewhere: Place, log: TxnLogWriter, first: str) -> None:
    for number, second in enumerate(REBASES):
        table = f"pair.{number}"
        log.create_table(table, str(somewhere.folder / table), publish=False)
        log.commit(table, 0, [PROTOCOL, METADATA])
        log.commit(table, None, [add("a"), add("b")])
        log.commit_many([replace(operation(first, "first"), table=table)])
        then = replace(operation(second, "second"), table=table)
        if second in REBASES[first]:
            assert log.commit_many([then]) == {table: 3}, second
        else:
            with pytest.raises(lockgate.VersionConflict, match="version 2") as refused:
                log.commit_many([then])
            assert (refused.value.expected, refused.value.actual) == (None, 2), second
            assert log.current_version(table) == 2
        with pytest.raises(lockgate.VersionConflict):  # strict: whatever it was
            log.commit_many([replace(operation(second, "strict"), table=table, expected_version=2)])


@pytest.mark.parametrize(("partition", "stands"), [("1", False), ("2", True), (None, True)])
def test_files_that_were_added_to_other_partitions_do_not_clash(
    somewhere: Place, partition: str | None, stands: bool
) -> None:
    with somewhere.open() as log:
        somewhere.table(log, metadata=PARTITIONED)
        theirs = add("theirs", partition_values={"day": partition})
        log.commit(TABLE, None, [theirs], read_version=0, read_files=[])
        mine = TableCommit(
            TABLE, None, [add("mine", partition_values={"day": "1"})], read_version=0, read_files=[],
            read_partitions=[{"day": "1"}],
        )  # fmt: skip
        if stands:
            log.commit_many([mine])
        else:
            with pytest.raises(lockgate.VersionConflict, match="added 'theirs'"):
                log.commit_many([mine])


def test_a_change_of_the_schema_looks_at_blind_appends_only_if_it_has_read(log: TxnLogWriter) -> None:
    log.commit(TABLE, None, [add("blind")], read_version=0)
    changed = replace(METADATA, configuration={"a": "b"})
    with pytest.raises(lockgate.VersionConflict, match="added 'blind'"):
        log.commit(TABLE, None, [changed], read_version=0, read_table=True)
    assert log.commit(TABLE, None, [changed], read_version=0) == 2


def test_a_read_version_that_is_not_there_yet(log: TxnLogWriter) -> None:
    with pytest.raises(lockgate.ValidationError, match="nobody can have read version 5"):
        log.commit(TABLE, None, [add("a")], read_version=5)


def test_an_append_prepared_on_an_older_schema_is_validated_against_the_new_one(somewhere: Place) -> None:
    with somewhere.open() as one, somewhere.open() as other:
        somewhere.table(one)
        one.commit(TABLE, None, [add("a")])
        other.commit(TABLE, None, [add("b")])
        other.commit(TABLE, None, [remove("a"), remove("b"), PARTITIONED, PROTOCOL])
        with pytest.raises(lockgate.ValidationError, match="partitioned by"):
            one.commit(TABLE, None, [add("c")])
        assert one.commit(TABLE, None, [add("c", partition_values={"day": None})]) == 4
        assert paths(one) == ["c"]
