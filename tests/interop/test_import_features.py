"""Tables with deletion vectors and mapped columns: read as another reader reads them, and kept right in merges."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from lockgate.config import Project
from lockgate.errors import DamagedLog, UnsupportedFeature
from lockgate.tables.entry import open_table
from lockgate.tables.importing import import_existing
from lockgate.tables.places import log_address
from lockgate.tables.releasing import release
from support.deletion_vectors import in_file, inline
from support.delta_logs import SCHEMA, add, info, metadata, protocol, remove, write_commit, write_log

OLDER = Path(sys.executable).parents[1] / "older" / "duckdb-1.5"
SCRIPT = """
import duckdb, json, sys, pathlib, duckdb_extension_delta as d
c = duckdb.connect(config={'allow_unsigned_extensions': 'true'})
e = next(pathlib.Path(d.__file__).parent.rglob('*.duckdb_extension'))
c.execute(f"LOAD '{e}'")
out = []
for v in json.loads(sys.argv[2]):
    found = c.execute('SELECT * FROM delta_scan(?, version => ?)', [sys.argv[1], v])
    names = [each[0] for each in found.description]
    out.append([dict(zip(names, row)) for row in found.fetchall()])
print(json.dumps(out, default=str))
"""
VECTORS = protocol(3, 7, ["deletionVectors"], ["deletionVectors"])
ENABLED = {"delta__enableDeletionVectors": "true"}


def by_duckdb(table: Path, versions: Sequence[int]) -> list[list[dict[str, Any]]]:
    """The rows as an independent reader sees them, at each version."""
    said = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(table), json.dumps(list(versions))],
        env={**os.environ, "PYTHONPATH": str(OLDER)}, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert said.returncode == 0, said.stderr
    return [sorted_rows(rows) for rows in json.loads(said.stdout.splitlines()[-1])]


def sorted_rows(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: sorted((k, str(v)) for k, v in row.items()))


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


def data_file(table: Path, name: str, ids: Sequence[int], **more: Any) -> dict[str, Any]:
    """A data file of one row an id, and its add."""
    path = table / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"id": pa.array(ids, pa.int64()), "x": [f"x{n}" for n in ids]}), path, row_group_size=100)
    bounds = {"minValues": {"id": min(ids)}, "maxValues": {"id": max(ids)}, "nullCount": {"id": 0, "x": 0}}
    stats = json.dumps({"numRecords": len(ids), **bounds})
    return dict(add(name, size=path.stat().st_size, stats=stats, **more))


XSCHEMA = [SCHEMA[0], {**SCHEMA[1], "name": "x"}]


@pytest.fixture
def with_vectors(tmp_path: Path) -> Path:
    """Three files; rows of two of them are deleted, of one of them twice."""
    table = tmp_path / "lake" / "t"
    a, b, c = (data_file(table, f"{n}.parquet", range(k * 1_000, k * 1_000 + 1_000)) for k, n in enumerate("abc"))
    first, second = in_file(table, [list(range(0, 1_000, 2)), [5, 6, 999]], "pq")
    more = inline([0, 1, 2, 3, 5, 999])

    def deleted(one: dict[str, Any], vector: dict[str, Any]) -> dict[str, Any]:
        return {"add": {**one["add"], "deletionVector": vector}}

    write_log(
        table,
        [info(), VECTORS, metadata(XSCHEMA, **ENABLED), a, b, c],
        [info(), remove("a.parquet"), deleted(a, first)],
        [info(), remove("b.parquet"), deleted(b, second)],
        [info(), remove("b.parquet", deletionVector=second), deleted(b, more)],
    )
    return table


def ours(table: Any) -> list[dict[str, Any]]:
    return sorted_rows(table.to_arrow().to_pylist())


def test_deleted_rows_are_not_read_at_any_version(with_vectors: Path, project: Project) -> None:
    imported = import_existing(project, "t", with_vectors)
    assert imported.version == 3
    theirs = by_duckdb(with_vectors, range(4))
    assert [len(rows) for rows in theirs] == [3_000, 2_500, 2_497, 2_494]
    with open_table("t", log=log_address(project)) as table:
        for version in range(4):
            assert ours(table.at(version=version)) == theirs[version]
        assert table.to_arrow(["x"], pc.field("id") == 1_004).to_pylist() == [{"x": "x1004"}]
        assert table.to_arrow(["x"], pc.field("id") == 1_005).num_rows == 0
        assert sum(table.files()["rows"].to_pylist()) == 2_494


@pytest.mark.parametrize("engine", ["arrow", "duckdb"])
def test_merges_keep_deleted_rows_deleted(engine: str, with_vectors: Path, project: Project) -> None:
    import_existing(project, "t", with_vectors)
    with open_table("t", log=log_address(project)) as table:
        # 4 and 1005 were deleted, so they are new; 7 and 2500 are there.
        source = pa.table({"id": [4, 7, 1_005, 2_500, 9_000], "x": ["n"] * 5})
        result = table.merge(source, strategy="upsert", key_columns="id", engine=engine)
        assert (result.inserted, result.updated) == (3, 2)
        assert (result.target_count_before, result.target_count_after) == (2_494, 2_497)
        wanted = ours(table)
        assert len(wanted) == 2_497
        assert table.append(pa.table({"id": [9_001], "x": ["appended"]})).version == 5
        removed = table.merge(pa.table({"id": [9_001], "x": ["kept"]}), strategy="full_merge", key_columns="id")
        assert removed.deleted == 2_497
        assert ours(table) == [{"id": 9_001, "x": "kept"}]
        assert ours(table.at(version=4)) == wanted
    release(project, "t", log=log_address(project))
    assert by_duckdb(with_vectors, [3, 4, 6]) == [by_duckdb(with_vectors, [3])[0], wanted, [{"id": 9_001, "x": "kept"}]]
    assert not list(with_vectors.glob(".staging*"))


def test_a_checkpoint_that_is_published_here_keeps_deleted_rows_deleted(with_vectors: Path, project: Project) -> None:
    write_commit(with_vectors, 4, [info(), metadata(XSCHEMA, **ENABLED, delta__checkpointInterval="5")])
    import_existing(project, "t", with_vectors)
    with open_table("t", log=log_address(project)) as table:
        table.append(pa.table({"id": [9_001], "x": ["appended"]}))
        wanted = ours(table)
    release(project, "t", log=log_address(project))
    log = with_vectors / "_delta_log"
    assert (log / f"{5:020}.checkpoint.parquet").exists()
    for version in range(5):
        (log / f"{version:020}.json").unlink()
    assert by_duckdb(with_vectors, [5]) == [wanted]
    assert import_existing(project, "again", with_vectors).first_version == 5
    with open_table("again", log=log_address(project)) as table:
        assert ours(table) == wanted


def test_an_overwrite_removes_files_with_their_vectors(with_vectors: Path, project: Project) -> None:
    import_existing(project, "t", with_vectors)
    with open_table("t", log=log_address(project)) as table:
        table.overwrite(pa.table({"id": [1], "x": ["only"]}))
        assert ours(table) == [{"id": 1, "x": "only"}]
    release(project, "t", log=log_address(project))
    assert by_duckdb(with_vectors, [4]) == [[{"id": 1, "x": "only"}]]


def test_whoever_does_not_know_of_deleted_rows_is_refused(with_vectors: Path, project: Project) -> None:
    import_existing(project, "t", with_vectors)
    with open_table("t", log=log_address(project)) as table:
        with pytest.raises(UnsupportedFeature, match="deletionVectors"):
            table.snapshot()
        with pytest.raises(UnsupportedFeature, match="deletionVectors"):
            table.to_spark(None)
        assert table.at(version=0).snapshot().files.num_rows == 3


def test_a_vector_that_is_missing_or_of_another_file_is_named(with_vectors: Path, project: Project) -> None:
    import_existing(project, "t", with_vectors)
    next(with_vectors.glob("pq/*.bin")).unlink()
    with open_table("t", log=log_address(project)) as table:
        with pytest.raises(Exception, match="deletion vector"):
            table.to_arrow()
        with pytest.raises(Exception, match="deletion vector"):
            table.merge(pa.table({"id": [7], "x": ["n"]}), strategy="upsert", key_columns="id")
        assert table.version == 3


def test_hostile_vectors_are_refused_by_the_import(tmp_path: Path, project: Project) -> None:
    table = tmp_path / "t"
    one = data_file(table, "a.parquet", [1, 2])
    (vector,) = in_file(table, [[0]])
    for fields, said in (
        ({"pathOrInlineDv": "../../x" + vector["pathOrInlineDv"]}, "leaves the table"),
        ({"storageType": "p", "pathOrInlineDv": "s3://bucket/x.bin"}, "absolute"),
        ({"storageType": "z"}, "stored as 'z'"),
    ):
        write_log(table, [VECTORS, metadata(XSCHEMA), {"add": {**one["add"], "deletionVector": {**vector, **fields}}}])
        with pytest.raises(DamagedLog, match=said):
            import_existing(project, "t", table)
    bare = {**one["add"], "deletionVector": vector, "stats": None}
    write_log(table, [VECTORS, metadata(XSCHEMA), {"add": bare}])
    with pytest.raises(DamagedLog, match="how many rows"):
        import_existing(project, "t", table)


def column(name: str, type_: Any, physical: str, number: int) -> dict[str, Any]:
    mapped = {"delta.columnMapping.physicalName": physical, "delta.columnMapping.id": number}
    return {"name": name, "type": type_, "nullable": True, "metadata": mapped}


MAPPED = [
    column("id", "long", "col-1", 1),
    column("day", "date", "col-2", 2),
    column("in", {"type": "struct", "fields": [column("a b", "long", "col-4", 4)]}, "col-3", 3),
]


@pytest.fixture
def mapped(tmp_path: Path) -> Path:
    """A table whose columns were renamed and dropped, without a file written again."""
    table = tmp_path / "m"
    nested = pa.array([{"col-4": 5}, None], pa.struct([("col-4", pa.int64())]))
    rows = pa.table({"col-1": pa.array([1, 2], pa.int64()), "col-3": nested, "col-9": ["dropped"] * 2})
    (table / "xy").mkdir(parents=True)
    pq.write_table(rows, table / "xy" / "a.parquet")
    size = (table / "xy" / "a.parquet").stat().st_size
    mode = {"delta__columnMapping__mode": "name", "delta__columnMapping__maxColumnId": "9"}
    stats = json.dumps({"numRecords": 2, "minValues": {"col-1": 1}, "maxValues": {"col-1": 2}})
    one = add("xy/a.parquet", {"col-2": "2026-01-02"}, size=size, stats=stats)
    renamed = [{**MAPPED[0], "name": "the id"}, *MAPPED[1:]]
    write_log(
        table,
        [info(), protocol(2, 5), metadata(MAPPED, ["day"], **mode), one],
        [info(), metadata([*renamed, column("new", "string", "col-10", 10)], ["day"], **mode)],
    )
    return table


def test_mapped_columns_are_read_under_the_names_of_each_version(mapped: Path, project: Project) -> None:
    import_existing(project, "m", mapped)
    theirs = by_duckdb(mapped, [0, 1])
    with open_table("m", log=log_address(project)) as table:
        for version in (0, 1):
            found = table.at(version=version).to_arrow()
            assert [str(day) for day in found["day"].to_pylist()] == ["2026-01-02"] * 2
            # DuckDB 1.5 looks for a mapped partition column's value under its new name, and shows NULL.
            rows = [{**row, "day": None} for row in found.to_pylist()]
            assert sorted_rows(rows) == sorted_rows([{**row, "day": None} for row in theirs[version]])
        assert table.schema.names == ["the id", "day", "in", "new"]
        assert table.to_arrow(["day"], pc.field("the id") == 2).num_rows == 1
        assert table.to_arrow(["in"], pc.field("the id") == 1).to_pylist() == [{"in": {"a b": 5}}]


def test_mapped_columns_are_not_written_to(mapped: Path, project: Project) -> None:
    import_existing(project, "m", mapped)
    with open_table("m", log=log_address(project)) as table:
        rows = table.to_arrow()
        for write in (
            lambda: table.append(rows),
            lambda: table.overwrite(rows),
            lambda: table.merge(rows, strategy="upsert", key_columns="the id"),
            lambda: table.snapshot(),
        ):
            with pytest.raises(UnsupportedFeature, match="columnMapping"):
                write()
        assert table.version == 1
    release(project, "m", log=log_address(project))


def test_columns_mapped_by_id_are_refused(mapped: Path, project: Project) -> None:
    write_commit(mapped, 2, [metadata(MAPPED, ["day"], delta__columnMapping__mode="id")])
    with pytest.raises(UnsupportedFeature, match="columnMapping"):
        import_existing(project, "m", mapped)


def test_compaction_never_brings_deleted_rows_back(with_vectors: Path, project: Project) -> None:
    import_existing(project, "t", with_vectors)
    with open_table("t", log=log_address(project)) as table:
        before = ours(table)
        table.compact()
        assert ours(table) == before
