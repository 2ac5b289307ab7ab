"""What is wrong with sources of databases and with cursors, found before anything runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from lockgate.config import Connection, Profile
from lockgate.language import parse
from lockgate.plan import check

CONNECTIONS = {
    "db": Connection("db", "postgres", {"url": "postgresql://me:pw@host/db"}),
    "no_url": Connection("no_url", "postgres", {}),
    "web": Connection("web", "postgres", {"url": "https://host/db"}),
    "lake": Connection("lake", "s3"),
}


def problems(source: str) -> list[str]:
    program = parse(f'SOURCE s {source}; LOAD t FROM s; EXPORT t TO "x.csv" TYPE CSV;', file="p.sql")
    profile = Profile(connections=CONNECTIONS)
    return [f"{d.code}: {d.message}" for d in check(program, pipeline="p.sql", project=Path(), profile=profile)]


@pytest.mark.parametrize(
    "source",
    [
        'FROM "db" OPTIONS {"table": "public.t"}',
        'TYPE POSTGRES PARAMS {"connection": "db", "query": "SELECT 1"}',
        'FROM "db" OPTIONS {"table": "t", "columns": ["a"], "as_text": ["a"], "partition_column": "a"}',
        'FROM "db" OPTIONS {"table": "t", "cursor": "at", "lookback": "2 days", "batch_bytes": 65536}',
        'TYPE CSV PARAMS {"path": "a.csv", "cursor": "id", "lookback": 100}',
        'TYPE JSON PARAMS {"path": "in", "cursor": "_file"}',
    ],
)
def test_good(source: str) -> None:
    assert problems(source) == []


@pytest.mark.parametrize(
    ("source", "code", "says"),
    [
        ('FROM "db"', "missing-parameter", "either the parameter 'table' or"),
        ('FROM "db" OPTIONS {"table": "t", "query": "SELECT 1"}', "bad-parameter", "either the parameter 'table' or"),
        ('FROM "db" OPTIONS {"connection": "db", "table": "t"}', "unknown-parameter", "no parameter 'connection'"),
        ('FROM "db" OPTIONS {"tabel": "t"}', "unknown-parameter", "no parameter 'tabel'"),
        ('FROM "no_url" OPTIONS {"table": "t"}', "bad-connection", "has no url"),
        ('FROM "web" OPTIONS {"table": "t"}', "bad-connection", "does not begin with postgresql://"),
        ('TYPE POSTGRES PARAMS {"table": "t"}', "missing-parameter", "needs the parameter 'connection'"),
        ('TYPE POSTGRES PARAMS {"connection": "bd", "table": "t"}', "unknown-connection", "no connection bd"),
        ('TYPE POSTGRES PARAMS {"connection": "lake", "table": "t"}', "unknown-type", "has the type S3"),
        ('FROM "db" OPTIONS {"table": " "}', "bad-parameter", "'table' must not be empty"),
        ('FROM "db" OPTIONS {"table": "t", "columns": []}', "bad-parameter", "'columns' must be a list"),
        ('FROM "db" OPTIONS {"table": "t", "columns": ["a", "a"]}', "bad-parameter", "'columns' must be a list"),
        ('FROM "db" OPTIONS {"table": "t", "partitions": 0}', "bad-parameter", "'partitions' must be 1 or more"),
        ('FROM "db" OPTIONS {"query": "SELECT 1", "partitions": 2}', "bad-parameter", "divided by a column"),
        ('FROM "db" OPTIONS {"table": "t", "lookback": "1 day"}', "bad-parameter", "needs the parameter 'cursor'"),
        (
            'FROM "db" OPTIONS {"table": "t", "cursor": "a", "lookback": "soon"}',
            "bad-parameter",
            "not a length of time",
        ),
        ('FROM "db" OPTIONS {"table": "t", "cursor": "_file"}', "bad-parameter", "for sources that read files"),
        ('TYPE CSV PARAMS {"path": "hdfs://b/x", "cursor": "_file"}', "bad-parameter", "a path must be local"),
        ('TYPE CSV PARAMS {"path": "x", "cursor": "_file", "lookback": 1}', "bad-parameter", "needs no lookback"),
        ('TYPE CSV PARAMS {"path": "x", "cursor": " "}', "bad-parameter", "must be the name of a column"),
    ],
)
def test_bad(source: str, code: str, says: str) -> None:
    (found,) = problems(source)
    assert found.startswith(f"{code}: ")
    assert says in found
