"""Pipelines that read from S3 and write to it, on Spark."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import lockgate
from lockgate.cli.app import app
from support.s3_server import Bucket

PIPELINE = """
SOURCE orders TYPE CSV PARAMS {"path": "s3://lake/in/orders_*.csv"};
SOURCE old TYPE S3 PARAMS {"path": "s3://lake/in/old/", "format": "json"};
LOAD orders FROM orders;
LOAD old FROM old;
EXPORT SELECT id, amount FROM orders ORDER BY id TO "s3://lake/out/orders.csv" TYPE CSV MODE REPLACE;
EXPORT SELECT * FROM orders TO "s3://lake/lake/" TYPE PARQUET OPTIONS {"partition_by": ["day"]} MODE APPEND;
EXPORT SELECT id, sum(amount) AS amount FROM (SELECT id, amount FROM orders UNION ALL SELECT id, amount FROM old)
  GROUP BY id TO "s3://lake/totals" TYPE PARQUET MODE UPSERT KEY (id);
"""


def rows(bucket: Bucket, prefix: str) -> list[dict[str, Any]]:
    keys = [key for key in bucket.keys(prefix) if key.endswith(".parquet")]
    return sorted((r for k in keys for r in pq.read_table(io.BytesIO(bucket.read(k))).to_pylist()), key=str)


def test_from_s3_to_s3(project: Path, bucket: Bucket, run_sql: Callable[..., Any]) -> None:
    bucket.put("in/orders_1.csv", b"id,amount,day\n1,10,mon\n2,20,tue\n")
    bucket.put("in/orders_2.csv", b"id,amount,day\n3,30,mon\n")
    bucket.put("in/other.csv", b"not,these\n")
    bucket.put("in/old/part.json", b'{"id": 1, "amount": 5}\n')
    bucket.put("in/old/_SUCCESS", b"not json")
    result = run_sql(PIPELINE)
    assert result.status == "published"
    assert bucket.read("out/orders.csv") == b"id,amount\n1,10\n2,20\n3,30\n"
    assert rows(bucket, "lake/") == [{"id": i, "amount": i * 10} for i in (1, 2, 3)]
    assert {key.split("/")[1] for key in bucket.keys("lake/") if "day=" in key} == {"day=mon", "day=tue"}
    assert rows(bucket, "totals/") == [{"id": 1, "amount": 15}, {"id": 2, "amount": 20}, {"id": 3, "amount": 30}]
    again = run_sql(PIPELINE)
    assert [e.updated for e in again.exports] == [0, 0, 3]
    assert len(rows(bucket, "lake/")) == 6
    assert bucket.open_uploads() == []
    assert not list((project / ".lockgate").rglob(".staging_*"))

    with pytest.raises(lockgate.SourceError, match="there is no such object"):
        run_sql(PIPELINE.replace("orders_*", "nothing_*"))


def test_a_missing_source_is_found_before_spark_starts(project: Path, bucket: Bucket) -> None:
    (project / "p.sql").write_text(PIPELINE)

    class NoSession:
        def __getattr__(self, name: str) -> Any:
            raise AssertionError("Spark was asked")

    with pytest.raises(lockgate.SourceError, match="there is no such object"):
        lockgate.run("p.sql", spark=NoSession())  # type: ignore[arg-type]
    with (
        bucket.server.ruled(lambda _: "AccessDenied"),
        pytest.raises(lockgate.SourceError, match="access denied"),
    ):
        lockgate.run("p.sql", spark=NoSession())  # type: ignore[arg-type]


def test_commands_on_s3(project: Path, bucket: Bucket, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "new.csv").write_text("id,x\n1,a\n2,b\n")
    (project / "lockgate.toml").write_text(
        f'[profile.dev.connections.lake]\ntype = "s3"\nendpoint = "{bucket.server.endpoint}"\npath_style = true\n'
        'access_key_id = "testing"\nsecret_access_key = "do-not-show-this"\n'
    )
    for command in (
        ["write", "new.csv", "s3://lake/ds", "--json"],
        [
            "merge",
            "new.csv",
            "s3://lake/ds",
            "--strategy",
            "upsert",
            "--key",
            "id",
            "--s3-connection",
            "lake",
            "--json",
        ],
        ["recover", "s3://lake/ds", "--json"],
    ):
        with pytest.raises(SystemExit) as end:
            app(command)
        assert not end.value.code
        told = json.loads(capsys.readouterr().out)
    assert told["finished"] is None
    assert rows(bucket, "ds/") == [{"id": 1, "x": "a"}, {"id": 2, "x": "b"}]
    with pytest.raises(SystemExit) as end:
        app(["write", "new.csv", "s3://lake/ds", "--mode", "overwrite"])
    assert end.value.code == 2
    assert "TYPE DELTA" in capsys.readouterr().err
