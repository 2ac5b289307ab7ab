"""Whether a process that was written down is still there: asked later, by somebody else, perhaps somewhere else."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

_GONE_STATES = ("Z", "X")  # dead, and not yet waited for


def process_note(pid: int) -> dict[str, Any]:
    """What tells this process from a later one of the same number."""
    return {"pid": pid, "started": _started(pid), "where": _where()}


def is_alive(note: dict[str, Any]) -> bool | None:
    """None where it cannot be told: on another machine or in another container, or without the right to look.

    >>> is_alive(process_note(os.getpid())) in (True, None)
    True
    """
    here, pid = _where(), note.get("pid")
    if here is None or note.get("where") != here or not isinstance(pid, int):
        return None
    started = _started(pid)
    if started is not None:
        return bool(started == note.get("started"))
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return None
    return False if _fields(pid) else None  # it is shown, and has ended


def _started(pid: int) -> str | None:
    """When the process was started, in the kernel's ticks; None if it is gone, or not shown to us."""
    fields = _fields(pid)
    return fields[19] if fields and fields[0] not in _GONE_STATES else None


def _fields(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _where() -> str | None:
    """The running kernel and the set of processes that is seen from here."""
    try:
        return f"{Path('/proc/sys/kernel/random/boot_id').read_text().strip()} {Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return None
