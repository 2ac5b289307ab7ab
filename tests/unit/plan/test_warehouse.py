"""Tables that outlive the run: each is published by an export of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from lockgate.config import Profile
from lockgate.destinations.csv import CsvDestination
from lockgate.errors import PipelineError
from lockgate.language import parse
from lockgate.language.statements import ExportStep
from lockgate.plan import make_plan
from lockgate.plan.steps import Plan

SOURCE = 'SOURCE s TYPE CSV PARAMS {"path": "s.csv"};'


class AnyDestination(CsvDestination):
    def problems(self, request):
        del request
        return []


def plan(text: str, tables: str = "warehouse") -> Plan:
    return make_plan(
        parse(text), pipeline="p.sql", project=Path(), profile=Profile(tables=tables), find=lambda _: AnyDestination()
    )


def published(text: str) -> list[tuple[str, str, int]]:
    exports = [step.statement for step in plan(text).exports]
    return [(e.destination_uri, e.mode, len(e.brought_by)) for e in exports if isinstance(e, ExportStep)]


def test_tables_in_memory_are_not_published() -> None:
    assert plan("CREATE TABLE a AS SELECT 1;", tables="memory").exports == ()


def test_each_table_is_published_after_it_is_made() -> None:
    text = f"{SOURCE} LOAD a FROM s; CREATE TABLE b MODE UPSERT KEY (id) AS SELECT * FROM a;"
    assert published(text) == [("a", "REPLACE", 0), ("b", "UPSERT", 1)]
    assert [(step.kind, step.name) for step in plan(text).steps] == [
        ("source", "s"), ("load", "a"), ("create", "b"), ("export", "table a"), ("export", "table b"),
    ]  # fmt: skip


def test_several_appends_are_published_as_one() -> None:
    assert published(f"{SOURCE} LOAD a FROM s MODE APPEND; LOAD a FROM s MODE APPEND;") == [("a", "APPEND", 2)]


def test_a_table_that_begins_anew_is_published_whole() -> None:
    assert published(f"{SOURCE} LOAD a FROM s; LOAD a FROM s MODE UPSERT KEY (id);") == [("a", "REPLACE", 0)]


def test_two_merges_into_one_table_are_refused() -> None:
    with pytest.raises(PipelineError, match="changes it already"):
        plan(f"{SOURCE} LOAD a FROM s MODE APPEND; LOAD a FROM s MODE UPSERT KEY (id);")


def test_an_incremental_table_needs_a_warehouse() -> None:
    text = "CREATE TABLE a MODE INCREMENTAL BY day AS SELECT DATE'2026-01-01' AS day;"
    assert published(text) == [("a", "INCREMENTAL", 1)]
    with pytest.raises(PipelineError, match='set tables = "warehouse"'):
        plan(text, tables="memory")


def test_an_export_into_the_table_itself_collides() -> None:
    with pytest.raises(PipelineError, match="one replaces its rows"):
        plan("CREATE TABLE a AS SELECT 1 AS x; EXPORT a TO 'a' TYPE DELTA;")


def test_a_table_and_a_file_of_one_name_are_two_places() -> None:
    text = "CREATE TABLE a AS SELECT 1 AS x; EXPORT a TO 'a' TYPE PARQUET MODE REPLACE;"
    assert published(text) == [("a", "REPLACE", 0), ("a", "REPLACE", 0)]


@pytest.mark.parametrize(
    "second", ["LOAD `a.b` FROM s;", 'EXPORT a TO "a.b" TYPE DELTA;', 'EXPORT a TO "warehouse/a/b" TYPE PARQUET;']
)
def test_a_table_inside_of_another_collides(second: str) -> None:
    with pytest.raises(PipelineError, match="one writes inside the folder of the other"):
        plan(f"{SOURCE} LOAD a FROM s MODE APPEND; {second}")
