"""What every destination promises, on every destination there is."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lockgate.config import Profile
from lockgate.destinations import registry
from lockgate.destinations.folder_problems import ENGINES
from lockgate.destinations.protocol import ExportRequest, Prepared, Surroundings
from lockgate.errors import JournalError, PublishError, StageError, StorageError
from lockgate.modes import EXPORT_MODES, KEYED_MODES
from lockgate.storage.local import LocalStorage
from lockgate.storage.staging import StagingArea
from lockgate.targets.folder import FolderTarget
from support.arrow_run import snapshot, staged_rows
from support.faults import FaultyStorage
from support.postgres import Database, url_of

FORMS = {
    "csv": ("out/a.csv", "CSV"),
    "csv.gz": ("out/a.csv.gz", "CSV"),
    "json": ("out/a.json", "JSON"),
    "parquet file": ("out/a.parquet", "PARQUET"),
    "parquet folder": ("out/a", "PARQUET"),
    "parquet folder by key": ("out/a", "PARQUET"),
    "postgres": ("a", "POSTGRES"),
    "postgres by key": ("a", "POSTGRES"),
}
# What every destination can do, as the keyed modes spell it: to hold these rows alone, and to take these as well.
BY_KEY = {"REPLACE": "FULL_MERGE", "APPEND": "INSERT"}


def place_of(project: Path, form: str) -> tuple[str, dict[str, str]]:
    """Where an export goes, and its options. A database is no part of the project, so each has tables of its own."""
    name, kind = FORMS[form]
    if kind != "POSTGRES":
        return name, {}
    return f"{name}_{hashlib.sha256(str(project).encode()).hexdigest()[:16]}", {"connection": "pg"}


def profile_of(form: str) -> Profile:
    if not form.startswith("postgres"):
        return Profile()
    return Database(url_of("postgres")).profile()


def around(form: str, storage: LocalStorage | None = None) -> Surroundings:
    return Surroundings(storage or LocalStorage(), profile=profile_of(form))


def read_all(project: Path, form: str) -> list[int]:
    """Every row that a reader of this destination finds, APPENDed files included."""
    name, _ = place_of(project, form)
    if form.startswith("postgres"):
        database = Database(url_of("postgres"))
        if database.run("SELECT to_regclass(%s)::text", name) == [(None,)]:
            return []
        return [row[0] for row in database.run(f"SELECT id FROM {name} ORDER BY id")]
    if form.startswith("parquet folder"):
        files = [project / name / f for f in FolderTarget(project / name, LocalStorage()).files()]
    else:
        files = sorted((project / "out").glob("a*"))
    rows: list[int] = []
    for file in files:
        if form.startswith("parquet"):
            rows += pq.read_table(file)["id"].to_pylist()
        else:
            data = file.read_bytes()
            text = (gzip.decompress(data) if form.endswith("gz") else data).decode()
            rows += [int(x) for x in text.split() if x != "id"]
    return sorted(rows)


@pytest.fixture(params=FORMS)
def form(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def prepare(
    project: Path,
    form: str,
    ids: list[int],
    *,
    mode: str = "REPLACE",
    run: str = "r1",
    storage: LocalStorage | None = None,
) -> Prepared:
    kind = FORMS[form][1]
    name, options = place_of(project, form)
    destination = registry.find(kind)
    assert destination is not None
    by_key = form.endswith("by key")
    request = ExportRequest(
        name,
        kind,
        BY_KEY[mode] if by_key else mode,
        options,
        keys=("id",) if by_key else (),
        project=project,
        profile=profile_of(form),
        run=run,
    )
    assert destination.problems(request) == []
    place = destination.staging_place(request)
    area = StagingArea.create(storage or LocalStorage(), place, f"{run}-1")
    rows = staged_rows(pa.table({"id": ids}), destination.layout(request).shape, area.rows)
    prepared = destination.stage(request, area, rows)
    area.seal()
    area.release()
    return prepared


def publish(prepared: Prepared, storage: LocalStorage | None = None):
    destination = registry.find(prepared.type)
    assert destination is not None
    return destination.publish(prepared, around(prepared.type.lower(), storage))


def discard(prepared: Prepared) -> None:
    destination = registry.find(prepared.type)
    assert destination is not None
    destination.discard(prepared, around(prepared.type.lower()))


def test_staging_shows_nothing_and_publishing_shows_all(tmp_path: Path, form: str) -> None:
    prepared = prepare(tmp_path, form, [1, 2, 3])
    assert read_all(tmp_path, form) == []
    outcome = publish(prepared)
    discard(prepared)
    assert read_all(tmp_path, form) == [1, 2, 3]
    assert outcome.inserted == 3
    assert prepared.rows == 3


def test_replace_replaces(tmp_path: Path, form: str) -> None:
    for run, ids in (("r1", [1, 2, 3]), ("r2", [9])):
        prepared = prepare(tmp_path, form, ids, run=run)
        publish(prepared)
        discard(prepared)
    assert read_all(tmp_path, form) == [9]


def test_append_adds_and_leaves_the_old_bytes_alone(tmp_path: Path, form: str) -> None:
    first = prepare(tmp_path, form, [1, 2], mode="APPEND")
    publish(first)
    discard(first)
    before = snapshot(tmp_path)
    second = prepare(tmp_path, form, [2, 3], mode="APPEND", run="r2")
    publish(second)
    discard(second)
    assert read_all(tmp_path, form) == ([1, 2, 3] if form.endswith("by key") else [1, 2, 2, 3])
    after = snapshot(tmp_path)
    assert {name: after[name] for name in before} == before


@pytest.mark.parametrize("mode", ["REPLACE", "APPEND"])
def test_publishing_again_changes_nothing(tmp_path: Path, form: str, mode: str) -> None:
    prepared = prepare(tmp_path, form, [1, 2], mode=mode)
    first = publish(prepared)
    before = snapshot(tmp_path)
    second = publish(Prepared(**asdict(prepared)))  # as it comes back from the record
    assert snapshot(tmp_path) == before
    assert read_all(tmp_path, form) == [1, 2]
    assert second.inserted == first.inserted


def test_publishing_again_does_not_undo_a_later_writer(tmp_path: Path, form: str) -> None:
    old = prepare(tmp_path, form, [1])
    publish(old)
    new = prepare(tmp_path, form, [2], run="r2")
    publish(new)
    publish(old)
    assert read_all(tmp_path, form) == [2]


def test_discard_leaves_the_destination_as_it_was(tmp_path: Path, form: str) -> None:
    prepared = prepare(tmp_path, form, [1])
    publish(prepared)
    discard(prepared)
    before = snapshot(tmp_path)
    dropped = prepare(tmp_path, form, [2], run="r2")
    discard(dropped)
    discard(dropped)
    assert snapshot(tmp_path) == before
    with pytest.raises(PublishError, match="is gone"):
        publish(dropped)
    assert snapshot(tmp_path) == before
    assert read_all(tmp_path, form) == [1]


def test_a_new_destination_that_is_discarded_leaves_no_folder(tmp_path: Path, form: str) -> None:
    discard(prepare(tmp_path, form, [1]))
    assert list(tmp_path.iterdir()) == []


def test_a_publish_that_fails_says_whether_the_old_content_stands(tmp_path: Path, form: str) -> None:
    total = len(_steps(tmp_path / "count", form))
    for at in range(total):
        project = tmp_path / str(at)
        old = prepare(project, form, [1])
        publish(old)
        discard(old)
        new = prepare(project, form, [2], run="r2")
        with pytest.raises(StorageError):
            publish(new, FaultyStorage(at, "EIO"))
        destination = registry.find(new.type)
        assert destination is not None
        if destination.is_decided(new, around(form)):
            publish(new)
            assert read_all(project, form) == [2]
        else:
            assert read_all(project, form) == [1]
            discard(new)
            assert read_all(project, form) == [1]


def _steps(project: Path, form: str) -> list[tuple[str, Path]]:
    old = prepare(project, form, [1])
    publish(old)
    discard(old)
    storage = FaultyStorage()
    publish(prepare(project, form, [2], run="r2"), storage)
    return storage.steps


@pytest.mark.parametrize("mode", EXPORT_MODES)
def test_every_mode_is_taken_or_refused_before_anything_runs(tmp_path: Path, form: str, mode: str) -> None:
    kind = FORMS[form][1]
    name, options = place_of(tmp_path, form)
    destination = registry.find(kind)
    assert destination is not None
    keys = ("id",) if mode in KEYED_MODES else ()
    request = ExportRequest(name, kind, mode, options, keys=keys, project=tmp_path, profile=profile_of(form))
    complaints = destination.problems(request)
    refused = mode in KEYED_MODES and not form.startswith(("parquet folder", "postgres"))
    assert [c.about for c in complaints] == (["mode"] if refused else [])
    assert all(c.hint for c in complaints)


@pytest.mark.parametrize(
    ("destination", "options", "about"),
    [
        ("", {}, "destination"),
        ("out/\0", {}, "destination"),
        ("gs://bucket/x", {}, "destination"),
        ("s3://-/x", {}, "destination"),
        ("s3://bucket/../x", {}, "destination"),
        ("file:///etc/x", {}, "destination"),
        ("out/x", {"compresion": "gzip"}, "options"),
        ("out/x", {"connection": 7, "compression": 7}, "options"),
        ("out/x", {"compression": "rot13"}, "options"),
        ("out/x", {"compression": 7}, "options"),
    ],
)
@pytest.mark.parametrize("kind", registry.types())
def test_bad_requests_are_refused(tmp_path: Path, kind: str, destination: str, options: dict, about: str) -> None:
    found = registry.find(kind)
    assert found is not None
    if kind == "S3" and options:
        destination = "s3://bucket/x.csv"
    complaints = found.problems(ExportRequest(destination, kind, "REPLACE", options, project=tmp_path))
    assert about in [c.about for c in complaints]


def test_unknown_types_are_not_found() -> None:
    assert registry.find("NOPE") is None
    assert registry.types() == ("CSV", "DELTA", "JSON", "PARQUET", "POSTGRES", "S3")


def test_somebody_elses_damaged_journal_does_not_make_it_decided(tmp_path: Path) -> None:
    prepared = prepare(tmp_path, "parquet folder", [1])
    (tmp_path / "out/a/.lockgate_journal").write_text("{")
    with pytest.raises(JournalError):
        publish(prepared)
    destination = registry.find("PARQUET")
    assert destination is not None
    assert not destination.is_decided(prepared, Surroundings(LocalStorage()))
    with pytest.raises(JournalError):
        prepare(tmp_path, "parquet folder", [1], run="r2")


@pytest.mark.parametrize("form", ["csv", "json", "parquet file"])
def test_a_pipe_or_a_folder_is_not_replaced(tmp_path: Path, form: str) -> None:
    path = tmp_path / FORMS[form][0]
    path.parent.mkdir()
    os.mkfifo(path)
    with pytest.raises(StageError, match="no regular file"):
        prepare(tmp_path, form, [1])
    assert path.is_fifo()


@pytest.mark.parametrize(
    "options",
    [
        {"delimiter": '"'},
        {"delimiter": "\n"},
        {"quote": "\r"},
        {"quote": "'", "delimiter": "'"},
        {"escape": ","},
        {"delimiter": "||"},
        {"encoding": "base64"},
        {"encoding": "nope"},
    ],
)
def test_csv_options_that_no_reader_could_read_are_refused(tmp_path: Path, options: dict) -> None:
    csv = registry.find("CSV")
    assert csv is not None
    request = ExportRequest("a.csv", "CSV", "REPLACE", options, project=tmp_path)
    assert {c.about for c in csv.problems(request)} == {"options"}


def test_every_engine_that_an_export_may_name_is_one_that_merges_have() -> None:
    from lockgate.datasets import choice

    assert set(ENGINES) <= set(choice.ENGINES)


@pytest.mark.parametrize("mode", KEYED_MODES)
def test_a_merge_is_published_from_its_record_alone(tmp_path: Path, mode: str) -> None:
    """The record is JSON, and may be read by another process."""
    first = prepare(tmp_path, "parquet folder by key", [1, 2])
    publish(first)
    discard(first)
    destination = registry.find("PARQUET")
    assert destination is not None
    request = ExportRequest("out/a", "PARQUET", mode, keys=("id",), project=tmp_path, run="r2")
    area = StagingArea.create(LocalStorage(), destination.staging_place(request), "r2-1")
    assert destination.layout(request).partition_by == ()
    prepared = destination.stage(request, area, staged_rows(pa.table({"id": [2, 3]}), "rows", area.rows))
    area.seal()
    area.release()
    outcome = publish(Prepared(**json.loads(json.dumps(asdict(prepared)))))
    assert prepared.rows == 2
    expected = {"INSERT": (1, 0, 0), "UPDATE": (0, 1, 0), "FULL_MERGE": (1, 1, 1)}.get(mode, (1, 1, 0))
    assert (outcome.inserted, outcome.updated, outcome.deleted) == expected
    assert outcome.engine == "arrow"


@pytest.mark.parametrize("destination", [".", "..", "/", "./x/.."])
def test_the_projects_own_folder_is_no_dataset(tmp_path: Path, destination: str) -> None:
    parquet = registry.find("PARQUET")
    assert parquet is not None
    found = parquet.problems(ExportRequest(destination, "PARQUET", "REPLACE", project=tmp_path))
    assert [c.about for c in found] == ["destination"]
