"""Tables that deltalake wrote are imported equal, at every version, and given back."""

from __future__ import annotations

import datetime
import json
from decimal import Decimal
from pathlib import Path

import deltalake
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from lockgate.config import Project
from lockgate.errors import LockgateError, UnsupportedFeature
from lockgate.tables.entry import open_table
from lockgate.tables.importing import import_existing
from lockgate.tables.releasing import release
from support.delta_logs import metadata, protocol, write_log

UTC = datetime.UTC


def theirs(folder: Path, version: int) -> list[dict[str, object]]:
    table = deltalake.DeltaTable(str(folder), version=version)
    return rows_of(table.to_pyarrow_table())


def rows_of(table: pa.Table) -> list[dict[str, object]]:
    return sorted(table.select(sorted(table.column_names)).to_pylist(), key=repr)


def log_of(project: Project) -> str:
    return f"sqlite:///{project.root}/.lockgate/log.db"


def same_at_every_version(project: Project, folder: Path, name: str = "t") -> None:
    imported = import_existing(project, name, folder)
    with open_table(name, log=log_of(project)) as table:
        assert table.version == imported.version == deltalake.DeltaTable(str(folder)).version()
        for version in range(imported.first_version, imported.version + 1):
            assert rows_of(table.at(version=version).to_arrow()) == theirs(folder, version), version


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


def write(folder: Path, rows: pa.Table, **options: object) -> None:
    deltalake.write_deltalake(str(folder), rows, **{"mode": "append", **options})  # type: ignore[arg-type]


def test_appended_deleted_updated_and_merged_rows(project: Project, tmp_path: Path) -> None:
    folder = tmp_path / "orders"
    for n in range(5):
        write(folder, pa.table({"id": [n, n + 10], "x": [f"a{n}", None]}))
    table = deltalake.DeltaTable(str(folder))
    table.delete("id = 3")
    table.update(predicate="id > 12", updates={"x": "'new'"})
    source = pa.table({"id": [0, 99], "x": ["merged", "added"]})
    merge = table.merge(source, "s.id = t.id", source_alias="s", target_alias="t")
    merge.when_matched_update_all().when_not_matched_insert_all().execute()
    write(folder, pa.table({"id": [7], "x": ["only"]}), mode="overwrite")
    table = deltalake.DeltaTable(str(folder))
    table.restore(4)
    same_at_every_version(project, folder)


PARTITIONS = {
    "text": pa.array(["a/b", "50%", "x y", "ü=Ω", None, "a'\"b", "plain", "%2F", "A&B?#", "__x"]),
    "day": pa.array([datetime.date(1, 1, 1), datetime.date(9999, 12, 31), None, *[datetime.date(2026, 1, 2)] * 7]),
    "at": pa.array(
        [datetime.datetime(2026, 1, 2, 3, 4, 5, n * 100, tzinfo=UTC) for n in range(9)] + [None],
        pa.timestamp("us", "UTC"),
    ),
    "number": pa.array([-(2**63), 2**63 - 1, None, 0, *range(6)], pa.int64()),
    "flag": pa.array([True, False, None, True, *[False] * 6]),
    "decimal": pa.array([Decimal("1.50"), Decimal("7.01"), None, *[Decimal("99999999.99")] * 7], pa.decimal128(10, 2)),
    "double": pa.array([1.5, -1e10, None, 0.1, *[2.0] * 6]),
    "wall": pa.array([datetime.datetime(2026, 1, 2, 3, 4, 5, 60), None] * 5, pa.timestamp("us")),
}


@pytest.mark.parametrize("column", list(PARTITIONS))
def test_partition_values_of_every_kind(column: str, project: Project, tmp_path: Path) -> None:
    folder = tmp_path / "lake" / "ünï côde"
    rows = pa.table({"p": PARTITIONS[column], "id": list(range(10))})
    write(folder, rows, partition_by=["p"])
    write(folder, rows)
    deltalake.DeltaTable(str(folder)).delete("id in (1, 4)")
    same_at_every_version(project, folder)


def test_a_partition_column_of_binary_is_refused(project: Project, tmp_path: Path) -> None:
    write(tmp_path / "t", pa.table({"p": [b"a"], "id": [1]}), partition_by=["p"])
    with pytest.raises(UnsupportedFeature, match='"p" cannot be a partition column'):
        import_existing(project, "t", tmp_path / "t")


