"""Merges into datasets on S3 that are killed at every request, paused, cut off, or not alone."""

from __future__ import annotations

import io
import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lockgate
from lockgate.errors import DatasetBusy, OutcomeUnknown, StorageError
from lockgate.storage.s3 import S3Storage
from lockgate.storage.s3_address import S3Address
from lockgate.storage.s3_settings import S3Settings
from lockgate.targets.s3_folder import S3Folder
from lockgate.targets.s3_recovery import recover_s3
from support.faults import FaultyStorage, run_in_child, was_killed
from support.s3_server import Bucket

ROOT = S3Address("lake", "ds")


def table(**rows: Any) -> pa.Table:
    return pa.table({"id": list(rows["id"]), "x": [rows["x"]] * len(rows["id"])})


def with_old_data(bucket: Bucket) -> None:
    bucket.clear()
    for number in (0, 10):
        file = io.BytesIO()
        pq.write_table(table(id=range(number, number + 3), x="old"), file)
        bucket.put(f"ds/{number}.parquet", file.getvalue())


def rows(bucket: Bucket) -> list[tuple[int, str]]:
    found = []
    for key in bucket.keys("ds/"):
        if "/." not in key:
            found += [(r["id"], r["x"]) for r in pq.read_table(io.BytesIO(bucket.read(key))).to_pylist()]
    return sorted(found)


OLD = [(i, "old") for i in (0, 1, 2, 10, 11, 12)]
NEW = [(i, "new" if i in (1, 11, 20) else "old") for i in (0, 1, 2, 10, 11, 12, 20)]


def merge(storage: Any = None, **options: Any) -> Any:
    return lockgate.merge(
        table(id=[1, 11, 20], x="new"), str(ROOT), strategy="upsert", key_columns="id", storage=storage, **options
    )


def age_lock(bucket: Bucket) -> None:
    """As if the owner of the lock had been silent for an hour."""
    from moto.s3.models import s3_backends

    for account in s3_backends.values():
        for region in account.values():
            if bucket.name in region.buckets:
                found = region.buckets[bucket.name].keys.get("ds/.lockgate_lock")
                if found is not None:
                    found.last_modified -= timedelta(hours=1)


def is_clean(bucket: Bucket) -> bool:
    hidden = {key for key in bucket.keys("ds/") if "/." in key}
    return bucket.open_uploads() == [] and hidden <= {"ds/.lockgate_journal"}


@pytest.mark.parametrize("fault", [pytest.param("kill before", marks=pytest.mark.slow), "kill after"])
def test_killed_at_every_request(bucket: Bucket, project: Path, fault: Any) -> None:
    del project
    with_old_data(bucket)
    storage = FaultyStorage()
    merge(storage)
    assert rows(bucket) == NEW
    taken = [(number, step) for number, (step, _) in enumerate(storage.steps) if step.startswith("s3 ")]
    assert {"s3 put", "s3 create upload", "s3 upload part", "s3 complete", "s3 delete"} <= {step for _, step in taken}
    if fault == "kill after":
        taken.pop(1)  # the lock asked for again, to see that the store refuses: nothing comes after that step
    ends = set()
    for at, step in taken:
        with_old_data(bucket)
        status = run_in_child(lambda at=at: merge(FaultyStorage(at, fault)))
        assert was_killed(status), (at, step)
        age_lock(bucket)
        report = lockgate.recover(str(ROOT))
        assert rows(bucket) in (OLD, NEW), (at, step)
        assert is_clean(bucket), (at, step)
        assert (report.finished is None) or rows(bucket) == NEW
        ends.add(rows(bucket) == NEW)
        merge()
        assert rows(bucket) == NEW
    assert ends == {False, True}


