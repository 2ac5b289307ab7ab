"""`lockgate merge` and its like as a user types them, in the folder of the test."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
from click.testing import CliRunner, Result

from lockgate.cli.app import app

MERGE = ["--strategy", "upsert", "--key", "id"]
RESULT = {
    "strategy", "source_count", "version", "target_count_before", "target_count_after", "inserted", "updated",
    "deleted", "files", "rewritten_files", "inserted_files", "preserved_files", "removed_files", "deduplicated",
    "engine", "dry_run",
}  # fmt: skip


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