def all_types() -> pa.Table:
    return pa.table(
        {
            "long": pa.array([1, None], pa.int64()),
            "int": pa.array([1, None], pa.int32()),
            "short": pa.array([1, None], pa.int16()),
            "byte": pa.array([1, None], pa.int8()),
            "float": pa.array([1.5, None], pa.float32()),
            "double": pa.array([float("inf"), None], pa.float64()),
            "decimal": pa.array([Decimal("1.50"), None], pa.decimal128(38, 18)),
            "string": pa.array(["ü\n\t\"'\\", None]),
            "binary": pa.array([b"\x00\xff", None]),
            "boolean": pa.array([True, None]),
            "date": pa.array([datetime.date(2026, 1, 2), None]),
            "timestamp": pa.array([datetime.datetime(2026, 1, 2, tzinfo=UTC), None], pa.timestamp("us", "UTC")),
            "ntz": pa.array([datetime.datetime(2026, 1, 2), None], pa.timestamp("us")),
            "list": pa.array([[1, None], None], pa.list_(pa.int64())),
            "map": pa.array([[("a", 1)], None], pa.map_(pa.string(), pa.int64())),
            "struct": pa.array([{"a": {"b": 1}}, None], pa.struct([("a", pa.struct([("b", pa.int64())]))])),
        }
    )


def test_all_types(project: Project, tmp_path: Path) -> None:
    folder = tmp_path / "types"
    write(folder, all_types())
    write(folder, all_types())
    same_at_every_version(project, folder)


def test_constraints_properties_and_application_transactions(project: Project, tmp_path: Path) -> None:
    folder = tmp_path / "t"
    write(folder, pa.table({"id": [1]}), configuration={"delta.logRetentionDuration": "interval 9 days"})
    table = deltalake.DeltaTable(str(folder))
    table.alter.add_constraint({"positive": "id > 0"})
    done = deltalake.CommitProperties(app_transactions=[deltalake.Transaction("loader", 7)])
    write(folder, pa.table({"id": [2]}), commit_properties=done)
    imported = import_existing(project, "t", folder)
    assert imported.constraints == ("positive",)
    assert imported.applications == 1
    with open_table("t", log=log_of(project)) as ours:
        snapshot = ours.snapshot()
        assert snapshot.metadata.configuration["delta.logRetentionDuration"] == "interval 9 days"
        assert snapshot.metadata.configuration["delta.constraints.positive"] == "id > 0"
        assert snapshot.transactions["loader"].version == 7
        assert [each.operation for each in ours.history()] == ["WRITE", "ADD CONSTRAINT", "WRITE"]


def test_rows_that_break_an_imported_rule_are_not_written(project: Project, tmp_path: Path) -> None:
    folder = tmp_path / "t"
    write(folder, pa.table({"id": [1]}))
    deltalake.DeltaTable(str(folder)).alter.add_constraint({"positive": "id > 0"})
    import_existing(project, "t", folder)
    with open_table("t", log=log_of(project)) as ours:
        for write_to in (
            lambda: ours.append(pa.table({"id": [-1]})),
            lambda: ours.overwrite(pa.table({"id": [-1]})),
            lambda: ours.merge(pa.table({"id": [-1]}), strategy="upsert", key_columns="id"),
        ):
            with pytest.raises(LockgateError, match="positive"):
                write_to()
        assert ours.version == 1


def test_rules_of_nested_columns_count_too(project: Project, tmp_path: Path) -> None:
    rule = {"delta.invariants": json.dumps({"expression": {"expression": "s.a > 0"}})}
    inside = {"name": "a", "type": "long", "nullable": True, "metadata": rule}
    schema = [{"name": "s", "type": {"type": "struct", "fields": [inside]}, "nullable": True, "metadata": {}}]
    write_log(tmp_path / "t", [protocol(), metadata(schema)])
    import_existing(project, "t", tmp_path / "t")
    with open_table("t", log=log_of(project)) as ours:
        with pytest.raises(LockgateError, match="the table has rules"):
            ours.append(pa.table({"s": pa.array([{"a": -1}])}))


def test_columns_added_and_schema_overwritten(project: Project, tmp_path: Path) -> None:
    folder = tmp_path / "t"
    write(folder, pa.table({"id": [1]}))
    write(folder, pa.table({"id": [2], "x": ["new"]}), schema_mode="merge")
    write(folder, pa.table({"other": [1.5], "p": ["a"]}), mode="overwrite", schema_mode="overwrite")
    same_at_every_version(project, folder)


