"""`lockgate merge`, `lockgate write` and `lockgate recover --dry-run` as a user types them."""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner, Result

from lockgate.cli.app import app
from lockgate.storage.local import LocalStorage
from lockgate.storage.locks import FileLock
from lockgate.storage.staging import StagingArea
from lockgate.targets import journal
from lockgate.targets.folder import LOCK_NAME
from support.leftovers import leftovers

RESULT = {
    "strategy", "source_count", "target_count_before", "target_count_after", "inserted", "updated", "deleted", "files",
    "rewritten_files", "inserted_files", "preserved_files", "removed_files", "deduplicated", "engine", "dry_run",
}  # fmt: skip


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)
    gc.unfreeze()  # a command freezes what is loaded, which is right for a process that ends with it


def lockgate(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments), prog_name="lockgate")


def done(*arguments: str) -> str:
    ended = lockgate(*arguments)
    assert ended.exit_code == 0, ended.stderr
    return ended.stdout


def done_json(*arguments: str) -> dict[str, Any]:
    return json.loads(done(*arguments, "--json"))


def refused(*arguments: str, code: int) -> str:
    """A failure: the exit code, nothing on standard output, no traceback; returns what was said."""
    ended = lockgate(*arguments)
    assert ended.exit_code == code, (ended.output, ended.exception)
    assert isinstance(ended.exception, SystemExit)
    assert ended.stdout == ""
    assert "Traceback" not in ended.stderr
    return ended.stderr


def csv(name: str, *lines: str) -> str:
    Path(name).write_text("\n".join(lines) + "\n")
    return name


def two_files() -> str:
    """A dataset with ids 1 to 4 in two files."""
    done("write", csv("one.csv", "id,x", "1,a", "2,b"), "lake")
    done("write", csv("two.csv", "id,x", "3,c", "4,d"), "lake")
    return "lake"


def rows(folder: str = "lake") -> list[tuple[Any, ...]]:
    files = [str(p) for p in sorted(Path(folder).rglob("*.parquet"))]
    return sorted(tuple(row.values()) for row in ds.dataset(files).to_table().to_pylist())


def on_disk(folder: str) -> dict[str, tuple[int, bytes]]:
    return {
        str(p.relative_to(folder)): (p.stat().st_mtime_ns, p.read_bytes() if p.is_file() else b"")
        for p in sorted(Path(folder).rglob("*"))
    }


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
    assert set(found) == {"mode", "files", "total_rows", "removed_files"}
    assert (found["mode"], found["total_rows"], len(found["removed_files"])) == ("overwrite", 2, 3)
    assert rows() == [(3, "c"), (4, "d")]
    assert Path("lake/README.txt").read_text() == "kept"
    assert done("write", "one.csv", "lake", "--mode", "overwrite") == (
        "overwrite to lake: 2 rows; files: 1 added, 1 removed\n"
    )


# Dry runs


@pytest.mark.parametrize("engine", ["arrow", "duckdb"])
@pytest.mark.parametrize("strategy", ["insert", "update", "upsert", "full_merge", "deduplicate"])
def test_a_dry_run_changes_nothing_and_counts_the_same(strategy: str, engine: str) -> None:
    two_files()
    before = on_disk("lake")
    csv("new.csv", "id,x", "1,A", "5,e")
    arguments = ["merge", "new.csv", "lake", "--strategy", strategy, "--key", "id", "--engine", engine]
    said = done(*arguments, "--dry-run")
    planned = done_json(*arguments, "--dry-run")
    assert on_disk("lake") == before
    assert "dry run: nothing was written" in said.splitlines()
    real = done_json(*arguments)
    same = RESULT - {"files", "inserted_files", "dry_run"}
    assert {name: planned[name] for name in same} == {name: real[name] for name in same}
    assert (planned["dry_run"], planned["inserted_files"]) == (True, [])
    for file in planned["rewritten_files"]:
        assert f"  would rewrite {file}" in said
    for file in planned["removed_files"]:
        assert f"  would remove {file}" in said


