"""kill -9 at every step of a run that publishes objects on S3, and an endpoint that fails at the worst moments."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from lockgate.destinations.protocol import Surroundings
from lockgate.errors import LockgateError, PartialPublish, ResumeError
from lockgate.running.progress import Silent
from lockgate.running.settle import resume
from lockgate.running.state import RunState
from lockgate.storage.local import LocalStorage
from lockgate.storage.s3_settings import S3Settings
from support.arrow_run import arrow_run, export
from support.faults import FaultyStorage, run_in_child, was_killed
from support.s3_server import Bucket

RUN = "2026-01-01T00-00-00-aaaa"
OLD, NEW = pa.table({"id": [1, 2, 3]}), pa.table({"id": [10, 20]})
APPENDED = f"b-{RUN}-2.csv"


def clock() -> datetime:
    return datetime(2026, 1, 1, tzinfo=UTC)


def exports(table: pa.Table) -> list[Any]:
    return [
        (export("s3://lake/a.csv", "CSV"), table),
        (export("s3://lake/b.csv", "CSV", "APPEND"), table),
    ]


def resumed(folder: Path) -> Any:
    return resume(RUN, RunState(folder / ".lockgate"), Surroundings(LocalStorage(), folder), Silent(), clock)


def with_old_data(bucket: Bucket) -> None:
    bucket.clear()
    bucket.put("a.csv", b"id\n1\n2\n3\n")


def is_old(bucket: Bucket) -> bool:
    return bucket.snapshot() == {"a.csv": b"id\n1\n2\n3\n"}


def is_new(bucket: Bucket) -> bool:
    return bucket.snapshot() == {"a.csv": b"id\n10\n20\n", APPENDED: b"id\n10\n20\n"}


def staging_left(folder: Path) -> list[str]:
    return [str(p) for p in folder.rglob(".staging_*")]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settings with which an endpoint that is silent is given up at once."""
    settings = S3Settings(connect_timeout=0.2, timeout=0.2, attempts=1)
    monkeypatch.setattr("lockgate.destinations.s3_place.chosen_settings", lambda *_: settings)


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["kill before", "kill after"])
def test_killed_at_every_step_then_resumed(tmp_path: Path, bucket: Bucket, fault: Any) -> None:
    kill_at_each_step(tmp_path, bucket, fault, "")


@pytest.mark.parametrize("fault", ["kill before", "kill after"])
def test_killed_at_every_request_then_resumed(tmp_path: Path, bucket: Bucket, fault: Any) -> None:
    kill_at_each_step(tmp_path, bucket, fault, "s3 ")


def kill_at_each_step(tmp_path: Path, bucket: Bucket, fault: Any, kind: str) -> None:
    with_old_data(bucket)
    storage = FaultyStorage()
    arrow_run(tmp_path / "count", exports(NEW), run=RUN, storage=storage).execute()
    assert is_new(bucket)
    taken = [step for step, _ in storage.steps]
    assert {"s3 create upload", "s3 upload part", "s3 complete"} <= set(taken)
    ends = set()
    for at in [number for number, step in enumerate(taken) if step.startswith(kind)]:
        with_old_data(bucket)
        folder = tmp_path / f"{at}"
        status = run_in_child(
            lambda folder=folder, at=at: arrow_run(
                folder, exports(NEW), run=RUN, storage=FaultyStorage(at, fault)
            ).execute()
        )
        assert was_killed(status), f"step {at} was not reached"
        try:
            result = resumed(folder)
        except ResumeError:
            assert is_old(bucket), (at, taken[at])
            ends.add("old")
        else:
            assert result.exit_code == 0
            assert is_new(bucket), (at, taken[at])
            assert resumed(folder).exit_code == 0
            assert is_new(bucket)
            ends.add("new")
        assert bucket.open_uploads() == [], (at, taken[at])
        assert staging_left(folder) == [], (at, taken[at])
    assert ends == {"old", "new"}


@pytest.mark.parametrize("at", ["CreateUpload", "UploadPart", "Complete"])
@pytest.mark.parametrize("verdict", ["AccessDenied", "cut before", "cut after", "SlowDown"])
def test_a_failing_request(tmp_path: Path, bucket: Bucket, impatient: None, at: str, verdict: str) -> None:
    del impatient
    with_old_data(bucket)
    with bucket.server.ruled(lambda r: verdict if r.action == at and r.key == "a.csv" else None):
        if (at, verdict) == ("Complete", "cut after"):  # a look at the object shows that it has happened
            assert arrow_run(tmp_path, exports(NEW), run=RUN).execute().exit_code == 0
            assert is_new(bucket)
            return
        with pytest.raises(LockgateError) as caught:
            arrow_run(tmp_path, exports(NEW), run=RUN).execute()
    assert "do-not-show-this" not in caught.value.render()
    if verdict == "AccessDenied":
        assert "access denied" in caught.value.message
        assert "s3:PutObject" in (caught.value.hint or "")
    if at != "Complete" or verdict == "AccessDenied":
        assert caught.value.exit_code == 1
        assert is_old(bucket)
    else:  # nobody can tell whether it will have happened
        assert caught.value.exit_code == 3
        assert bucket.read("a.csv") == b"id\n1\n2\n3\n"
        assert resumed(tmp_path).exit_code == 0
        assert is_new(bucket)
    assert bucket.open_uploads() == []
    assert staging_left(tmp_path) == []


def test_an_endpoint_that_stops_answering_in_the_middle(tmp_path: Path, bucket: Bucket, impatient: None) -> None:
    del impatient
    with_old_data(bucket)
    with bucket.server.ruled(
        lambda r: "silence" if r.action in ("Complete", "Head", "Abort") and begun(bucket) else None
    ):
        with pytest.raises(PartialPublish) as caught:
            arrow_run(tmp_path, exports(NEW), run=RUN).execute()
    assert caught.value.exit_code == 3
    assert f"lockgate resume {RUN}" in (caught.value.hint or "")
    assert is_old(bucket)
    assert resumed(tmp_path).exit_code == 0
    assert is_new(bucket)
    assert bucket.open_uploads() == []


def begun(bucket: Bucket) -> bool:
    """Whether publishing has begun, after which no more uploads are made."""
    return any(r.action == "Complete" for r in bucket.server.seen)
