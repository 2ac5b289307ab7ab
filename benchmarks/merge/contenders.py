"""Who merges: one function each, and the process in which it does so.

`ready` imports what it needs and gives back the call that is timed. Nothing heavy is imported at the top, because
run.py imports this module and has to stay small (see README.md, *Memory*).

python benchmarks/merge/contenders.py prepare|merge|check NAME CASE FOLDER WORK        (what run.py calls)
"""

from __future__ import annotations

import json
import os
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

MAXRSS_UNIT = 1 if sys.platform == "darwin" else 1024  # bytes


@dataclass(frozen=True)
class Job:
    work: Path  # a folder of its own; the dataset's fresh copy is in `data`
    source: Any  # the source, as a pyarrow Table
    touched: list[str]  # names of the files that hold a key of the source: only the limit is told

    @property
    def data(self) -> Path:
        return self.work / "data"

    @property
    def merged(self) -> Path:
        return self.work / "merged.parquet"


Merge = Callable[[], object]


def lockgate_with(engine: str, **more: Any) -> Callable[[Job], Merge]:
    def ready(job: Job) -> Merge:
        import pyarrow.compute  # noqa: F401  (imports are nobody's time, here neither)

        import lockgate

        if engine == "duckdb":
            import lockgate.engines.duckdb
        merge, path = lockgate.merge, str(job.data)
        return lambda: merge(job.source, path, strategy="upsert", key_columns=["id"], engine=engine, **more)

    return ready


def limit(job: Job) -> Merge:
    """One COPY of the files that are known to be touched, into one file. It plans nothing and syncs nothing."""
    import duckdb

    def merge() -> None:
        connection = duckdb.connect()
        connection.register("source", job.source)
        connection.execute(
            f"""COPY (SELECT * FROM read_parquet({_touched(job)}) AS t
                      WHERE NOT EXISTS (SELECT 1 FROM source AS s WHERE s.id = t.id)
                      UNION ALL BY NAME SELECT * FROM source) TO '{job.merged}' (FORMAT parquet)"""
        )

    return merge


def through_a_table(job: Job) -> Merge:
    """The files that are known to be touched into a temporary table, MERGE into it, COPY it out."""
    import duckdb

    def merge() -> None:
        connection = duckdb.connect()
        connection.register("source", job.source)
        connection.execute(f"CREATE TEMP TABLE target AS SELECT * FROM read_parquet({_touched(job)})")
        connection.execute(
            """MERGE INTO target USING source ON target.id = source.id
               WHEN MATCHED THEN UPDATE BY NAME WHEN NOT MATCHED THEN INSERT BY NAME"""
        )
        connection.execute(f"COPY target TO '{job.merged}' (FORMAT parquet)")

    return merge


def delta_with(**more: Any) -> Callable[[Job], Merge]:
    def ready(job: Job) -> Merge:
        from deltalake import DeltaTable

        def merge() -> None:
            merger = DeltaTable(job.data).merge(job.source, "t.id = s.id", source_alias="s", target_alias="t", **more)
            merger.when_matched_update_all().when_not_matched_insert_all().execute()

        return merge

    return ready


def delta_table(work: Path) -> None:
    """A table of the very same files, with their statistics in its log."""
    from deltalake import convert_to_deltalake

    convert_to_deltalake(work / "data", collect_stats=True)


def iceberg(job: Job) -> Merge:
    catalog = _catalog(job.work)
    return lambda: catalog.load_table("bench.rows").upsert(job.source, join_cols=["id"])


def iceberg_table(work: Path) -> None:
    """A table of the very same files."""
    import pyarrow.parquet as pq

    files = sorted(str(file) for file in (work / "data").glob("*.parquet"))
    catalog = _catalog(work)
    catalog.create_namespace("bench")
    catalog.create_table("bench.rows", schema=pq.read_schema(files[0])).add_files(files)


