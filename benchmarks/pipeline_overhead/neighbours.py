"""How much of the machine others used while something was timed. A timing they took part in says little."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
_IDLE = (3, 4)  # idle and iowait of /proc/stat
_GUEST = (8, 9)  # counted in user and nice already


@dataclass
class Neighbours:
    share: float = 0.0  # of all cores, by processes that are not ours


@contextmanager
def watched() -> Iterator[Neighbours]:
    """Tells, when the block has ended, what others had of the machine meanwhile."""
    seen = Neighbours()
    began, others = time.perf_counter(), _seconds_of_others()
    yield seen
    seen.share = (_seconds_of_others() - others) / (time.perf_counter() - began) / (os.cpu_count() or 1)


def share_of_others(window: float = 0.5) -> float:
    """What others have of the machine just now."""
    with watched() as seen:
        time.sleep(window)
    return seen.share


def cpu_seconds(root: int) -> float:
    """Of a process and those it started, also those that have ended."""
    return sum(_ticks_of_tree(root)) / _TICKS


def _seconds_of_others() -> float:
    """CPU seconds since boot of all but this process and those it started."""
    stat = Path("/proc/stat")
    if not stat.exists():
        return 0.0
    ticks = [int(word) for word in stat.read_text().split("\n", 1)[0].split()[1:]]
    machine = sum(value for place, value in enumerate(ticks) if place not in (*_IDLE, *_GUEST))
    return (machine - sum(_ticks_of_tree(os.getpid()))) / _TICKS


def _ticks_of_tree(root: int) -> list[int]:
    parents: dict[int, int] = {}
    ticks: dict[int, int] = {}
    for each in Path("/proc").iterdir():
        if not each.name.isdigit():
            continue
        try:
            fields = (each / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it ended meanwhile
        parents[int(each.name)] = int(fields[1])
        ticks[int(each.name)] = sum(int(word) for word in fields[11:15])  # with its children that ended
    tree = {root}
    while more := {pid for pid, parent in parents.items() if parent in tree} - tree:
        tree |= more
    return [ticks[pid] for pid in tree if pid in ticks]