def test_a_paused_writer_whose_lock_was_taken_over_cannot_decide(bucket: Bucket) -> None:
    """It believes that it holds the lock; the journal says that another one has come."""
    with_old_data(bucket)
    s3 = S3Storage(S3Settings())
    paused = S3Folder(ROOT, s3)
    with paused.opened("paused") as opened:
        staged = opened.staging() / "a.parquet"
        pq.write_table(table(id=[99], x="paused"), staged)
        age_lock(bucket)
        merge()
        after = bucket.snapshot()
        opened._lock._alive_until = float("inf")
        with pytest.raises(DatasetBusy, match="meanwhile"):
            opened.commit({"paused.parquet": staged}, ["0.parquet"])
    assert bucket.snapshot() == after
    assert rows(bucket) == NEW
    assert is_clean(bucket)


def test_a_writer_whose_uploads_were_swept_cannot_decide(bucket: Bucket) -> None:
    with_old_data(bucket)
    s3 = S3Storage(S3Settings())
    with S3Folder(ROOT, s3).opened("paused") as opened:
        staged = opened.staging() / "a.parquet"
        pq.write_table(table(id=[99], x="paused"), staged)
        decide = opened.commit_uploads

        def swept(*arguments: Any) -> None:
            age_lock(bucket)
            assert lockgate.recover(str(ROOT)).uploads_aborted == ["s3://lake/ds/paused.parquet"]
            opened._lock._alive_until = float("inf")
            decide(*arguments)

        opened.commit_uploads = swept  # type: ignore[method-assign]
        with pytest.raises(DatasetBusy):
            opened.commit({"paused.parquet": staged}, [])
    assert rows(bucket) == OLD
    assert is_clean(bucket)


def test_a_change_is_carried_out_once_by_two(bucket: Bucket) -> None:
    """One writer is paused while it carries out its change, and another finishes it and changes the same file again."""
    with_old_data(bucket)
    with S3Folder(ROOT, S3Storage(S3Settings())).opened("slow") as opened:
        staged = opened.staging() / "a.parquet"
        pq.write_table(table(id=[0, 1, 2], x="slow"), staged)
        carry_out = opened._carry_out

        def paused(change: Any) -> None:
            age_lock(bucket)
            merge()
            carry_out(change)

        opened._carry_out = paused  # type: ignore[method-assign]
        opened.commit({"0.parquet": staged}, [])
    assert rows(bucket) == [(0, "slow"), (1, "new"), (2, "slow"), *NEW[3:]]
    assert is_clean(bucket)


def test_two_writers_take_turns(bucket: Bucket) -> None:
    with_old_data(bucket)

    def add(first: int) -> Any:
        source = table(id=[first, first + 1], x="new")
        return lockgate.merge(source, str(ROOT), strategy="upsert", key_columns="id")

    with ThreadPoolExecutor(2) as pool:
        results = list(pool.map(add, [100, 200]))
    assert [r.inserted for r in results] == [2, 2]
    assert [i for i, _ in rows(bucket)] == [0, 1, 2, 10, 11, 12, 100, 101, 200, 201]
    assert is_clean(bucket)


def test_a_live_writer_is_waited_for_and_not_taken_over(bucket: Bucket) -> None:
    with_old_data(bucket)
    with S3Folder(ROOT, S3Storage(S3Settings())).opened("alive"), pytest.raises(DatasetBusy, match="has held"):
        merge(lock_timeout=0)
    assert rows(bucket) == OLD


@pytest.mark.parametrize("verdict", ["cut before", "cut after"])
def test_a_lost_answer_to_the_decision_is_found_out(
    bucket: Bucket, monkeypatch: pytest.MonkeyPatch, verdict: str
) -> None:
    """The client tries again by itself; its second try is refused where the first has gone through."""
    with_old_data(bucket)
    cut = []

    def once(request: Any) -> str | None:
        if request.action == "Put" and request.key.endswith("_journal") and not cut:
            cut.append(request)
            return verdict
        return None

    with bucket.server.ruled(once):
        merge()
    assert cut
    assert rows(bucket) == NEW
    assert is_clean(bucket)

    with_old_data(bucket)
    impatient = S3Settings(attempts=1)
    monkeypatch.setattr("lockgate.datasets.on_s3.chosen_settings", lambda *_: impatient)
    cut.clear()
    with bucket.server.ruled(once), pytest.raises(OutcomeUnknown) as caught:
        merge()
    assert caught.value.exit_code == 3
    age_lock(bucket)
    lockgate.recover(str(ROOT))
    assert rows(bucket) == (NEW if verdict == "cut after" else OLD)
    assert is_clean(bucket)


