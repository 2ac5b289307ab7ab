"""Versions, strict and rebased commits, idempotence, several tables: the same on every store."""

from __future__ import annotations

import json
import threading

import pyarrow as pa
import pytest

import lockgate
from lockgate.txlog.actions import CommitInfo, Txn
from lockgate.txlog.commits import Operation, TableCommit
from lockgate.txlog.writer import TxnLogWriter
from support.txlogs import METADATA, PROTOCOL, TABLE, Place, add, adds, paths, remove


def test_versions_begin_at_0_and_grow_by_1(somewhere: Place) -> None:
    with somewhere.open() as log:
        log.create_table(TABLE, somewhere.location, publish=False)
        assert log.current_version(TABLE) == -1
        assert log.commit(TABLE, 0, [PROTOCOL, METADATA]) == 0
        assert [log.commit(TABLE, n, [add(f"{n}.parquet")]) for n in (1, 2, 3)] == [1, 2, 3]
        assert [log.commit(TABLE, None, [add(f"{n}.parquet")]) for n in (4, 5)] == [4, 5]
        assert log.current_version(TABLE) == 5
        assert [record.version for record in log.history(TABLE)] == [5, 4, 3, 2, 1, 0]


def test_a_wrong_expected_version_is_refused_with_both_numbers(log: TxnLogWriter) -> None:
    log.commit(TABLE, 1, [add("a.parquet")], operation="FIRST", txn_id="who-it-was")
    for wrong in (0, 1, 3):
        with pytest.raises(lockgate.VersionConflict) as refused:
            log.commit(TABLE, wrong, [add("b.parquet")])
        assert (refused.value.expected, refused.value.actual) == (wrong, 1)
        assert refused.value.in_place == "nothing was committed"
    with pytest.raises(lockgate.VersionConflict, match="FIRST, transaction who-it-was"):
        log.commit(TABLE, 1, [add("b.parquet")])
    assert paths(log) == ["a.parquet"]


def test_the_first_commit_needs_protocol_and_metadata(somewhere: Place) -> None:
    with somewhere.open() as log:
        log.create_table(TABLE, somewhere.location, publish=False)
        for actions in ([add("a.parquet")], [PROTOCOL], [METADATA]):
            with pytest.raises(lockgate.ValidationError, match="the first commit"):
                log.commit(TABLE, 0, actions)
        assert log.current_version(TABLE) == -1


def test_every_version_is_read_as_it_was(log: TxnLogWriter) -> None:
    log.commit(TABLE, None, adds(["a", "b"]))
    log.commit(TABLE, None, [remove("a"), add("c")])
    log.commit(TABLE, None, [remove("b"), remove("c")])
    log.commit(TABLE, None, [add("a")])
    assert [paths(log, version) for version in range(5)] == [[], ["a", "b"], ["b", "c"], [], ["a"]]


def test_a_live_file_is_added_once_and_only_a_live_file_is_removed(log: TxnLogWriter) -> None:
    log.commit(TABLE, None, adds(["a", "b"]))
    with pytest.raises(lockgate.ValidationError, match=r"'a' is in sales\.orders already"):
        log.commit(TABLE, None, [add("z"), add("a")])
    with pytest.raises(lockgate.ValidationError, match=r"'a' is in sales\.orders already"):
        log.commit(TABLE, None, [*adds(f"n{n}" for n in range(50)), add("a")])  # by COPY
    with pytest.raises(lockgate.ValidationError, match="'nowhere' is to be removed"):
        log.commit(TABLE, None, [remove("nowhere")])
    log.commit(TABLE, None, [remove("a")])
    with pytest.raises(lockgate.VersionConflict, match=r"removed from sales\.orders by version 2"):
        log.commit(TABLE, None, [remove("a")])
    assert log.current_version(TABLE) == 2
    assert paths(log) == ["b"]


