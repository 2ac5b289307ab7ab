"""Sources with a cursor, run after run: every row exactly once under APPEND, whatever is equal, late, or repeated."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pyarrow.parquet as pq
import pytest

import lockgate
from lockgate.running.state import RunState
from support.postgres import Database

PIPELINE = """
SOURCE orders FROM "shop" OPTIONS {"table": "public.orders", "cursor": "updated_at", "partitions": 3};
LOAD orders_raw FROM orders;
CHECK "no negative amount" AS SELECT * FROM orders_raw WHERE amount < 0;
EXPORT SELECT id, amount, note FROM orders_raw TO "out/orders" TYPE PARQUET MODE APPEND;
"""


@pytest.fixture
def shop(database: Database, project: Path) -> Iterator[psycopg.Connection]:
    """A database with a table of orders, and a project that knows it."""
    (project / "lockgate.toml").write_text(
        f'[profile.dev.connections.shop]\ntype = "postgres"\nurl = "{database.url}"\n', encoding="utf-8"
    )
    with database.session() as session:
        session.execute("CREATE TABLE orders (id int, amount numeric(10,2), note text, updated_at timestamptz)")
        yield session


def add(shop: psycopg.Connection, *rows: tuple[int, str]) -> None:
    """Rows that are equal but for what is given: the id and the time."""
    with shop.cursor() as cursor:
        cursor.executemany("INSERT INTO orders VALUES (%s, 1.50, 'x', %s)", rows)


def published(project: Path, name: str = "out/orders") -> list[int]:
    return sorted(n for f in (project / name).glob("*.parquet") for n in pq.read_table(f)["id"].to_pylist())


def mark(project: Path, source: str = "orders") -> Any:
    return RunState(project / ".lockgate").watermarks("pipeline.sql", "dev")[source]


def test_rows_equal_to_the_watermark_are_neither_lost_nor_repeated(
    shop: psycopg.Connection, project: Path, run_sql: Callable[..., Any]
) -> None:
    add(shop, (1, "2026-01-01T10:00:00Z"), (2, "2026-01-01T12:00:00.000001Z"), (2, "2026-01-01T12:00:00.000001Z"))
    run_sql(PIPELINE)
    assert published(project) == [1, 2, 2]
    first = mark(project)
    assert first.version == 1
    assert first.watermark.value == "2026-01-01T12:00:00.000001+00:00"
    assert sum(first.watermark.seen.values()) == 2

    # One more that is equal in every column, one that is equal in time alone; a late one is not looked for.
    add(shop, (2, "2026-01-01T12:00:00.000001Z"), (3, "2026-01-01T12:00:00.000001Z"), (99, "2026-01-01T11:00:00Z"))
    run_sql(PIPELINE)
    assert published(project) == [1, 2, 2, 2, 3]
    run_sql(PIPELINE)
    assert published(project) == [1, 2, 2, 2, 3]
    assert mark(project).version == 2, "a run that found nothing moved the watermark"

    # A failed CHECK, then a failed query: nothing is published, and the watermark stays.
    add(shop, (4, "2026-01-02T00:00:00Z"))
    shop.execute("INSERT INTO orders VALUES (5, -1, 'x', '2026-01-03T00:00:00Z')")
    with pytest.raises(lockgate.CheckFailed):
        run_sql(PIPELINE)
    assert mark(project).version == 2
    shop.execute("UPDATE orders SET amount = 1 WHERE amount < 0")
    run_sql(PIPELINE)
    assert published(project) == [1, 2, 2, 2, 3, 4, 5]

    # NULL in the cursor has no place among the rows, also later.
    shop.execute("INSERT INTO orders VALUES (6, 1, 'x', NULL)")
    with pytest.raises(lockgate.SourceError) as raised:
        run_sql(PIPELINE)
    assert "the cursor updated_at is NULL in 1 row" in raised.value.render()
    assert "pipeline.sql:2:" in raised.value.render()
    shop.execute("DELETE FROM orders WHERE id = 6")

    # The backfill of a range takes it again and leaves the watermark.
    before = mark(project)
    run_sql(PIPELINE, backfill=("2026-01-02", "2026-01-03"))
    assert published(project) == [1, 2, 2, 2, 3, 4, 4, 5]
    assert mark(project) == before

    # From the beginning: all rows, the late one too.
    run_sql(PIPELINE.replace("APPEND", "REPLACE"), full_refresh=True)
    assert published(project) == [1, 2, 2, 2, 3, 4, 5, 99]
    assert mark(project).version == before.version + 1


def test_lookback_finds_late_rows_and_repeats_none(
    shop: psycopg.Connection, project: Path, run_sql: Callable[..., Any]
) -> None:
    pipeline = PIPELINE.replace('"partitions": 3', '"lookback": "1 hour"')
    add(shop, (1, "2026-01-01T10:00:00Z"), (2, "2026-01-01T11:30:00Z"), (3, "2026-01-01T12:00:00Z"))
    run_sql(pipeline)
    add(shop, (4, "2026-01-01T11:00:00Z"), (5, "2026-01-01T10:59:59Z"), (3, "2026-01-01T12:00:00Z"))
    shop.execute("UPDATE orders SET note = 'changed' WHERE id = 2")
    run_sql(pipeline)
    assert published(project) == [1, 2, 2, 3, 3, 4], "5 is older than the lookback; 2 has changed, so it is new"
    # A longer lookback does not reach behind what is remembered: that would repeat rows.
    run_sql(pipeline.replace("1 hour", "1 day"))
    assert published(project) == [1, 2, 2, 3, 3, 4]
    # A column more does not make old rows new.
    shop.execute("ALTER TABLE orders ADD COLUMN more int")
    add_one = "INSERT INTO orders VALUES (6, 1, 'x', '2026-01-01T12:00:00Z', 7)"
    shop.execute(add_one)
    run_sql(pipeline)
    assert published(project) == [1, 2, 2, 3, 3, 4, 6]
    shop.execute("ALTER TABLE orders DROP COLUMN amount CASCADE")
    with pytest.raises(lockgate.SourceError, match="amount is gone since the last run"):
        run_sql(pipeline.replace("amount < 0", "id < 0").replace("id, amount, note", "id"))


def test_cursors_of_files(project: Path, run_sql: Callable[..., Any]) -> None:
    folder = project / "in"
    folder.mkdir()

    def put(name: str, *ids: int) -> None:
        (folder / name).write_text("".join(f'{{"id": {n}, "day": "2026-01-{n:02}"}}\n' for n in ids))

    by_file = """
        SOURCE days TYPE JSON PARAMS {"path": "in", "schema": "id INT, day DATE", "cursor": "_file"};
        LOAD t FROM days;
        EXPORT t TO "out/by_file" TYPE PARQUET MODE APPEND;
    """
    by_day = by_file.replace('"_file"', '"day", "lookback": "1 day"').replace("by_file", "by_day")
    put("a.json", 1, 3)
    for _ in range(2):
        run_sql(by_file)
        run_sql(by_day, name="day.sql")
    put("b.json", 2, 4, 1)
    run_sql(by_file)
    run_sql(by_day, name="day.sql")
    assert published(project, "out/by_file") == [1, 1, 2, 3, 4]
    assert published(project, "out/by_day") == [1, 2, 3, 4], "day 1 is behind the lookback of a day"
    assert [*mark(project, "days").watermark.seen] == ["in/a.json", "in/b.json"]

    run_sql(by_file, backfill=("in/b.json", None))
    assert published(project, "out/by_file") == [1, 1, 1, 2, 2, 3, 4, 4]
    put("a.json", 1, 3, 5)
    with pytest.raises(lockgate.SourceError, match=r"in/a\.json has changed since a run read it"):
        run_sql(by_file)
    with pytest.raises(lockgate.ConfigError, match="must be values of the cursor day"):
        run_sql(by_day, name="day.sql", backfill=("yesterday", None))
    with pytest.raises(lockgate.ConfigError, match="exclude each other"):
        run_sql(by_day, name="day.sql", backfill=("2026-01-01", None), full_refresh=True)
    with pytest.raises(lockgate.SourceError, match="read by day"):
        run_sql(by_day.replace('"day", "lookback": "1 day"', '"id"'), name="day.sql")
    with pytest.raises(lockgate.SourceError, match="does not fit the cursor id"):
        run_sql(by_day.replace('"day"', '"id"'), name="other.sql")


def test_a_file_that_changes_while_it_is_read(
    project: Path, run_sql: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    from lockgate.running import pipeline

    source = project / "a.json"
    source.write_text('{"id": 1}\n')
    real = pipeline.stage_rows

    def stage(*given: Any) -> Any:
        staged = real(*given)
        source.write_text('{"id": 1}\n{"id": 2}\n')
        return staged

    monkeypatch.setattr(pipeline, "stage_rows", stage)
    text = """
        SOURCE a TYPE JSON PARAMS {"path": "a.json", "schema": "id INT", "cursor": "id"};
        LOAD t FROM a;
        EXPORT t TO "out/a" TYPE PARQUET MODE APPEND;
    """
    with pytest.raises(lockgate.SourceError, match="has changed while it was read"):
        run_sql(text)
    assert not (project / "out").exists()
    monkeypatch.undo()
    os.chdir(project)
    run_sql(text)
    assert published(project, "out/a") == [1, 2]
    assert json.loads(json.dumps(mark(project, "a").watermark.to_json()))["value"] == "2"
