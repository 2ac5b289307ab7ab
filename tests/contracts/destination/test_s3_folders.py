"""What every destination promises, on Parquet datasets below a prefix of S3."""

from __future__ import annotations

import io
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lockgate.destinations import registry
from lockgate.destinations.protocol import ExportRequest, Prepared, Surroundings
from lockgate.errors import DuplicateKeyError, PublishError, StageError
from lockgate.modes import EXPORT_MODES, KEYED_MODES
from lockgate.storage.local import LocalStorage
from lockgate.storage.staging import StagingArea
from support.arrow_run import staged_rows
from support.s3_server import Bucket


def read_all(bucket: Bucket) -> list[int]:
    keys = [key for key in bucket.keys("out/") if "/." not in key]
    return sorted(x for key in keys for x in pq.read_table(io.BytesIO(bucket.read(key)))["id"].to_pylist())


def prepare(project: Path, table: Any, mode: str, run: str, kind: str = "PARQUET", **options: Any) -> Prepared:
    table = table if isinstance(table, pa.Table) else pa.table({"id": table})
    destination = registry.find(kind)
    assert destination is not None
    keys = ("id",) if mode in KEYED_MODES else ()
    request = ExportRequest("s3://lake/out/a", kind, mode, options, keys=keys, project=project, run=run)
    assert destination.problems(request) == []
    area = StagingArea.create(LocalStorage(), destination.staging_place(request), f"{run}-1")
    rows = staged_rows(table, destination.layout(request).shape, area.rows)
    prepared = destination.stage(request, area, rows)
    area.seal()
    area.release()
    return prepared


def publish(prepared: Prepared) -> Any:
    destination = registry.find(prepared.type)
    assert destination is not None
    return destination.publish(Prepared(**asdict(prepared)), Surroundings(LocalStorage()))


def discard(prepared: Prepared) -> None:
    destination = registry.find(prepared.type)
    assert destination is not None
    destination.discard(prepared, Surroundings(LocalStorage()))


@pytest.mark.parametrize("mode", ["APPEND", "UPSERT"])
def test_staging_shows_nothing_publishing_shows_all_and_again_changes_nothing(
    tmp_path: Path, bucket: Bucket, mode: str
) -> None:
    first = prepare(tmp_path, [1, 2], mode, "r1")
    assert read_all(bucket) == []
    assert publish(first).inserted == 2
    discard(first)
    second = prepare(tmp_path, [2, 3], mode, "r2")
    assert read_all(bucket) == [1, 2]
    outcome = publish(second)
    expected = [1, 2, 3] if mode == "UPSERT" else [1, 2, 2, 3]
    assert read_all(bucket) == expected
    before = {k: v for k, v in bucket.snapshot().items() if "/." not in k}
    assert publish(second) == outcome
    discard(second)
    assert {k: v for k, v in bucket.snapshot().items() if "/." not in k} == before
    assert bucket.open_uploads() == []
    assert not list(tmp_path.rglob(".staging_*"))


def test_publishing_again_does_not_undo_a_later_writer(tmp_path: Path, bucket: Bucket) -> None:
    old = prepare(tmp_path, pa.table({"id": [1], "x": ["old"]}), "UPSERT", "r1")
    publish(old)
    publish(prepare(tmp_path, pa.table({"id": [1], "x": ["new"]}), "UPSERT", "r2"))
    publish(old)
    key = next(k for k in bucket.keys("out/") if k.endswith(".parquet"))
    assert pq.read_table(io.BytesIO(bucket.read(key))).to_pylist() == [{"id": 1, "x": "new"}]


@pytest.mark.parametrize("mode", ["APPEND", "UPSERT"])
def test_discard_leaves_the_destination_as_it_was(tmp_path: Path, bucket: Bucket, mode: str) -> None:
    publish(prepare(tmp_path, [1], mode, "r1"))
    before = bucket.snapshot()
    prepared = prepare(tmp_path, [7], mode, "r2")
    discard(prepared)
    assert bucket.snapshot() == before
    assert bucket.open_uploads() == []


def test_rows_that_cannot_be_merged_are_refused_while_staging(tmp_path: Path, bucket: Bucket) -> None:
    with pytest.raises(DuplicateKeyError):
        prepare(tmp_path, [1, 1], "UPSERT", "r1")
    publish(prepare(tmp_path, [1], "APPEND", "r2"))
    with pytest.raises(StageError, match="do not fit"):
        prepare(tmp_path, pa.table({"id": ["one"]}), "APPEND", "r3")
    assert read_all(bucket) == [1]
    assert bucket.open_uploads() == []


def test_an_upload_that_somebody_aborted_is_an_error_and_nothing_is_published(tmp_path: Path, bucket: Bucket) -> None:
    prepared = prepare(tmp_path, [1, 2], "APPEND", "r1")
    upload = bucket.client.list_multipart_uploads(Bucket="lake")["Uploads"][0]
    bucket.client.abort_multipart_upload(Bucket="lake", Key=upload["Key"], UploadId=upload["UploadId"])
    with pytest.raises(PublishError, match="is gone"):
        publish(prepared)
    discard(prepared)
    assert read_all(bucket) == []
    assert bucket.open_uploads() == []


@pytest.mark.parametrize(
    "place", ["s3://lake/a", "s3://lake/a/", "s3://lake", "s3://lake/a.parquet", "s3://lake/a.csv"]
)
@pytest.mark.parametrize("mode", EXPORT_MODES)
@pytest.mark.parametrize("kind", ["csv", "json", "parquet"])
def test_every_mode_is_taken_or_refused_before_anything_runs(tmp_path: Path, kind: str, mode: str, place: str) -> None:
    keys = ("id",) if mode in KEYED_MODES else ()
    for type_name, options in ((kind.upper(), {}), ("S3", {"format": kind})):
        destination = registry.find(type_name)
        assert destination is not None
        request = ExportRequest(place, type_name, mode, options, keys=keys, project=tmp_path)
        complaints = destination.problems(request)
        one = place.endswith(".parquet") if kind == "parquet" else place.endswith((".csv", ".parquet"))
        folder = kind == "parquet" and not one
        refused = (mode in KEYED_MODES and not folder) or (mode == "REPLACE" and not one)
        assert [c.about for c in complaints] == (["mode"] if refused else []), complaints
        if mode == "REPLACE" and refused:
            assert "TYPE DELTA" in (complaints[0].hint or "")
