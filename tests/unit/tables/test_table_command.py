"""`lockgate table`: what the commands print, and how they end."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

import lockgate
from lockgate.cli.app import app


def told(*arguments: str, code: int = 0) -> Any:
    result = CliRunner().invoke(app, ["table", *arguments, "--json"])
    assert result.exit_code == code, result.output
    return json.loads(result.stdout)


@pytest.fixture
def made(project: Path) -> Any:
    (project / "schema.json").write_text('{"id": "long", "day": "date", "s": {"type": "array", "elementType": "long"}}')
    return told("create", "sales.daily", "--schema", "schema.json", "--partition-by", "day")


def test_create_show_list_history_publish_migrate(made: Any, project: Path) -> None:
    assert made == {"table": "sales.daily", "version": 0, "location": str(project / "warehouse/sales/daily")}
    shown = told("show", "sales.daily")
    assert [(c["name"], c["type"]) for c in shown["columns"]] == [("id", "long"), ("day", "date"), ("s", "array<long>")]
    assert (shown["partition_by"], shown["rows"], shown["published"]) == (["day"], 0, 0)
    assert [t["table"] for t in told("list")["tables"]] == ["sales.daily"]
    assert [v["operation"] for v in told("history", "sales.daily")["versions"]] == ["CREATE TABLE"]
    assert told("publish") == {"published": {"sales.daily": 0}}
    assert told("migrate")["schema_version"] >= 1


@pytest.mark.usefixtures("made")
def test_an_older_log_is_migrated_before_anything_else(monkeypatch: pytest.MonkeyPatch) -> None:
    from lockgate.txlog import sqlite_store

    newer = [*sqlite_store.scripts("sqlite"), ["CREATE TABLE dl_later (n INTEGER)"]]
    monkeypatch.setattr(sqlite_store, "scripts", lambda _: newer)
    assert "lockgate table migrate" in json.dumps(told("list", code=1))
    assert told("migrate") == told("migrate") == {"schema_version": 2}
    assert [t["table"] for t in told("list")["tables"]] == ["sales.daily"]


def test_columns_like_those_of_a_file(project: Path) -> None:
    pq.write_table(pa.table({"n": pa.array([1], pa.uint8())}), project / "like.parquet")
    assert told("create", "t", "--like", "like.parquet")["version"] == 0
    with lockgate.open_table("t") as table:
        assert table.schema == pa.schema({"n": pa.int16()})


@pytest.mark.usefixtures("made")
@pytest.mark.parametrize(
    ("arguments", "said", "code"),
    [
        (("show", "sales.dayly"), "did you mean sales.daily?", 1),
        (("history", "nothing"), "there is no table nothing", 1),
        (("publish", "nothing"), "there is no table nothing", 1),
        (("create", "sales.daily", "--schema", "schema.json"), "a table sales.daily already", 1),
        (("create", "x"), "--schema or --like", 2),
        (("create", "a/b", "--schema", "schema.json"), "not the name of a table", 2),
        (("create", "x", "--schema", "missing.json"), "missing.json", 1),
    ],
)
def test_mistakes(arguments: tuple[str, ...], said: str, code: int) -> None:
    result = CliRunner().invoke(app, ["table", *arguments])
    assert result.exit_code == code
    assert said in result.output
    assert "Traceback" not in result.output