def test_a_dry_run_names_twenty_files_and_json_all() -> None:
    pq.write_table(pa.table({"id": range(23)}), "new.parquet")
    done("write", "new.parquet", "lake", "--max-rows-per-file", "1")
    arguments = ["merge", "new.parquet", "lake", "--strategy", "update", "--key", "id", "--dry-run"]
    said = done(*arguments)
    assert said.count("would rewrite") == 20
    assert "… and 3 more; --json names them all" in said
    assert len(done_json(*arguments)["rewritten_files"]) == 23


def test_a_dry_run_makes_no_folder() -> None:
    csv("new.csv", "id,x", "1,a")
    arguments = ["merge", "new.csv", "lake", "--strategy", "upsert", "--key", "id", "--dry-run"]
    assert done_json(*arguments)["inserted"] == 1
    assert not Path("lake").exists()


def test_update_of_nothing_makes_nothing() -> None:
    csv("new.csv", "id,x", "1,a")
    assert "engine:  none" in done("merge", "new.csv", "lake", "--strategy", "update", "--key", "id")
    assert not Path("lake").exists()


# What is refused


@pytest.mark.parametrize("engine", ["arrow", "duckdb"])
@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["id,x", "1,a", ",b"], ['key column "id" is NULL in 1 of 2 source rows', "do:  a row without a key"]),
        (["id,x", "1,a", "1,b"], ["1 of 2 source rows repeats a key: id=1", "do:  leave one row a key"]),
        (["idx,x", "1,a"], ['the source has no key column "id"; its columns are "idx", "x"', 'did you mean "idx"']),
        (["id,x", "1.5,a"], ['column "id": double does not fit into int64 without loss: 1.5 in row 0', "do:"]),
        (["id,z", "1,a"], ['the source has no column "x"', "do:"]),
        (["id,x", "1"], ["new.csv", "Expected 2 columns, got 1", "do:"]),
        ([], ["new.csv", "cannot be read", "do:"]),
    ],
)
def test_a_source_that_does_not_fit(engine: str, lines: list[str], said: list[str]) -> None:
    two_files()
    before = on_disk("lake")
    csv("new.csv", *lines)
    arguments = ["merge", "new.csv", "lake", "--strategy", "upsert", "--key", "id", "--engine", engine]
    text = refused(*arguments, code=1)
    assert text.startswith("error: ")
    assert "now: nothing was written" in text
    for part in said:
        assert part in text
    assert on_disk("lake") == before
    found = lockgate(*arguments, "--json")
    assert found.exit_code == 1
    assert json.loads(found.stdout)["status"] == "failed"
    assert json.loads(found.stdout)["error"] in text


MERGE = ["--strategy", "upsert", "--key", "id"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["merge", "one.csv", "lake", "--strategy", "upsrt", "--key", "id"], ["--strategy", "'upsrt'", "full_merge"]),
        (["merge", "one.csv", "lake", "--strategy", "upsert"], ["Missing option", "--key"]),
        (["merge", "one.csv", "lake", "--key", "id"], ["Missing option", "--strategy"]),
        (["merge", "one.csv", *MERGE], ["Missing argument", "TARGET"]),
        (["merge", "one.csv", "lake", "--strategy", "upsert", "--key", ""], ["--key", "at least one key column"]),
        (["merge", "one.csv", "lake", "--strategy", "upsert", "--key", "id,id"], ["--key", '"id" is named twice']),
        (["merge", "one.csv", "lake", "--strategy", "upsert", "--key", "i\nd"], ["--key"]),
        (["merge", "one.csv", "lake", *MERGE, "--engine", "polars"], ["no engine 'polars'", "auto, arrow, duckdb"]),
        (["merge", "one.csv", "lake", *MERGE, "--schema", "loose"], ["'loose' is not one of 'strict', 'evolve'"]),
        (["merge", "one.csv", "lake", *MERGE, "--compression", "rar"], ["'rar' is not one of"]),
        (["merge", "one.csv", "lake", *MERGE, "--max-rows-per-file", "0"], ["--max-rows-per-file"]),
        (["merge", "one.csv", "lake", *MERGE, "--row-group-size", "x"], ["--row-group-size"]),
        (["merge", "one.csv", "lake", *MERGE, "--lock-timeout", "-1"], ["--lock-timeout"]),
        (["merge", "one.csv", "lake", *MERGE, "--order-by", "id"], ["order_by", "deduplicate"]),
        (
            ["merge", "one.csv", "lake", "--strategy", "deduplicate", "--key", "id", "--order-by", "id +"],
            ["--order-by", "'id +'", "updated_at DESC"],
        ),
        (["merge", "one.csv", "s3://bucket/lake", *MERGE], ["'s3'", "not available in this version"]),
        (["merge", "one.csv", "two.csv", *MERGE], ["'two.csv' is a file", "name the folder"]),
        (["write", "one.csv", "two.csv"], ["'two.csv' is a file", "name the folder"]),
        (["write", "one.csv", "lake", "--mode", "replace"], ["'append' or 'overwrite'", "'replace'"]),
    ],
)
def test_a_wrong_command_line_exits_with_2(arguments: list[str], said: list[str]) -> None:
    two_files()
    before = on_disk(".")
    text = refused(*arguments, code=2)
    for part in said:
        assert part in text
    found = lockgate(*arguments, "--json")
    assert found.exit_code == 2
    assert json.loads(found.stdout)["status"] == "invalid"
    assert json.loads(found.stdout)["error"]
    assert on_disk(".") == before