def test_a_store_that_does_not_heed_conditions_is_refused(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    with_old_data(bucket)
    put = S3Storage.put
    monkeypatch.setattr(S3Storage, "put", lambda self, a, d, **more: put(self, a, d, **{**more, "new": False}))
    with pytest.raises(StorageError, match="does not heed"):
        merge()
    assert rows(bucket) == OLD
    assert is_clean(bucket)


def test_access_denied_and_no_bucket(bucket: Bucket) -> None:
    with_old_data(bucket)
    with bucket.server.ruled(lambda r: "AccessDenied" if r.action == "CreateUpload" else None):
        with pytest.raises(lockgate.S3Error, match="access denied") as caught:
            merge()
    assert caught.value.in_place == "nothing was written"
    assert rows(bucket) == OLD
    assert is_clean(bucket)
    with pytest.raises(lockgate.S3Error, match="there is no bucket nowhere"):
        lockgate.merge(table(id=[1], x=""), "s3://nowhere/ds", strategy="upsert", key_columns="id")


def test_only_files_that_may_hold_a_key_are_downloaded_whole(bucket: Bucket) -> None:
    import numpy as np

    with_old_data(bucket)
    for number in range(3):
        ids = np.arange(number * 1000, number * 1000 + 1000) + 1_000_000
        noise = [np.random.default_rng(int(i)).bytes(400) for i in ids]
        file = io.BytesIO()
        pq.write_table(pa.table({"id": ids, "x": [n.hex() for n in noise]}), file, row_group_size=500)
        bucket.put(f"ds/big{number}.parquet", file.getvalue())
    bucket.server.seen.clear()
    result = lockgate.merge(table(id=[1_001_500], x="new"), str(ROOT), strategy="update", key_columns="id")
    assert result.rewritten_files == ["s3://lake/ds/big1.parquet"]
    whole = {r.key for r in bucket.server.seen if r.action == "Get" and "range" not in r.headers and "big" in r.key}
    assert whole == {"ds/big1.parquet"}


def test_a_dry_run_changes_nothing(bucket: Bucket) -> None:
    with_old_data(bucket)
    before = bucket.snapshot()
    result = merge(dry_run=True)
    assert (result.inserted, result.updated) == (1, 2)
    assert bucket.snapshot() == before


def test_recover_aborts_old_uploads_and_keeps_young_ones(bucket: Bucket, project: Path) -> None:
    del project
    begun = bucket.client.create_multipart_upload(Bucket="lake", Key="ds/x.parquet")
    report = lockgate.recover(str(ROOT))
    assert report.uploads_kept == ["s3://lake/ds/x.parquet"]
    told = recover_s3(str(ROOT), now=datetime.now(UTC) + timedelta(days=2), dry_run=True)
    assert told.uploads_aborted == ["s3://lake/ds/x.parquet"]
    assert len(bucket.open_uploads()) == 1
    told = recover_s3(str(ROOT), now=datetime.now(UTC) + timedelta(days=2))
    assert told.uploads_aborted == ["s3://lake/ds/x.parquet"]
    assert bucket.open_uploads() == []
    assert begun


def test_a_damaged_journal_is_an_error(bucket: Bucket) -> None:
    with_old_data(bucket)
    bucket.put("ds/.lockgate_journal", json.dumps({"body": {}, "sha256": ""}).encode())
    with pytest.raises(lockgate.JournalError):
        merge()
    assert rows(bucket) == OLD
