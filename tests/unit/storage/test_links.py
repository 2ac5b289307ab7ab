from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from lockgate.storage.links import safe_names, temporary_folder

LONG_AGO = 1_000_000_000


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_a_safe_name_leads_to_the_real_file(tmp_path: Path) -> None:
    odd = tmp_path / "it's *; --\n.parquet"
    odd.write_bytes(b"rows")
    with safe_names() as names:
        safe = names.of(odd)
        assert Path(safe).read_bytes() == b"rows"
        assert names.of(odd) == safe
        assert names.spelled_out(f"cannot read {safe}") == f"cannot read {odd}"
        assert not set(safe) & set("'*;\n ")
    assert not Path(safe).exists()
    assert odd.exists()


def test_folders_of_the_dead_are_swept_and_those_of_the_living_are_not(temporary: Path) -> None:
    dead = temporary / "lockgate-dead"
    dead.mkdir()
    (dead / ".lockgate_temporary").touch()
    somebodys = temporary / "lockgate-project"
    somebodys.mkdir()
    os.utime(somebodys, (LONG_AGO, LONG_AGO))
    with temporary_folder("lockgate-") as alive:
        os.utime(alive, (LONG_AGO, LONG_AGO))
        with temporary_folder("lockgate-"):
            assert dead.exists(), "it may have been made just now"
        os.utime(dead, (LONG_AGO, LONG_AGO))
        os.utime(alive, (LONG_AGO, LONG_AGO))
        with temporary_folder("lockgate-"):
            assert not dead.exists()
            assert Path(alive).exists()
            assert somebodys.exists()


def test_a_link_in_the_temporary_folder_is_not_followed(temporary: Path, tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "precious").touch()
    (temporary / "lockgate-link").symlink_to(kept)
    os.utime(kept, (LONG_AGO, LONG_AGO))
    with temporary_folder("lockgate-"):
        assert (kept / "precious").exists()
