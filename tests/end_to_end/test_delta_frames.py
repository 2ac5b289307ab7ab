"""`to_spark`: the rows that every other reader sees, at every version, with files left out by partition."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import lockgate
from interop.test_delta_readers import ALL, EMPTY, FIRST, VALUES
from lockgate.txlog.actions import Add
from lockgate.txlog.paths import from_uri
from support.delta_readers import spelled

pytestmark = pytest.mark.usefixtures("project")


def seen(frame: Any, schema: pa.Schema) -> list[str]:
    return spelled(frame.toArrow().cast(schema))


def test_all_types(spark: Any) -> None:
    with lockgate.create_table("t.all", ALL) as table:
        assert table.to_spark(spark).count() == 0
        table.append(pa.Table.from_pylist([FIRST, EMPTY], ALL))
        table.merge(pa.Table.from_pylist([{**EMPTY, "string": "x"}], ALL), strategy="update", key_columns="id")
        for version in (1, 2):
            then = table.at(version=version)
            assert seen(then.to_spark(spark), ALL) == spelled(then.to_arrow())


def test_partitions_of_every_type_in_any_zone(spark: Any) -> None:
    schema = pa.schema({"id": pa.int64(), **{name: kind for name, (kind, _) in VALUES.items()}})
    rows = [
        {"id": n, **{name: (values[n % len(values)] if n else None) for name, (_, values) in VALUES.items()}}
        for n in range(5)
    ]
    with lockgate.create_table("t.parts", schema, partition_by=list(VALUES)) as table:
        table.append(pa.Table.from_pylist(rows, schema))
        before = spark.conf.get("spark.sql.session.timeZone")
        spark.conf.set("spark.sql.session.timeZone", "America/New_York")
        try:
            assert seen(table.to_spark(spark), schema) == spelled(table.to_arrow())
        finally:
            spark.conf.set("spark.sql.session.timeZone", before)


def test_a_filter_on_a_partition_leaves_files_out(spark: Any) -> None:
    schema = pa.schema({"id": pa.int64(), "day": pa.date32(), "at": pa.timestamp("us", "UTC")})
    rows = [{"id": n, "day": date(2026, 1, 1 + n), "at": datetime(2026, 1, 1, n, tzinfo=UTC)} for n in range(3)]
    for name, column in (("t.days", "day"), ("t.moments", "at")):
        with lockgate.create_table(name, schema, partition_by=column) as table:
            table.append(pa.Table.from_pylist(rows, schema))
            for file in table.files().column("path").to_pylist()[1:]:
                Path(table.location, from_uri(file)).write_bytes(b"no Parquet")  # whoever opens it fails
            frame = table.to_spark(spark)
            assert frame.filter(frame[column] == rows[0][column]).count() == 1
            assert table.to_arrow(filter=pc.field(column) == rows[0][column]).num_rows == 1


def test_values_that_only_the_log_has(spark: Any) -> None:
    """A table whose files lie wherever their writer put them."""
    schema = pa.schema({"id": pa.int64(), "p": pa.decimal128(5, 2)})
    with lockgate.create_table("t.odd", schema, partition_by="p") as table:
        adds = []
        for n, text in enumerate(["1.50", None]):
            path = Path(table.location, f"p=9.99/{n} {{x}}%20.parquet")
            path.parent.mkdir(exist_ok=True)
            pq.write_table(pa.table({"id": [n]}), path)
            name = f"p=9.99/{n}%20%7Bx%7D%2520.parquet"
            adds.append(Add(name, {"p": text}, path.stat().st_size, 0))
        table._log.commit("t.odd", None, adds)
        expected = [{"id": 0, "p": Decimal("1.50")}, {"id": 1, "p": None}]
        assert table.to_arrow().sort_by("id").to_pylist() == expected
        assert [r.asDict() for r in table.to_spark(spark).orderBy("id").collect()] == expected
        done = table.merge([{"id": 1, "p": None}, {"id": 0, "p": Decimal("1.50")}], strategy="upsert", key_columns="id")
        assert done.updated == 2


def test_a_merge_by_spark_into_a_table(spark: Any) -> None:
    with lockgate.create_table("t.big", pa.schema({"id": pa.int64(), "p": pa.string()}), partition_by="p") as table:
        table.append([{"id": n, "p": f"{n % 2}"} for n in range(10)])
        frame = spark.createDataFrame([(3, "1"), (10, "0")], "id BIGINT, p STRING")
        done = table.merge(frame, strategy="upsert", key_columns="id")
        assert (done.engine, done.updated, done.inserted, done.version) == ("spark", 1, 1, 2)
        assert sorted(table.to_arrow().column("id").to_pylist()) == list(range(11))