def test_checkpoints_and_cleaned_logs(project: Project, tmp_path: Path) -> None:
    folder = tmp_path / "t"
    for n in range(30):
        write(folder, pa.table({"p": [str(n % 3)], "id": [n]}), partition_by=["p"])
        if n in (12, 20):
            deltalake.DeltaTable(str(folder)).create_checkpoint()
    deltalake.DeltaTable(str(folder)).delete("id < 5")
    for version in range(15):
        (folder / "_delta_log" / f"{version:020}.json").unlink()
    imported = import_existing(project, "t", folder)
    assert (imported.first_version, imported.version) == (20, 30)
    assert "versions before 20" in imported.notes[0]
    with open_table("t", log=log_of(project)) as table:
        for version in range(20, 31):
            assert rows_of(table.at(version=version).to_arrow()) == theirs(folder, version)
        with pytest.raises(Exception, match="19"):
            table.at(version=19)


def test_vacuumed_tables_are_read_at_the_versions_that_are_left(project: Project, tmp_path: Path) -> None:
    folder = tmp_path / "t"
    for n in range(4):
        write(folder, pa.table({"id": [n]}))
    table = deltalake.DeltaTable(str(folder))
    table.optimize.compact()
    table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    import_existing(project, "t", folder)
    with open_table("t", log=log_of(project)) as ours:
        assert rows_of(ours.to_arrow()) == [{"id": n} for n in range(4)]


def test_time_travel_by_timestamp_is_as_before(project: Project, tmp_path: Path) -> None:
    import os

    folder = tmp_path / "t"
    for n in range(4):
        write(folder, pa.table({"id": [n]}))
        os.utime(folder / "_delta_log" / f"{n:020}.json", (1_000_000 + n * 100, 1_000_000 + n * 100))
    import_existing(project, "t", folder)
    with open_table("t", log=log_of(project)) as ours:
        for n in range(4):
            moment = datetime.datetime.fromtimestamp(1_000_000 + n * 100 + 50, UTC)
            assert ours.at(timestamp=moment).version == n


def test_a_table_is_written_to_after_import_and_by_others_after_release(project: Project, tmp_path: Path) -> None:
    folder = tmp_path / "t"
    write(folder, pa.table({"p": ["a", "b"], "id": [1, 2], "x": ["o", "o"]}), partition_by=["p"])
    write(folder, pa.table({"p": ["a", "c"], "id": [3, 4], "x": ["o", "o"]}))
    import_existing(project, "t", folder)
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}
    with open_table("t", log=log_of(project)) as ours:
        ours.append(pa.table({"p": ["ü/%"], "id": [5], "x": ["appended"]}))
        result = ours.merge(
            pa.table({"p": ["a", "d"], "id": [1, 6], "x": ["merged", "new"]}),
            strategy="upsert",
            key_columns=["p", "id"],
        )
        assert (result.inserted, result.updated) == (1, 1)
        wanted = rows_of(ours.to_arrow())
    assert {path: path.stat().st_mtime_ns for path in before} == before
    released = release(project, "t", log=log_of(project))
    assert released.version == 3
    table = deltalake.DeltaTable(str(folder))
    assert table.version() == 3
    assert rows_of(table.to_pyarrow_table()) == wanted
    write(folder, pa.table({"p": ["z"], "id": [9], "x": ["theirs"]}))
    deltalake.DeltaTable(str(folder)).create_checkpoint()
    same_at_every_version(project, folder)  # released, it can be imported again


@pytest.mark.slow
def test_a_thousand_versions(project: Project, tmp_path: Path) -> None:
    folder = tmp_path / "t"
    for n in range(1_000):
        write(folder, pa.table({"id": [n]}), post_commithook_properties=deltalake.PostCommitHookProperties(True, False))
    imported = import_existing(project, "t", folder)
    assert (imported.first_version, imported.version, imported.files) == (0, 999, 1_000)
    with open_table("t", log=log_of(project)) as ours:
        for version in (0, 1, 500, 999):
            assert rows_of(ours.at(version=version).to_arrow()) == theirs(folder, version)
            assert pc.max(ours.at(version=version).to_arrow()["id"]).as_py() == version
