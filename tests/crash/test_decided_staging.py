"""A change that is decided but not finished: nobody may sweep what it still needs."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import lockgate
from lockgate.storage.local import LocalStorage
from lockgate.targets import journal
from lockgate.targets.folder import FolderTarget, sweep_dead_staging

OLD = pa.table({"id": [1, 2], "x": ["old", "old"]})
NEW = pa.table({"id": [1, 2], "x": ["new", "new"]})


@pytest.fixture
def decided(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A dataset whose merge died right after its journal was written."""
    pq.write_table(OLD, tmp_path / "a.parquet")

    def died(*_: object) -> None:
        raise lockgate.StorageError("died here")

    with monkeypatch.context() as patch:
        patch.setattr(journal, "carry_out", died)
        with pytest.raises(lockgate.StorageError, match="died here") as error:
            lockgate.merge(NEW, tmp_path, strategy="upsert", key_columns="id")
    assert "decided" in str(error.value.in_place)
    return tmp_path


def test_recovering_a_file_inside_leaves_it_to_the_dataset(decided: Path) -> None:
    lockgate.recover(decided / "a.parquet")
    assert "finished" in str(lockgate.recover(decided))
    assert pq.read_table(decided)["x"].to_pylist() == ["new", "new"]


def test_a_pipeline_that_clears_the_folder_leaves_it(decided: Path) -> None:
    assert sweep_dead_staging(LocalStorage(), decided) == []
    lockgate.recover(decided)
    assert pq.read_table(decided)["x"].to_pylist() == ["new", "new"]


def test_a_live_writer_is_not_disturbed(decided: Path) -> None:
    lockgate.recover(decided)
    with FolderTarget(decided, LocalStorage()).locked():
        area = decided / ".staging_being_made"
        area.mkdir()
        assert sweep_dead_staging(LocalStorage(), decided) == []
        assert area.exists()
    assert sweep_dead_staging(LocalStorage(), decided) == [area]


def test_staged_files_that_are_gone_are_not_taken_for_moved(decided: Path) -> None:
    """The name of a rewritten file is always there; only the file itself tells whether it is the new one."""
    (staging,) = decided.glob(".staging_*")
    for staged in staging.glob("*.parquet"):
        staged.unlink()
    with pytest.raises(lockgate.JournalError, match="neither is there"):
        lockgate.recover(decided)
    assert pq.read_table(decided / "a.parquet")["x"].to_pylist() == ["old", "old"]


def test_a_partition_with_an_unfinished_change_of_its_own_is_named(decided: Path, tmp_path: Path) -> None:
    inner = tmp_path.parent / f"{tmp_path.name}-outer" / "p=1"
    inner.parent.mkdir()
    decided.rename(inner)
    with pytest.raises(lockgate.StorageError, match="not finished") as error:
        lockgate.write_dataset(NEW.append_column("p", [[1, 1]]), inner.parent)
    assert str(inner) in str(error.value.hint)
