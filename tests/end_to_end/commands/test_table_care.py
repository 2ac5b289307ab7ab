"""`lockgate table` restore, diff, vacuum, compact, analyze, alter and prune, as typed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import lockgate
from lockgate.cli.app import app
from support.care import SCHEMA, ids, rows
from support.delta_readers import by_duckdb, spelled


@pytest.fixture
def orders() -> lockgate.Table:
    Path("lockgate.toml").write_text("[profile.dev]\n")
    table = lockgate.create_table("sales.orders", SCHEMA)
    for i in (1, 2, 3):
        table.append(rows((i, f"v{i}", "d")))
    table.merge(rows((1, "changed", "d"), (9, "new", "d")), strategy="upsert", key_columns="id")
    return table


def typed(*arguments: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, ["table", *arguments], catch_exceptions=False)
    assert done.exit_code == code, done.output
    return done.output if code else done.stdout


def as_json(*arguments: str, code: int = 0) -> Any:
    done = CliRunner().invoke(app, ["table", *arguments, "--json"], catch_exceptions=False)
    assert done.exit_code == code, done.output
    return json.loads(done.stdout)


def test_restore(orders: lockgate.Table) -> None:
    assert "version 5" in typed("restore", "sales.orders", "--version", "2")
    assert ids(orders) == [1, 2]
    assert "already" in typed("restore", "sales.orders", "--version", "2")
    told = as_json("restore", "sales.orders", "--timestamp", orders.history()[1].time.isoformat())
    assert (told["version"], told["restored"], told["files_added"]) == (6, 4, 3)
    assert by_duckdb(orders.location, [6]) == [spelled(orders.to_arrow())]
    assert "has no version 99" in typed("restore", "sales.orders", "--version", "99", code=1)
    assert as_json("restore", "sales.orders", code=2)["status"] == "invalid"


@pytest.mark.usefixtures("orders")
def test_diff() -> None:
    said = typed("diff", "sales.orders", "3", "4", "--key", "id")
    assert "1 rows added, 0 removed, 1 changed" in said
    assert "changed from" in said
    told = as_json("diff", "sales.orders", "4", "3", "--key", "id")
    assert (told["added"], told["removed"], told["changed"]) == (0, 1, 1)
    assert told["rows"]["changed"] == [
        {"before": {"id": 1, "x": "changed", "day": "d"}, "after": {"id": 1, "x": "v1", "day": "d"}}
    ]
    assert "nope" in typed("diff", "sales.orders", "3", "4", "--key", "nope", code=1)


def test_compact_and_analyze(orders: lockgate.Table) -> None:
    told = as_json("compact", "sales.orders", "--target-size", "1GB", "--statistics")
    assert (told["files_removed"], told["files_added"], told["statistics"]) == (4, 1, 0)
    assert "nothing to write together" in typed("compact", "sales.orders")
    assert "became 1" in typed("compact", "sales.orders", "--zorder", "id,x")
    assert "are right" in typed("analyze", "sales.orders")
    assert ids(orders) == [1, 2, 3, 9]
    assert by_duckdb(orders.location, [orders.version]) == [spelled(orders.to_arrow())]
    assert "not a size" in typed("compact", "sales.orders", "--target-size", "much", code=2)


def test_vacuum(orders: lockgate.Table) -> None:
    before = orders.at(version=3).files().num_rows
    assert "shorter" in typed("vacuum", "sales.orders", "--retention", "0", code=2)
    said = typed("vacuum", "sales.orders", "--retention", "0", "--no-retention-check", "--dry-run")
    assert "1 files" in said
    assert "nothing was changed" in said
    told = as_json("vacuum", "sales.orders", "--retention", "0", "--no-retention-check")
    assert len(told["files"]) == 1
    assert (told["dry_run"], told["oldest_kept"]) == (False, 4)
    assert before == 3
    assert "can be restored" in typed("restore", "sales.orders", "--version", "3", code=1)
    assert by_duckdb(orders.location, [orders.version]) == [spelled(orders.to_arrow())]


def test_alter(orders: lockgate.Table) -> None:
    assert as_json("alter", "sales.orders", "--set", "owner=me")["version"] == 5
    typed("alter", "sales.orders", "--add-column", "price=decimal(10,2)")
    assert str(orders.schema.field("price").type) == "decimal128(10, 2)"
    typed("alter", "sales.orders", "--add-constraint", "known=id > 0 AND x <> 'a=b'")
    with pytest.raises(lockgate.ConstraintError):
        orders.append(rows((0, "x", "d")).append_column("price", [[None]]))
    typed("alter", "sales.orders", "--drop-constraint", "known")
    typed("alter", "sales.orders", "--unset", "owner")
    assert orders.properties == {}
    typed("alter", "sales.orders", "--set", "a=b", "--drop-constraint", "x", code=2)
    typed("alter", "sales.orders", "--widen-column", "price=decimal(12,2)", code=1)


def test_prune(orders: lockgate.Table) -> None:
    told = as_json("prune", "sales.orders", "--keep-versions", "2")
    assert (told["oldest"], told["versions"]) == (3, 3)
    assert "0 versions forgotten" in typed("prune", "sales.orders", "--keep-versions", "2", "--published")
    assert [h.version for h in orders.history()] == [4, 3]
    typed("prune", "sales.orders", code=2)
