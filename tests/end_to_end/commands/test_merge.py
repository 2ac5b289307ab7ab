"""`lockgate merge` and `lockgate write`: what they say, and each option."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.leftovers import leftovers
from support.merge_commands import RESULT, csv, done, done_json, lockgate, on_disk, refused, rows, two_files

# What it says


def test_a_merge_in_plain_lines() -> None:
    two_files()
    said = done("merge", csv("new.csv", "id,x", "4,D", "5,e"), "lake", "--strategy", "upsert", "--key", "id")
    assert said.splitlines() == [
        "upsert into lake by id",
        "  source:  2 rows, deduplicated 0",
        "  target:  4 -> 5 rows",
        "  rows:    inserted 1, updated 1, deleted 0",
        "  files:   rewritten 1, added 1, removed 0, kept 1",
        "  engine:  arrow, because it takes less time and memory than DuckDB for the same result",
    ]
    assert rows() == [(1, "a"), (2, "b"), (3, "c"), (4, "D"), (5, "e")]
    assert leftovers(Path()) == []


def test_auto_says_why_it_took_arrow() -> None:
    Path("lake").mkdir()
    pq.write_table(pa.table({"id": [1], "x": ["a"]}), "lake/a.parquet")
    said = done("merge", csv("new.csv", "id,x", "1,b"), "lake", "--strategy", "upsert", "--key", "id")
    assert "engine:  arrow, because it takes less time and memory than DuckDB for the same result" in said


@pytest.mark.parametrize("engine", ["auto", "arrow", "duckdb"])
def test_json_is_the_result_and_nothing_else(engine: str) -> None:
    two_files()
    csv("new.csv", "id,x", "4,D", "5,e")
    found = done_json("merge", "new.csv", "lake", "--strategy", "upsert", "--key", "id", "--engine", engine)
    assert set(found) == RESULT
    assert (found["target_count_before"], found["target_count_after"]) == (4, 5)
    assert (found["inserted"], found["updated"], found["deleted"], found["source_count"]) == (1, 1, 0, 2)
    assert found["engine"] == ("arrow" if engine == "auto" else engine)
    assert [f["operation"] for f in found["files"]] == ["rewritten", "inserted", "preserved"]
    assert set(found["files"][0]) == {"path", "row_count", "operation", "size_bytes"}
    assert all(Path(f["path"]).is_file() for f in found["files"])


def test_debug_shows_the_log_on_standard_error() -> None:
    two_files()
    ended = lockgate("merge", "one.csv", "lake", "--strategy", "update", "--key", "id", "--debug", "--json")
    assert "note: auto: the Arrow engine" in ended.stderr
    assert json.loads(ended.stdout)["updated"] == 2


def test_the_real_command_prints_json_alone(tmp_path: Path) -> None:
    csv("new.csv", "id,x", "1,a")
    arguments = ["merge", "new.csv", "lake", "--strategy", "insert", "--key", "id", "--json"]
    ended = subprocess.run(
        [sys.executable, "-m", "lockgate", *arguments],
        cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert (ended.returncode, ended.stderr) == (0, "")
    assert json.loads(ended.stdout)["inserted"] == 1


# Each option


@pytest.mark.parametrize(
    ("strategy", "expected", "counts"),
    [
        ("insert", [(1, "a"), (2, "b"), (3, "c"), (4, "d"), (5, "e")], (1, 0, 0)),
        ("update", [(1, "a"), (2, "b"), (3, "c"), (4, "D")], (0, 1, 0)),
        ("upsert", [(1, "a"), (2, "b"), (3, "c"), (4, "D"), (5, "e")], (1, 1, 0)),
        ("full_merge", [(4, "D"), (5, "e")], (1, 1, 3)),
        ("deduplicate", [(1, "a"), (2, "b"), (3, "c"), (4, "D"), (5, "e")], (1, 1, 0)),
        ("UPSERT", [(1, "a"), (2, "b"), (3, "c"), (4, "D"), (5, "e")], (1, 1, 0)),
    ],
)
def test_each_strategy(strategy: str, expected: list[Any], counts: tuple[int, int, int]) -> None:
    two_files()
    csv("new.csv", "id,x", "4,D", "5,e")
    found = done_json("merge", "new.csv", "lake", "--strategy", strategy, "--key", "id")
    assert rows() == expected
    assert (found["inserted"], found["updated"], found["deleted"]) == counts


@pytest.mark.parametrize("keys", [["--key", "a", "--key", "b"], ["--key", "a,b"], ["--key", 'a, "b"']])
def test_several_keys(keys: list[str]) -> None:
    done("write", csv("old.csv", "a,b,x", "1,1,old", "1,2,old"), "lake")
    done("merge", csv("new.csv", "a,b,x", "1,2,new"), "lake", "--strategy", "upsert", *keys)
    assert rows() == [(1, 1, "old"), (1, 2, "new")]


def test_a_key_with_a_comma_in_its_name_is_quoted() -> None:
    pq.write_table(pa.table({"a,b": [1]}), "new.parquet")
    assert done_json("merge", "new.parquet", "lake", "--strategy", "upsert", "--key", '"a,b"')["inserted"] == 1


def test_order_by_says_which_row_stays() -> None:
    csv("new.csv", "id,day,x", "1,2,newest", "1,1,oldest", "2,1,only")
    options = ["--strategy", "deduplicate", "--key", "id"]
    assert done_json("merge", "new.csv", "lake", *options, "--order-by", "day DESC")["deduplicated"] == 1
    assert rows() == [(1, 2, "newest"), (2, 1, "only")]
    done("merge", "new.csv", "lake", *options, "--order-by", "day", "--order-by", "x DESC")
    assert rows() == [(1, 1, "oldest"), (2, 1, "only")]


def test_partition_by_and_moves() -> None:
    done("write", csv("old.csv", "id,day,x", "1,1,a", "2,2,b"), "lake", "--partition-by", "day")
    assert {p.name for p in Path("lake").iterdir() if p.is_dir()} == {"day=1", "day=2"}
    arguments = ["merge", csv("new.csv", "id,day,x", "1,2,A"), "lake", "--strategy", "upsert", "--key", "id"]
    said = refused(*arguments, code=1)
    assert "id=1 from day=1 to day=2" in said
    assert "now: nothing was written" in said
    assert done_json(*arguments, "--partition-by", "day", "--allow-partition-moves")["updated"] == 1
    assert not Path("lake/day=1").exists()
    assert pq.read_table("lake").num_rows == 2


def test_schema_evolve_adds_a_column() -> None:
    two_files()
    arguments = ["merge", csv("new.csv", "id,x,y", "1,a,9"), "lake", "--strategy", "upsert", "--key", "id"]
    assert 'the target has no column "y"' in refused(*arguments, code=1)
    assert done_json(*arguments, "--schema", "evolve")["updated"] == 1


def test_skip_unchanged_leaves_equal_rows_alone() -> None:
    two_files()
    before = on_disk("lake")
    arguments = ["merge", "one.csv", "lake", "--strategy", "upsert", "--key", "id"]
    assert done_json(*arguments, "--skip-unchanged")["updated"] == 0
    assert {name: before[name] for name in before if name.endswith(".parquet")} == {
        name: found for name, found in on_disk("lake").items() if name.endswith(".parquet")
    }
    assert done_json(*arguments)["updated"] == 2


@pytest.mark.parametrize("command", [["merge", "--strategy", "insert", "--key", "id"], ["write"]])
def test_how_new_files_are_laid_out(command: list[str]) -> None:
    pq.write_table(pa.table({"id": range(10)}), "new.parquet")
    options = ["--compression", "zstd", "--max-rows-per-file", "6", "--row-group-size", "3", "--lock-timeout", "1"]
    done(command[0], "new.parquet", "lake", *command[1:], *options)
    footers = [pq.read_metadata(p) for p in sorted(Path("lake").glob("*.parquet"))]
    assert [f.num_rows for f in footers] == [6, 4]
    assert [f.num_row_groups for f in footers] == [2, 2]
    assert {f.row_group(0).column(0).compression for f in footers} == {"ZSTD"}


@pytest.mark.parametrize(("option", "said"), [("--use-merge", "MERGE (explicit"), ("--no-use-merge", "UNION ALL")])
def test_use_merge(option: str, said: str) -> None:
    two_files()
    command = ["merge", "one.csv", "lake", "--strategy", "update", "--key", "id", "--engine", "duckdb", "--debug"]
    ended = lockgate(*command, option)
    assert ended.exit_code == 0
    assert said in ended.stderr


@pytest.mark.parametrize("name", ["rows.csv", "rows.jsonl", "rows.parquet", "rows.arrow", "folder"])
def test_each_kind_of_source(name: str) -> None:
    table = pa.table({"id": [1, 2], "x": ["a", "b"]})
    if name.endswith(".csv"):
        csv(name, "id,x", "1,a", "2,b")
    elif name.endswith(".jsonl"):
        Path(name).write_text('{"id": 1, "x": "a"}\n{"id": 2, "x": "b"}\n')
    elif name.endswith(".arrow"):
        with pa.ipc.new_file(name, table.schema) as writer:
            writer.write_table(table)
    elif name == "folder":
        done("write", csv("rows.csv", "id,x", "1,a", "2,b"), "folder")
    else:
        pq.write_table(table, name)
    assert done_json("merge", name, "lake", "--strategy", "upsert", "--key", "id")["inserted"] == 2
    assert done_json("write", name, "lake")["total_rows"] == 2
    assert rows() == [(1, "a"), (1, "a"), (2, "b"), (2, "b")]


# Writing


def test_write_appends_and_overwrites() -> None:
    two_files()
    Path("lake/README.txt").write_text("kept")
    assert done("write", "one.csv", "lake", "--mode", "append") == "append to lake: 2 rows; files: 1 added\n"
    found = done_json("write", "two.csv", "lake", "--mode", "overwrite")
    assert set(found) == {"mode", "files", "total_rows", "removed_files", "version"}
    assert (found["mode"], found["total_rows"], len(found["removed_files"])) == ("overwrite", 2, 3)
    assert rows() == [(3, "c"), (4, "d")]
    assert Path("lake/README.txt").read_text() == "kept"
    assert done("write", "one.csv", "lake", "--mode", "overwrite") == (
        "overwrite to lake: 2 rows; files: 1 added, 1 removed\n"
    )