@pytest.mark.parametrize("command", [["merge", *MERGE], ["write"]])
@pytest.mark.parametrize(
    ("source", "said"),
    [
        ("missing.csv", "there is no file or folder 'missing.csv'"),
        ("empty", "the folder 'empty' holds no Parquet file"),
        ("rows.txt", "the name of 'rows.txt' does not say what it holds"),
        ("bad.parquet", "'bad.parquet' cannot be read"),
        ("s3://bucket/rows.parquet", "'s3://bucket/rows.parquet' is not a local path"),
    ],
)
def test_a_source_that_cannot_be_read(command: list[str], source: str, said: str) -> None:
    Path("empty").mkdir()
    Path("rows.txt").touch()
    Path("bad.parquet").write_bytes(b"PAR1 but not more")
    text = refused(command[0], source, "lake", *command[1:], code=1)
    assert said in text
    assert "now: nothing was written" in text
    assert "do:  " in text
    assert not Path("lake").exists()


@pytest.mark.parametrize("engine", ["arrow", "duckdb"])
def test_a_file_of_the_dataset_that_is_not_parquet_is_named(engine: str) -> None:
    two_files()
    Path("lake/odd.parquet").write_bytes(b"this is not Parquet")
    before = on_disk("lake")
    text = refused("merge", "one.csv", "lake", *MERGE, "--engine", engine, code=1)
    assert "lake/odd.parquet" in text
    assert "now: nothing was written" in text
    assert "do:  restore the file from a copy" in text
    assert on_disk("lake") == before


@pytest.mark.parametrize("engine", ["arrow", "duckdb"])
def test_a_file_with_a_damaged_page_is_named(engine: str) -> None:
    Path("lake").mkdir()
    table = pa.table({"id": range(5000), "x": [str(i) * 3 for i in range(5000)]})
    pq.write_table(table, "lake/damaged.parquet", compression="zstd", use_dictionary=False)
    column = pq.read_metadata("lake/damaged.parquet").row_group(0).column(1)
    with open("lake/damaged.parquet", "r+b") as file:
        file.seek(column.data_page_offset + 40)
        file.write(b"\xff" * 200)
    before = Path("lake/damaged.parquet").read_bytes()
    text = refused(
        "merge", csv("new.csv", "id,x", "7,a"), "lake", *MERGE, "--engine", engine, code=1
    )  # fmt: skip
    assert "lake/damaged.parquet" in text
    assert "now: nothing was written" in text
    assert Path("lake/damaged.parquet").read_bytes() == before
    assert leftovers(Path()) == []


