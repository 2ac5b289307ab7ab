"""What `lockgate merge` and `lockgate write` refuse, how they say it, and what is in place then."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lockgate.storage.locks import FileLock
from lockgate.targets import journal
from lockgate.targets.folder import LOCK_NAME
from support.leftovers import leftovers
from support.merge_commands import MERGE, csv, done, lockgate, on_disk, refused, rows, two_files


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
        (["merge", "one.csv", "gs://bucket/lake", *MERGE], ["'gs'", "not available in this version"]),
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
