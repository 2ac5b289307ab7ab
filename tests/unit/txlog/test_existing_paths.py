"""Paths of somebody else's log: inside the table, or refused by name."""

from __future__ import annotations

import pytest

from lockgate.errors import DamagedLog
from lockgate.txlog.existing_paths import check_paths

GOOD = [
    "a.parquet",
    "day=1/part-0.parquet",
    "day=a%20b/50%25.parquet",
    "p=%C3%BC/x",
    "p=__HIVE_DEFAULT_PARTITION__/x.parquet",
    "a..b/c...parquet",
    "p=%252E%252E/x",  # decoded once it is %2E%2E, a name like any other
    "ü/x y",
    "deep/" * 50 + "x",
]
BAD = [
    "",
    "../x.parquet",
    "a/../../x",
    "a/..",
    "%2e%2e/x",
    "a/%2E%2E/x",
    "x%2F..%2F..%2Fy",
    ".",
    "a/",
    "a%zz",
    "a%",
    "a%00b",
    "a%0Ab",
    "a\nb",
    "%FF",
    "_delta_log/x.parquet",
    "/etc/passwd",
    "//host/x",
    "file:///etc/passwd",
    "s3://other/x.parquet",
    "http://host/x",
    "hdfs://x/y",
    "x?y",
    "x#y",
]


@pytest.mark.parametrize("path", GOOD)
def test_paths_inside_the_table_are_taken(path: str) -> None:
    check_paths([path], "t")


@pytest.mark.parametrize("path", BAD)
def test_other_paths_are_refused_by_name(path: str) -> None:
    with pytest.raises(DamagedLog) as raised:
        check_paths(["fine.parquet", path], "the log")
    assert repr(path) in raised.value.message or not path
    assert raised.value.in_place == "nothing was changed"
