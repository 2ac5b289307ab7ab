"""What every destination promises, on objects of S3."""

from __future__ import annotations

import gzip
import io
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lockgate.destinations import registry
from lockgate.destinations.protocol import ExportRequest, Prepared, Surroundings
from lockgate.errors import PublishError, StageError
from lockgate.storage.local import LocalStorage
from lockgate.storage.staging import StagingArea
from support.arrow_run import staged_rows
from support.s3_server import Bucket

FORMS = {
    "csv": ("s3://lake/out/a.csv", "CSV"),
    "csv.gz": ("s3://lake/out/a.csv.gz", "CSV"),
    "json": ("s3://lake/out/a.json", "JSON"),
    "parquet": ("s3://lake/out/a.parquet", "PARQUET"),
    "type s3": ("s3://lake/out/a.csv", "S3"),
}


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def ids_of(data: bytes, key: str) -> list[int]:
    if key.endswith("parquet"):
        return pq.read_table(io.BytesIO(data))["id"].to_pylist()
    text = (gzip.decompress(data) if key.endswith("gz") else data).decode()
    return [int(x) for x in text.split() if x != "id"]


def read_all(bucket: Bucket) -> list[int]:
    return sorted(x for key in bucket.keys("out/") for x in ids_of(bucket.read(key), key))


def prepare(project: Path, form: str, ids: list[int], *, mode: str = "REPLACE", run: str = "r1") -> Prepared:
    name, kind = FORMS[form]
    destination = registry.find(kind)
    assert destination is not None
    request = ExportRequest(name, kind, mode, project=project, run=run)
    assert destination.problems(request) == []
    area = StagingArea.create(LocalStorage(), destination.staging_place(request), f"{run}-1")
    rows = staged_rows(pa.table({"id": ids}), destination.layout(request).shape, area.rows)
    prepared = destination.stage(request, area, rows)
    area.seal()
    area.release()
    return prepared


def publish(prepared: Prepared):
    destination = registry.find(prepared.type)
    assert destination is not None
    return destination.publish(prepared, Surroundings(LocalStorage()))


def discard(prepared: Prepared) -> None:
    destination = registry.find(prepared.type)
    assert destination is not None
    destination.discard(prepared, Surroundings(LocalStorage()))


def test_staging_shows_nothing_and_publishing_shows_all(tmp_path: Path, bucket: Bucket, form: str) -> None:
    prepared = prepare(tmp_path, form, [1, 2, 3])
    assert read_all(bucket) == []
    assert len(bucket.open_uploads()) == 1
    outcome = publish(prepared)
    discard(prepared)
    assert read_all(bucket) == [1, 2, 3]
    assert (outcome.inserted, prepared.rows) == (3, 3)
    assert bucket.open_uploads() == []
    assert not list(tmp_path.rglob(".staging_*"))


def test_replace_replaces(tmp_path: Path, bucket: Bucket, form: str) -> None:
    for run, ids in (("r1", [1, 2, 3]), ("r2", [9])):
        prepared = prepare(tmp_path, form, ids, run=run)
        outcome = publish(prepared)
        discard(prepared)
    assert read_all(bucket) == [9]
    assert outcome.files == {"rewritten": 1, "added": 0, "preserved": 0}


def test_append_adds_and_leaves_the_old_bytes_alone(tmp_path: Path, bucket: Bucket, form: str) -> None:
    for run, ids in (("r1", [1, 2]), ("r2", [2, 3])):
        before = bucket.snapshot()
        prepared = prepare(tmp_path, form, ids, mode="APPEND", run=run)
        publish(prepared)
        discard(prepared)
        after = bucket.snapshot()
        assert {name: after[name] for name in before} == before
    assert read_all(bucket) == [1, 2, 2, 3]


@pytest.mark.parametrize("mode", ["REPLACE", "APPEND"])
def test_publishing_again_changes_nothing(tmp_path: Path, bucket: Bucket, form: str, mode: str) -> None:
    prepared = prepare(tmp_path, form, [1, 2], mode=mode)
    first = publish(prepared)
    before = bucket.snapshot()
    (Path(prepared.staging) / "published").unlink()  # as if it had died just before that was written down
    second = publish(Prepared(**asdict(prepared)))
    assert bucket.snapshot() == before
    assert second == first


def test_publishing_again_does_not_undo_a_later_writer(tmp_path: Path, bucket: Bucket, form: str) -> None:
    old = prepare(tmp_path, form, [1])
    publish(old)
    new = prepare(tmp_path, form, [2], run="r2")
    publish(new)
    publish(old)
    assert read_all(bucket) == [2]


def test_discard_leaves_the_destination_as_it_was(tmp_path: Path, bucket: Bucket, form: str) -> None:
    first = prepare(tmp_path, form, [1])
    publish(first)
    before = bucket.snapshot()
    prepared = prepare(tmp_path, form, [7], run="r2")
    discard(prepared)
    discard(prepared)
    assert bucket.snapshot() == before
    assert bucket.open_uploads() == []


def test_an_upload_that_somebody_aborted_is_an_error_and_nothing_is_published(
    tmp_path: Path, bucket: Bucket, form: str
) -> None:
    publish(prepare(tmp_path, form, [1]))
    before = bucket.snapshot()
    prepared = prepare(tmp_path, form, [7], run="r2")
    upload = bucket.client.list_multipart_uploads(Bucket="lake")["Uploads"][0]
    bucket.client.abort_multipart_upload(Bucket="lake", Key=upload["Key"], UploadId=upload["UploadId"])
    with pytest.raises(PublishError, match="is gone"):
        publish(prepared)
    assert bucket.snapshot() == before


def test_an_object_that_must_not_be_there_is_not_replaced(tmp_path: Path, bucket: Bucket, form: str) -> None:
    prepared = prepare(tmp_path, form, [1], mode="APPEND")
    key = prepared.instructions["object"]["key"]
    bucket.put(key, b"somebody's")
    with pytest.raises(PublishError, match="is there already"):
        publish(prepared)
    discard(prepared)
    assert bucket.snapshot() == {key: b"somebody's"}
    with pytest.raises(StageError, match="is there already"):
        prepare(tmp_path / "again", form, [1], mode="APPEND")
    assert bucket.open_uploads() == []


def test_no_rows_make_an_object(tmp_path: Path, bucket: Bucket, form: str) -> None:
    publish(prepare(tmp_path, form, []))
    assert len(bucket.keys("out/")) == 1
    assert read_all(bucket) == []


def test_an_object_of_many_parts_is_whole(tmp_path: Path, bucket: Bucket) -> None:
    ids = list(range(2_000_000))  # 13.9 MB of text: two parts
    prepared = prepare(tmp_path, "csv", ids)
    assert len(prepared.instructions["object"]["etags"]) == 2
    publish(prepared)
    assert read_all(bucket) == ids
