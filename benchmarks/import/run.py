"""How long it takes to import a log, beside how long deltalake takes to open it.

.venv/bin/python benchmarks/import/run.py [FILES VERSIONS]
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import deltalake
from generate import generate

from lockgate.config import Project
from lockgate.storage.log_folder import LocalLogFolder
from lockgate.tables.importing import import_existing
from lockgate.txlog.existing_table import read_existing


def timed(doing: str, action: object) -> object:
    start, cpu = time.perf_counter(), time.process_time()
    result = action()  # type: ignore[operator]
    print(f"{doing:34} {time.perf_counter() - start:8.2f} s  {time.process_time() - cpu:8.2f} s of processor")
    return result


def main(files: int, versions: int) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        table = Path(scratch) / "table"
        generate(table, files=files, versions=versions)
        size = sum(path.stat().st_size for path in (table / "_delta_log").iterdir())
        print(f"{files:,} live files, {versions:,} versions, {size / 1e6:,.0f} MB of commits")
        timed("deltalake opens it", lambda: deltalake.DeltaTable(str(table)).file_uris())
        timed("Lockgate reads the log", lambda: read_existing(LocalLogFolder(table)))
        project = Project(Path(scratch) / "project")
        imported = timed("Lockgate imports it", lambda: import_existing(project, "t", table))
        assert imported.files == files  # type: ignore[attr-defined]
        print(f"largest memory: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:,.0f} MB")


if __name__ == "__main__":
    main(*(int(each) for each in sys.argv[1:3] or (100_000, 1_000)))