def test_a_retry_returns_the_version_and_writes_nothing(log: TxnLogWriter) -> None:
    first = log.commit(TABLE, None, [add("a")], txn_id="once")
    log.commit(TABLE, None, [add("b")])
    assert log.commit(TABLE, None, [add("a")], txn_id="once") == first
    assert log.commit(TABLE, first, [add("a")], txn_id="once") == first
    assert log.current_version(TABLE) == 2
    assert log.find_transaction("once") == {TABLE: first}


def test_an_application_commits_each_of_its_numbers_once(log: TxnLogWriter) -> None:
    log.commit(TABLE, None, [Txn("loader", 7, 1), add("a")])
    for again in (7, 6):
        with pytest.raises(lockgate.VersionConflict, match="done before"):
            log.commit(TABLE, None, [Txn("loader", again), add("b")])
    log.commit(TABLE, None, [Txn("loader", 8), Txn("other", 1), add("b")])
    assert log.snapshot(TABLE).transactions == {"loader": Txn("loader", 8), "other": Txn("other", 1)}
    assert log.snapshot(TABLE, version=1).transactions == {"loader": Txn("loader", 7, 1)}


def test_several_tables_are_committed_together_or_not_at_all(somewhere: Place, log: TxnLogWriter) -> None:
    log.create_table("b", str(somewhere.folder / "b"), publish=False)
    both = [TableCommit("b", 0, [PROTOCOL, METADATA, add("x")]), TableCommit(TABLE, 1, [add("y")])]
    assert log.commit_many(both, txn_id="together") == {"b": 0, TABLE: 1}
    assert log.commit_many(both, txn_id="together") == {"b": 0, TABLE: 1}
    with pytest.raises(lockgate.VersionConflict):
        log.commit_many([TableCommit("b", 1, [add("z")]), TableCommit(TABLE, 9, [add("z")])])
    assert (paths(log), paths(log, table="b")) == (["y"], ["x"])
    log.create_table("c", str(somewhere.folder / "c"), publish=False)
    with pytest.raises(lockgate.ValidationError, match="went through before, on other tables"):
        log.commit("c", 0, [PROTOCOL, METADATA], txn_id="together")


def test_timestamps_grow_whatever_the_clock_does(log: TxnLogWriter) -> None:
    if hasattr(log.store, "_clock"):
        log.store._clock = iter(range(10_000, 0, -1)).__next__
    for n in range(5):
        log.commit(TABLE, None, [add(str(n))])
    times = [record.timestamp for record in reversed(log.history(TABLE))]
    assert times == sorted(set(times))
    assert [log.version_at(TABLE, time) for time in times] == [0, 1, 2, 3, 4, 5]
    with pytest.raises(lockgate.TableNotFound, match="no version as old"):
        log.snapshot(TABLE, timestamp=times[0] - 1)


def test_files_may_be_given_as_arrow(log: TxnLogWriter) -> None:
    files = pa.table({"path": [f"f{n}" for n in range(30)], "size": range(30), "modification_time": [5] * 30})
    assert log.commit(TABLE, None, [add("one")], adds=files) == 1
    stored = log.snapshot(TABLE).files.sort_by("path")
    assert stored.num_rows == 31
    assert stored.slice(0, 1).to_pylist()[0] == {
        "path": "f0", "partition_values": "{}", "size": 0, "modification_time": 5, "data_change": True, "stats": None,
        "tags": None, "deletion_vector": None,
    }  # fmt: skip
    with pytest.raises(lockgate.ValidationError, match="already"):
        log.commit(TABLE, None, adds=files.slice(3, 1))
    for bad in (
        files.drop_columns(["size"]),
        files.append_column("odd", pa.array(range(30))),
        pa.table({"path": ["../x"], "size": [1], "modification_time": [1]}),
        pa.table({"path": ["x", "x"], "size": [1, 1], "modification_time": [1, 1]}),
        pa.table({"path": ["x"], "size": [1], "modification_time": [1], "partition_values": ['{"day":"1"}']}),
        pa.table({"path": pa.array([None], pa.string()), "size": [1], "modification_time": [1]}),
    ):
        with pytest.raises(lockgate.ValidationError):
            log.commit(TABLE, None, adds=bad)
    assert log.current_version(TABLE) == 1


