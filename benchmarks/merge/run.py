"""Merging 100,000 rows into a Parquet dataset of 10 million: Lockgate, its limit, and its peers.

python benchmarks/merge/run.py [--rounds N] [--case a|b] [--only NAME] [--skip-pyiceberg] [--planning] [--strict]
                               [--rows N] [--folder DIR] [--patience S] [--timeout S] [--no-results]
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
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from statistics import median

from contenders import BY_NAME, CONTENDERS, Contender
from data import CASES, ROWS

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "pipeline_overhead"))
from neighbours import share_of_others, watched  # noqa: E402

QUIET = 0.10  # a timing counts if other processes had at most this share of the machine
PACKAGES = ("lockgate", "duckdb", "pyarrow", "deltalake", "pyiceberg")


class Failed(Exception):
    """A contender that did not merge, or not rightly."""


@dataclass(frozen=True)
class Timing:
    seconds: float
    megabytes: float
    others: float  # the share of the machine that other processes had meanwhile


@dataclass
class Times:
    timings: list[Timing] = field(default_factory=list)
    failure: str = ""

    @property
    def seconds(self) -> float:
        return median(timing.seconds for timing in self.timings)

    @property
    def megabytes(self) -> float:
        return median(timing.megabytes for timing in self.timings)


@dataclass(frozen=True)
class Target:
    says: str
    case: str
    left: str
    right: str
    of: str  # "seconds" or "megabytes"
    most: float  # left / right


TARGETS = [
    Target("DuckDB engine, time of the limit", "a", "duckdb", "limit", "seconds", 1.3),
    Target("DuckDB engine, time of the limit", "b", "duckdb", "limit", "seconds", 1.3),
    Target("Arrow engine, time of the limit", "a", "arrow", "limit", "seconds", 1.5),
    Target("Arrow engine, time of the limit", "b", "arrow", "limit", "seconds", 2.0),
    Target("Arrow engine, memory of the DuckDB engine", "a", "arrow", "duckdb", "megabytes", 1.0),
    Target("Arrow engine, memory of the DuckDB engine", "b", "arrow", "duckdb", "megabytes", 1.0),
    Target("Arrow engine, time of delta-rs", "a", "arrow", "delta", "seconds", 1 / 5),
    Target("Arrow engine, memory of delta-rs", "a", "arrow", "delta", "megabytes", 1 / 4),
    Target("DuckDB engine, time of delta-rs", "a", "duckdb", "delta", "seconds", 1 / 5),
    Target("DuckDB engine, memory of delta-rs", "a", "duckdb", "delta", "megabytes", 1 / 4),
]

Results = dict[tuple[str, str], Times]  # of a case and a contender


class Bench:
    def __init__(self, folder: Path, timeout: float, give_up: float) -> None:
        self.folder = folder
        self.timeout = timeout
        self.give_up = give_up  # from then on every timing counts

    def quietest(self, contender: Contender, case: str) -> Timing:
        """Time until others leave the machine alone. What decides is what others did, never how long it took."""
        tried: list[Timing] = []
        while True:
            while time.monotonic() < self.give_up and share_of_others() > QUIET:
                pass
            tried.append(self.once(contender, case))
            if contender.once or tried[-1].others <= QUIET or time.monotonic() >= self.give_up:
                return min(tried, key=lambda timing: timing.others)

    def once(self, contender: Contender, case: str) -> Timing:
        """A fresh copy, a fresh process, and a look at the rows. A fast wrong answer is no result."""
        work = self.folder / "work"
        work.mkdir()
        try:
            # Never hard links: whoever writes in place would write the original.
            subprocess.run(["cp", "-r", *_reflink(), str(self.folder / "data"), str(work / "data")], check=True)
            self._step("prepare", contender, case, work)
            with watched() as neighbours:
                said = self._step("merge", contender, case, work)
            self._step("check", contender, case, work)
        finally:
            shutil.rmtree(work)
        result = json.loads(said.splitlines()[-1])
        return Timing(result["seconds"], result["megabytes"], neighbours.share)

    def _step(self, step: str, contender: Contender, case: str, work: Path) -> str:
        command = [sys.executable, str(HERE / "contenders.py"), step, contender.name, case, str(self.folder), str(work)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=self.timeout)
        except subprocess.TimeoutExpired:
            raise Failed(f"{step}: more than {self.timeout:.0f} s") from None
        if done.returncode:
            raise Failed(f"{step}: {(done.stderr.strip().splitlines() or ['no message'])[-1]}")
        return done.stdout


def _reflink() -> list[str]:
    return ["--reflink=auto"] if sys.platform == "linux" else []


def measure(bench: Bench, chosen: list[Contender], cases: list[str], rounds: int) -> Results:
    """Every contender once a round; who begins changes from round to round."""
    results: Results = {(case, contender.name): Times() for case in cases for contender in chosen}
    turns = [(case, contender) for case in cases for contender in chosen]
    for number in range(rounds):
        for case, contender in turns:
            times = results[case, contender.name]
            if times.failure or (contender.once and times.timings):
                continue
            shown = f"  {number + 1}/{rounds} ({case}) {contender.says}"
            try:
                times.timings.append(bench.quietest(contender, case))
            except Failed as failure:
                times.failure = str(failure)
                print(f"{shown}: failed: {failure}", flush=True)
            else:
                last = times.timings[-1]
                print(f"{shown}: {last.seconds:.2f} s, {last.megabytes:,.0f} MB", flush=True)
        turns = turns[1:] + turns[:1]
    return results


def report(results: Results, cases: list[str]) -> str:
    lines: list[str] = []
    for case in cases:
        lines += [
            f"## ({case}) {CASES[case]}",
            "",
            "| | seconds | of the limit | of delta-rs | peak MB | of delta-rs | others |",
            "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
        ]
        for contender in CONTENDERS:
            if (times := results.get((case, contender.name))) is None:
                continue
            if times.failure:
                lines.append(f"| {contender.says} | failed: {times.failure[:160].replace('|', '/')} | | | | | |")
                continue
            seconds = [timing.seconds for timing in times.timings]
            spread = f" ({min(seconds):.2f} to {max(seconds):.2f})" if len(seconds) > 1 else ", once"
            cells = [
                f"{times.seconds:.2f}{spread}",
                _ratio(results, case, contender.name, "limit", "seconds"),
                _ratio(results, case, contender.name, "delta", "seconds"),
                f"{times.megabytes:,.0f}",
                _ratio(results, case, contender.name, "delta", "megabytes"),
                f"{max(timing.others for timing in times.timings):.0%}",
            ]
            lines.append(f"| {contender.says} | {' | '.join(cells)} |")
        lines.append("")
    return "\n".join(lines)


def _quotient(results: Results, case: str, left: str, right: str, of: str) -> float | None:
    sides = [results.get((case, name)) for name in (left, right)]
    if any(side is None or side.failure or not side.timings for side in sides):
        return None
    return getattr(sides[0], of) / getattr(sides[1], of)


def _ratio(results: Results, case: str, left: str, right: str, of: str) -> str:
    quotient = _quotient(results, case, left, right, of)
    return "" if quotient is None else f"{quotient:.2f}"


def judged(results: Results) -> tuple[list[str], bool]:
    """The targets as lines of a table, and whether one of them is missed."""
    lines = ["| target | case | at most | is | |", "| --- | --- | ---: | ---: | --- |"]
    missed = False
    for target in TARGETS:
        quotient = _quotient(results, target.case, target.left, target.right, target.of)
        if quotient is not None:
            missed = missed or quotient > target.most
            verdict = "missed" if quotient > target.most else "held"
            lines.append(f"| {target.says} | {target.case} | {target.most:.2f} | {quotient:.2f} | {verdict} |")
    return (lines if len(lines) > 2 else []), missed


def machine() -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    found = [f"{os.cpu_count()} cores", f"{memory:.0f} GiB", f"Python {platform.python_version()}"]
    for package in PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            continue
    return ", ".join(found)


def available(chosen: list[Contender]) -> list[Contender]:
    for contender in chosen:
        if contender.missing:
            print(f"skipped: {contender.says}: {contender.package} is missing (pip install -r {_requirements()})")
    return [contender for contender in chosen if not contender.missing]


def _requirements() -> str:
    return os.path.relpath(HERE / "requirements.txt")


def main() -> int:
    # For all contenders alike: with Arrow's default allocator the kernel's search for huge pages is most of the time.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--case", choices=list(CASES), action="append")
    parser.add_argument("--only", choices=list(BY_NAME), action="append")
    parser.add_argument("--skip-pyiceberg", action="store_true")
    parser.add_argument("--planning", action="store_true", help="time planning over 10,000 files, too")
    parser.add_argument("--strict", action="store_true", help="exit 1 if a target is missed")
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--folder", type=Path, help="where the data is made, or was: it is kept (else a temporary one)")
    parser.add_argument("--patience", type=float, default=1200, help="seconds to wait in all for a quiet machine")
    parser.add_argument("--timeout", type=float, default=3600, help="seconds for one merge")
    parser.add_argument("--no-results", action="store_true", help="do not write results.md")
    options = parser.parse_args()
    if find_spec("duckdb") is None:
        print("duckdb is missing: it makes the data and checks the results")
        return 1
    chosen = [contender for contender in CONTENDERS if not options.only or contender.name in options.only]
    chosen = available([c for c in chosen if not (options.skip_pyiceberg and c.name == "pyiceberg")])
    cases = [case for case in CASES if not options.case or case in options.case]
    with ExitStack() as stack:
        temporary = None if options.folder else tempfile.TemporaryDirectory(prefix="lockgate-bench-")
        folder = Path(stack.enter_context(temporary)) if temporary else options.folder.resolve()
        if not (folder / "about.json").exists():
            print(f"making {options.rows:,} rows", flush=True)
            subprocess.run(
                [sys.executable, str(HERE / "data.py"), str(folder), "--rows", str(options.rows)], check=True
            )
        about = json.loads((folder / "about.json").read_text())
        results = measure(
            Bench(folder, options.timeout, time.monotonic() + options.patience), chosen, cases, options.rounds
        )
        planned, slow = "", False
        if options.planning:
            from planning import measure as measure_planning
            from planning import report as report_planning

            times = measure_planning(folder, options.rounds)
            planned, slow = report_planning(times)
    verdicts, missed = judged(results)
    head = (
        f"{datetime.now(UTC):%Y-%m-%d}, {about['sent']:,} rows into {about['rows']:,}, "
        f"median of {options.rounds} rounds (fastest to slowest). {machine()}."
    )
    text = "\n".join([head, "", report(results, cases), *verdicts, *([""] if verdicts else []), planned])
    print(text)
    if not options.no_results:
        (HERE / "results.md").write_text(f"# Merging: results\n\n{text.rstrip()}\n")
    failed = any(times.failure for times in results.values())
    return 1 if failed or ((missed or slow) and options.strict) else 0


if __name__ == "__main__":
    sys.exit(main())