def _catalog(work: Path) -> Any:
    from pyiceberg.catalog.sql import SqlCatalog

    (work / "warehouse").mkdir(exist_ok=True)
    return SqlCatalog("bench", uri=f"sqlite:///{work}/catalog.db", warehouse=f"file://{work}/warehouse")


def in_the_folder(work: Path, touched: list[str]) -> list[str]:  # noqa: ARG001
    return [str(file) for file in (work / "data").glob("*.parquet") if file.name[0] not in "._"]


def beside_the_folder(work: Path, touched: list[str]) -> list[str]:
    rest = [file for file in in_the_folder(work, []) if Path(file).name not in touched]
    return [*rest, str(work / "merged.parquet")]


def in_the_delta_log(work: Path, touched: list[str]) -> list[str]:  # noqa: ARG001
    from deltalake import DeltaTable

    return [str(work / "data" / Path(uri).name) for uri in DeltaTable(work / "data").file_uris()]


def in_the_snapshot(work: Path, touched: list[str]) -> list[str]:  # noqa: ARG001
    tasks = list(_catalog(work).load_table("bench.rows").scan().plan_files())
    assert not any(task.delete_files for task in tasks), "rows deleted by delete files are not counted here"
    return [task.file.file_path.removeprefix("file://") for task in tasks]


def _touched(job: Job) -> list[str]:
    return [str(job.data / name) for name in job.touched]


@dataclass(frozen=True)
class Contender:
    name: str
    says: str
    ready: Callable[[Job], Merge]
    package: str
    files: Callable[[Path, list[str]], list[str]] = in_the_folder  # those that are the result
    prepare: Callable[[Path], None] | None = None  # not timed, in a process of its own
    once: bool = False  # too slow for rounds

    @property
    def missing(self) -> bool:
        return find_spec(self.package) is None


CONTENDERS = [
    Contender("limit", "the limit: one DuckDB COPY", limit, "duckdb", beside_the_folder),
    Contender("arrow", "Lockgate, Arrow", lockgate_with("arrow"), "lockgate"),
    Contender("duckdb", "Lockgate, DuckDB", lockgate_with("duckdb"), "lockgate"),
    Contender(
        "duckdb-union", "Lockgate, DuckDB, `use_merge=False`", lockgate_with("duckdb", use_merge=False), "lockgate"
    ),
    Contender("delta", "delta-rs MERGE", delta_with(), "deltalake", in_the_delta_log, delta_table),
    Contender(
        "delta-pruned",
        "delta-rs MERGE, `streamed_exec=False`",
        delta_with(streamed_exec=False),
        "deltalake",
        in_the_delta_log,
        delta_table,
    ),
    Contender("table", "MERGE through a DuckDB table", through_a_table, "duckdb", beside_the_folder),
    Contender("pyiceberg", "pyiceberg upsert", iceberg, "pyiceberg", in_the_snapshot, iceberg_table, once=True),
]
BY_NAME = {contender.name: contender for contender in CONTENDERS}


def main(step: str, name: str, case: str, folder: Path, work: Path) -> None:
    contender = BY_NAME[name]
    about = json.loads((folder / "about.json").read_text())
    touched = about["touched"][case]
    if step == "prepare":
        if contender.prepare:
            contender.prepare(work)
    elif step == "merge":
        import pyarrow.parquet as pq

        call = contender.ready(Job(work, pq.read_table(folder / f"{case}.parquet"), touched))
        os.sync()  # what the copy left in the page cache is not this one's to write
        began = time.perf_counter()
        call()
        seconds = time.perf_counter() - began
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * MAXRSS_UNIT
        print(json.dumps({"seconds": seconds, "megabytes": peak / 1e6}))
    elif step == "check":
        from data import checksum

        found, expected = checksum(contender.files(work, touched)), about["expected"][case]
        if found != expected:
            sys.exit(f"{name}, case {case}: the rows are not those expected: {found}, expected {expected}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], Path(sys.argv[4]), Path(sys.argv[5]))