def test_history_tells_what_a_commit_says_of_itself(log: TxnLogWriter) -> None:
    log.commit(
        TABLE, None, [add("a"), CommitInfo({"userName": "me"})], operation=Operation("MERGE", {"k": [1]}, {"n": 3})
    )
    record = log.history(TABLE, limit=1)[0]
    assert (record.operation, record.operation_parameters, record.metrics) == ("MERGE", {"k": "[1]"}, {"n": "3"})
    info = next(log.changes(TABLE, 1)).actions[0]
    assert isinstance(info, CommitInfo)
    assert info.info["userName"] == "me"
    assert info.info["txnId"] == record.txn_id


def test_many_threads_lose_nothing(log: TxnLogWriter) -> None:
    errors: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for n in range(20):
                log.commit(TABLE, None, [add(f"{number}-{n}")])
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(16)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert errors == []
    assert log.current_version(TABLE) == 320
    assert len(paths(log)) == 320
    assert [record.version for record in log.history(TABLE)] == list(range(320, -1, -1))


def test_one_bad_commit_of_a_group_does_not_spoil_the_others(log: TxnLogWriter) -> None:
    from lockgate.txlog.committer import Request
    from lockgate.txlog.outcome import settle

    log.commit(TABLE, None, [add("there")])
    given = {"good": "new", "twice": "there", "same": "new", "late": "newer"}
    requests = [Request(name, [log._prepared(TableCommit(TABLE, None, [add(path)]))]) for name, path in given.items()]
    settle(log.store, requests)
    assert [type(request.error) for request in requests] == [
        type(None), lockgate.ValidationError, lockgate.ValidationError, type(None),
    ]  # fmt: skip
    assert paths(log) == ["new", "newer", "there"]
    assert log.current_version(TABLE) == 3


def test_refusals_do_not_wear_a_connection_out(log: TxnLogWriter) -> None:
    log.commit(TABLE, None, [add("there")])
    for n in range(12):
        with pytest.raises(lockgate.ValidationError):
            log.commit(TABLE, None, [add("there")])
        assert log.commit(TABLE, None, [add(f"n{n}")]) == n + 2


def test_long_paths_and_odd_texts_are_kept(log: TxnLogWriter) -> None:
    odd = ["x" * 32_000, "ü%20a", "it's", 'q"q', "a;b", "日本"]
    tags = {"k": "v\n\\\"'"}
    log.commit(TABLE, None, [add(path, tags=tags, stats='{"a":"\\u0000 é"}') for path in odd])
    files = log.snapshot(TABLE).files
    assert sorted(files.column("path").to_pylist()) == sorted(odd)
    assert {json.loads(text)["k"] for text in files.column("tags").to_pylist()} == {"v\n\\\"'"}
    log.commit(TABLE, None, [remove(path) for path in odd])
    assert paths(log) == []


def test_a_table_that_is_not_there(log: TxnLogWriter) -> None:
    for use in (
        lambda: log.commit("no.such", None, [add("a")]),
        lambda: log.snapshot("no.such"),
        lambda: log.table("x"),
    ):
        with pytest.raises(lockgate.TableNotFound, match="no table"):
            use()
    with pytest.raises(lockgate.TableNotFound, match="its newest is 0"):
        log.snapshot(TABLE, version=1)


def test_a_location_belongs_to_one_table(somewhere: Place, log: TxnLogWriter) -> None:
    for location in ("orders", "orders/", "orders/inside", "."):
        with pytest.raises(lockgate.TableExists, match=TABLE):
            log.create_table("other", str(somewhere.folder / location))
    with pytest.raises(lockgate.TableExists, match="already"):
        log.create_table(TABLE, str(somewhere.folder / "elsewhere"))
