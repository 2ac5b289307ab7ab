"""`--dry-run` of `lockgate merge`, `write` and `recover`: exact, and nothing changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lockgate.storage.local import LocalStorage
from lockgate.storage.locks import FileLock
from lockgate.storage.staging import StagingArea
from lockgate.targets import journal
from lockgate.targets.folder import LOCK_NAME
from support.merge_commands import MERGE, RESULT, csv, done, done_json, on_disk, refused, rows, two_files


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
