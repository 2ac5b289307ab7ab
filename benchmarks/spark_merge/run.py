"""Merges by the Spark engine: against the way it is done today, by the share of files touched, and by cores.

python benchmarks/spark_merge/run.py [--rows N] [--files N] [--rounds N] [--folder DIR] [--no-results]
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).resolve().parent
SHARES = (0.01, 0.05, 0.10, 0.50, 1.0)


def make_data(folder: Path, rows: int, files: int) -> None:
    """Keys in order, so many a file; other columns of the usual kinds."""
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq

    if (folder / "done").exists():
        return
    (folder / "data").mkdir(parents=True, exist_ok=True)
    size = rows // files
    for number in range(files):
        ids = pa.arange(number * size, (number + 1) * size)
        table = pa.table(
            {
                "id": ids,
                "customer": pc.subtract(pc.multiply(ids, 7), ids),
                "amount": pc.divide(pc.cast(ids, pa.float64()), 7.0),
                "note": pc.binary_join_element_wise("note", pc.cast(ids, pa.string()), "-"),
            }
        )
        pq.write_table(table, folder / "data" / f"part-{number:05}.parquet")
    (folder / "done").touch()


def source(spark: Any, rows: int, files: int, share: float) -> Any:
    """A tenth of the rows of evenly spread files: nine in ten of them are there already, the others are new."""
    size, touched = rows // files, max(int(files * share), 1)
    step = files // touched
    changed = spark.range(0, touched * size // 10).selectExpr(
        f"(id * 10 DIV {size}) * {step * size} + (id * 10) % {size} AS id"
    )
    fresh = spark.range(rows, rows + max(touched * size // 100, 1))
    return changed.union(fresh).selectExpr(
        "id", "id % 1000 AS customer", "cast(id AS double) AS amount", "'changed' AS note"
    )


def by_lockgate(spark: Any, frame: Any, data: Path) -> None:
    import lockgate

    lockgate.SparkDatasetIO(spark).merge(frame, data, strategy="upsert", key_columns="id")


def by_hand(spark: Any, frame: Any, data: Path) -> None:
    """Read all, leave out what is replaced, add the new rows, write all; then the new folder takes the old one's place.
    (Spark refuses to overwrite the folder that it reads.) It syncs nothing."""
    old = spark.read.parquet(str(data))
    merged = old.join(frame, "id", "left_anti").unionByName(frame.select(*old.columns))
    merged.write.parquet(f"{data}-new")
    shutil.rmtree(data)
    Path(f"{data}-new").rename(data)


WAYS = {"lockgate": by_lockgate, "by hand": by_hand}


def measure(way: str, cores: int, share: float, rows: int, files: int, folder: Path) -> float:
    """In a process of its own, with a warm-up on a tenth of the data."""
    from lockgate.config import SparkSettings
    from lockgate.running.session import open_session

    work = Path(tempfile.mkdtemp(dir=folder))
    conf = {"spark.sql.shuffle.partitions": "8", "spark.driver.memory": "4g"}
    spark = open_session(SparkSettings(master=f"local[{cores}]", conf=conf), name="bench", scratch=work)
    try:
        make_data(work / "less", rows // 10, 20)
        for _ in range(3):
            WAYS[way](spark, source(spark, rows // 10, 20, 1.0), work / "less" / "data")
        shutil.copytree(folder / "data", work / "data")
        os.sync()
        began = time.perf_counter()
        WAYS[way](spark, source(spark, rows, files, share), work / "data")
        seconds = time.perf_counter() - began
        _check(spark, work / "data", rows, files, share)
        return seconds
    finally:
        spark.stop()
        shutil.rmtree(work)


def _check(spark: Any, data: Path, rows: int, files: int, share: float) -> None:
    found = spark.read.parquet(str(data)).selectExpr("count(*)", "count(DISTINCT id)", "count_if(note = 'changed')")
    wanted = source(spark, rows, files, share)
    new = wanted.filter(f"id >= {rows}").count()
    if tuple(found.first()) != (rows + new, rows + new, wanted.count()):
        sys.exit(f"the rows are not those expected: {found.first()}")


@contextmanager
def in_memory() -> Iterator[Path]:
    shared = "/dev/shm" if Path("/dev/shm").is_dir() else None
    folder = Path(tempfile.mkdtemp(prefix="lockgate-bench-", dir=shared))
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def child(*arguments: Any) -> float:
    done = subprocess.run(
        [sys.executable, __file__, "--measure", json.dumps(arguments)], stdout=subprocess.PIPE, text=True, check=True
    )
    return float(done.stdout.splitlines()[-1])


def plot(shares: dict[float, float], by_hand_seconds: float, target: Path) -> None:
    """Seconds by share of files touched, as an SVG that needs no library."""
    width, height, left, bottom = 640, 360, 60, 40
    top = max([*shares.values(), by_hand_seconds]) * 1.1

    def at(share: float, seconds: float) -> tuple[float, float]:
        return left + share * (width - left - 20), height - bottom - seconds / top * (height - bottom - 20)

    dots = "".join(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4"/>' for x, y in (at(*item) for item in shares.items()))
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in (at(*item) for item in sorted(shares.items())))
    x0, y0 = at(0, 0)
    x1, y1 = at(1, by_hand_seconds)
    marks = "".join(
        f'<text x="{at(s, 0)[0]:.1f}" y="{y0 + 18:.1f}" text-anchor="middle">{s:.0%}</text>' for s in (0.1, 0.5, 1.0)
    ) + "".join(
        f'<text x="{x0 - 8:.1f}" y="{at(0, s)[1] + 4:.1f}" text-anchor="end">{s:.0f} s</text>'
        for s in (0, top / 2, top)
    )
    target.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'font-family="sans-serif" font-size="12">'
        f'<rect width="{width}" height="{height}" fill="white"/>'
        f'<path d="M{x0} 20 V{y0} H{width - 20}" stroke="black" fill="none"/>'
        f'<path d="M{x0:.1f} {y1:.1f} H{x1:.1f}" stroke="#b00" stroke-dasharray="6 4"/>'
        f'<text x="{x0 + 8:.1f}" y="{y1 - 6:.1f}" fill="#b00">by hand, whatever is touched</text>'
        f'<polyline points="{line}" stroke="#06c" fill="none" stroke-width="2"/><g fill="#06c">{dots}</g>{marks}'
        f'<text x="{width / 2}" y="{height - 4}" text-anchor="middle">share of files touched</text></svg>\n'
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--files", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--no-results", action="store_true")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        way, cores, share, rows, files, folder = json.loads(options.measure)
        print(measure(way, cores, share, rows, files, Path(folder)))
        return
    folder = options.folder or Path(tempfile.mkdtemp(prefix="lockgate-bench-"))
    folder.mkdir(parents=True, exist_ok=True)
    make_data(folder, options.rows, options.files)

    def seconds(way: str, cores: int, share: float, where: Path = folder) -> float:
        taken = [child(way, cores, share, options.rows, options.files, str(where)) for _ in range(options.rounds)]
        print(f"{way:9} {cores} core(s), {share:4.0%} of the files: {median(taken):6.2f} s", flush=True)
        return median(taken)

    hand = seconds("by hand", 2, 0.05)
    shares = {share: seconds("lockgate", 2, share) for share in SHARES}
    with in_memory() as memory:  # a slow disk would be all that is seen
        make_data(memory, options.rows, options.files)
        one, two = (seconds("lockgate", cores, 1.0, memory) for cores in (1, 2))
    lines = [
        f"{options.rows:,} rows in {options.files} files, 2 cores; a tenth of the rows of each touched file changes.",
        "",
        "| share of files touched | seconds | times the 1 % merge |",
        "| --- | --- | --- |",
        *(f"| {share:.0%} | {taken:.1f} | {taken / shares[0.01]:.1f} |" for share, taken in shares.items()),
        "",
        f"By hand with 5 % touched: {hand:.1f} s, {hand / shares[0.05]:.1f} times Lockgate's {shares[0.05]:.1f} s.",
        "",
        f"All files touched, files in memory: 1 core {one:.1f} s, 2 cores {two:.1f} s: {one / two:.2f} times as fast.",
    ]
    print("\n".join(lines))
    if not options.no_results:
        (HERE / "results.md").write_text("# Results\n\n" + "\n".join(lines) + "\n\n![](touched.svg)\n")
        plot(shares, hand, HERE / "touched.svg")


if __name__ == "__main__":
    main()