@pytest.mark.skipif(not hasattr(os, "setuid"), reason="needs users")
def test_files_without_permission(tmp_path: Path) -> None:
    """As a user who is not root: the message names the file or folder, nothing is written, exit 1."""
    two_files()
    unreadable = csv("secret.csv", "id,x", "1,a")
    Path(unreadable).chmod(0)
    Path("lake").chmod(0o555)
    Path("lake", LOCK_NAME).chmod(0o444)
    for parent in (tmp_path, *tmp_path.parents):
        if parent == tmp_path or parent.name.startswith("pytest"):
            parent.chmod(0o755)
    code = (
        "import os\nfrom lockgate.cli.app import app\n"
        "def merge(source, *options):\n"
        "    try:\n        app(['merge', source, 'lake', '--strategy', 'upsert', '--key', 'id', '--engine', 'arrow',\n"
        "             *options])\n"
        "    except SystemExit as end:\n        print('exit', end.code, flush=True)\n"
        # Loads all that is loaded late: as another user, the interpreter's own files may be out of reach.
        "merge('one.csv', '--dry-run')\nprint('now', flush=True)\n"
        "if os.geteuid() == 0:\n    os.setgid(65534)\n    os.setuid(65534)\n"
        "merge('secret.csv')\nmerge('one.csv')\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert ended.stdout.endswith("now\nexit 1\nexit 1\n"), ended.stderr
    assert "Traceback" not in ended.stderr
    about_source, about_lake = ended.stderr.split("error: ")[1:]
    assert "secret.csv" in about_source
    assert "lake" in about_lake
    for text in (about_source, about_lake):
        assert "Permission denied" in text
        assert "do:  " in text
    Path("lake").chmod(0o755)
    assert rows() == [(1, "a"), (2, "b"), (3, "c"), (4, "d")]


def test_another_writer_is_waited_for_as_long_as_asked() -> None:
    two_files()
    with FileLock(Path("lake", LOCK_NAME)) as lock:
        lock.acquire(1)
        for arguments in (["merge", *MERGE], ["merge", *MERGE, "--dry-run"], ["write"]):
            text = refused(arguments[0], "one.csv", "lake", *arguments[1:], "--lock-timeout", "0", code=1)
            assert "another writer has held" in text
            assert "now: nothing was written" in text


def test_an_interrupted_merge_says_what_is_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    two_files()

    def interrupted(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(journal, "write", interrupted)
        text = refused("merge", "one.csv", "lake", *MERGE, code=1)
    assert "now: nothing was written" in text
    assert leftovers(Path()) == []
    with monkeypatch.context() as patch:
        patch.setattr(journal, "carry_out", interrupted)
        text = refused("merge", csv("new.csv", "id,x", "1,A"), "lake", *MERGE, code=1)
    assert "now: the change is decided" in text
    assert f"lockgate recover {Path('lake').resolve()}" in text
    assert "finished the interrupted change" in done("recover", "lake")
    assert (1, "A") in rows()


# recover --dry-run


def test_recover_dry_run_with_nothing_to_do() -> None:
    two_files()
    before = on_disk("lake")
    assert done("recover", "lake", "--dry-run").splitlines() == [
        f"{Path('lake').resolve()}: nothing to recover",
        "dry run: nothing was changed",
    ]
    assert on_disk("lake") == before


def test_recover_dry_run_says_what_recover_then_does(monkeypatch: pytest.MonkeyPatch) -> None:
    two_files()

    def stopped(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(journal, "carry_out", stopped)
        refused("merge", csv("new.csv", "id,x", "1,A"), "lake", *MERGE, code=1)
    dead = StagingArea.create(LocalStorage(), Path("lake").resolve(), "dead")
    dead.release()
    sealed = StagingArea.create(LocalStorage(), Path("lake").resolve(), "sealed")
    sealed.seal()
    sealed.release()
    before = on_disk("lake")
    said = done("recover", "lake", "--dry-run")
    assert "would finish the interrupted change" in said
    assert "1 files to move in, 0 to remove" in said
    assert "would sweep" in said
    assert "would keep 1 staged result" in said
    planned = done_json("recover", "lake", "--dry-run")
    assert on_disk("lake") == before
    real = done_json("recover", "lake")
    assert (planned.pop("dry_run"), planned.pop("writer_at_work")) == (True, False)
    assert planned == real
    assert (1, "A") in rows()


def test_recover_dry_run_beside_a_file_and_with_a_writer_at_work() -> None:
    area = StagingArea.create(LocalStorage(), Path().resolve(), "dead")
    area.release()
    csv("out.csv", "id", "1")
    assert "would sweep 1 staging folder" in done("recover", "out.csv", "--dry-run")
    assert area.exists
    two_files()
    with FileLock(Path("lake", LOCK_NAME)) as lock:
        lock.acquire(1)
        assert "a writer is at work" in done("recover", "lake", "--dry-run")
    assert "there is nothing at" in refused("recover", "a/b/c", "--dry-run", code=2)
