"""Planning a merge that touches 3 of 10,000 files, against just opening the footers of all.

python benchmarks/merge/planning.py [--rounds N] [--files N] [--folder DIR] [--strict]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from statistics import median

from data import touched_small

HERE = Path(__file__).resolve().parent
FILES = 10_000
MOST = 1.2  # times the footers
SIDES = {
    "footers": "the footers alone: `pq.read_metadata` in a pool of threads",
    "loop": "the footers alone: `pq.read_metadata` in a loop",
    "plan": "`lockgate.plan_incremental_rewrite`",
    "dry-run": "`lockgate.merge(…, dry_run=True)`",
}
BARE = ("footers", "loop")
Times = dict[str, list[float]]


def footers(folder: Path) -> Callable[[], list[str] | None]:
    import pyarrow.parquet as pq

    files = [str(file) for file in sorted((folder / "small").iterdir())]

    def opened() -> None:
        with ThreadPoolExecutor() as pool:
            for _ in pool.map(pq.read_metadata, files):
                pass

    return opened


def loop(folder: Path) -> Callable[[], list[str] | None]:
    import pyarrow.parquet as pq

    files = [str(file) for file in sorted((folder / "small").iterdir())]

    def opened() -> None:
        for file in files:
            pq.read_metadata(file)

    return opened


def plan(folder: Path) -> Callable[[], list[str] | None]:
    import pyarrow.compute
    import pyarrow.dataset  # noqa: F401
    import pyarrow.parquet as pq

    import lockgate

    keys = pq.read_table(folder / "keys.parquet", columns=["id"])
    planned, path = lockgate.plan_incremental_rewrite, str(folder / "small")
    return lambda: planned(path, source_keys=keys, key_columns=["id"]).affected_files


def dry_run(folder: Path) -> Callable[[], list[str] | None]:
    import pyarrow.compute
    import pyarrow.dataset  # noqa: F401
    import pyarrow.parquet as pq

    import lockgate

    source = pq.read_table(folder / "keys.parquet")
    merge, path = lockgate.merge, str(folder / "small")

    def planned() -> list[str]:
        done = merge(source, path, strategy="upsert", key_columns=["id"], engine="arrow", dry_run=True)
        return done.rewritten_files

    return planned


def one(side: str, folder: Path) -> None:
    """What a process of its own does: time one side and print the seconds."""
    call = {"footers": footers, "loop": loop, "plan": plan, "dry-run": dry_run}[side](folder)
    began = time.perf_counter()
    found = call()
    seconds = time.perf_counter() - began
    if found is not None:
        names = sorted(Path(file).name for file in found)
        files = sorted(file.name for file in (folder / "small").iterdir())
        assert names == [files[number] for number in touched_small(len(files))], f"{side} found {names}"
    print(json.dumps(seconds))


def forget(folder: Path) -> bool:
    """Drop the files' pages from the cache, where the system can be asked to."""
    if not hasattr(os, "posix_fadvise"):
        return False
    os.sync()  # a dirty page stays
    for file in (folder / "small").iterdir():
        handle = os.open(file, os.O_RDONLY)
        os.posix_fadvise(handle, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(handle)
    return True


def measure(folder: Path, rounds: int, files: int = FILES) -> Times:
    if not (folder / "keys.parquet").exists():
        print(f"making {files:,} small files", flush=True)
        subprocess.run([sys.executable, str(HERE / "data.py"), str(folder), "--small", str(files)], check=True)
    times: Times = {side: [] for side in SIDES}
    turns = list(SIDES)
    for number in range(rounds):
        for side in turns:
            forget(folder)
            command = [sys.executable, str(HERE / "planning.py"), "--side", side, "--folder", str(folder)]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                print(f"  {side} failed: {(done.stderr.strip().splitlines() or ['no message'])[-1]}", flush=True)
                continue
            times[side].append(json.loads(done.stdout.splitlines()[-1]))
        shown = ", ".join(f"{side} {times[side][-1]:.2f} s" for side in SIDES if times[side])
        print(f"  planning {number + 1}/{rounds}: {shown}", flush=True)
        turns = turns[1:] + turns[:1]
    return times


def report(times: Times) -> tuple[str, bool]:
    """A table, and whether the target is missed."""
    cold = "pages dropped from the cache" if hasattr(os, "posix_fadvise") else "a warm page cache"
    lines = [
        "## Planning",
        "",
        f"A fresh process each, {cold}; the target is at most {MOST:g} times the footers in a pool of threads.",
        "",
        "| | seconds | of the pool | of the loop | |",
        "| --- | ---: | ---: | ---: | --- |",
    ]
    missed = False
    for side, says in SIDES.items():
        if not times[side] or not all(times[bare] for bare in BARE):
            lines.append(f"| {says} | failed | | | |")
            missed = True
            continue
        seconds = times[side]
        of_pool, of_loop = (median(seconds) / median(times[bare]) for bare in BARE)
        verdict = "" if side in BARE else "held" if of_pool <= MOST else "missed"
        missed = missed or verdict == "missed"
        spread = f"{median(seconds):.2f} ({min(seconds):.2f} to {max(seconds):.2f})"
        lines.append(f"| {says} | {spread} | {of_pool:.2f} | {of_loop:.2f} | {verdict} |")
    return "\n".join([*lines, ""]), missed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--files", type=int, default=FILES)
    parser.add_argument("--folder", type=Path, help="where the files are made, or were: it is kept")
    parser.add_argument("--strict", action="store_true", help="exit 1 if the target is missed")
    parser.add_argument("--side", choices=list(SIDES), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        one(options.side, options.folder)
        return 0
    with ExitStack() as stack:
        temporary = None if options.folder else tempfile.TemporaryDirectory(prefix="lockgate-bench-")
        folder = Path(stack.enter_context(temporary)) if temporary else options.folder.resolve()
        text, missed = report(measure(folder, options.rounds, options.files))
    print(text)
    return 1 if missed and options.strict else 0


if __name__ == "__main__":
    sys.exit(main())
