"""Several processes append to one table and merge into it: versions without a gap, no file lost or double."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import merge_processes as processes
from support.txlogs import TABLE, Place, add, paths, place


@pytest.fixture(params=["sqlite", "postgres"])
def somewhere(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    server = request.getfixturevalue("postgres") if request.param == "postgres" else None
    return place(tmp_path, request.param, server)


def append(url: str, name: str, count: int) -> None:
    from lockgate.txlog.writer import TxnLogWriter

    with TxnLogWriter.open(url, timeout=300.0) as log:
        for n in range(count):
            log.commit(TABLE, None, [add(f"{name}-{n}")], read_version=None)


def merge(url: str, name: str, count: int) -> None:
    """Take the merged file out and put its successor in, planning again after a clash."""
    import lockgate
    from lockgate.txlog.actions import Remove
    from lockgate.txlog.writer import TxnLogWriter

    with TxnLogWriter.open(url, timeout=300.0) as log:
        done = 0
        while done < count:
            before = log.snapshot(TABLE)
            merged = [p for p in before.files.column("path").to_pylist() if p.startswith("merged")]
            actions = [*(Remove(p) for p in merged), add(f"merged-{name}-{done}", stats=f'{{"after":"{merged}"}}')]
            try:
                log.commit(TABLE, None, actions, read_version=before.version, read_files=merged)
            except lockgate.VersionConflict:
                continue
            done += 1


def run(somewhere: Place, appenders: int, appends: int, mergers: int, merges: int) -> None:
    with somewhere.open() as log:
        somewhere.table(log, publish=True)
    started = [processes.start(append, somewhere.url, f"p{n}", appends) for n in range(appenders)]
    started += [processes.start(merge, somewhere.url, f"m{n}", merges) for n in range(mergers)]
    assert [processes.end_of(each) for each in started] == [0] * len(started)
    last = appenders * appends + mergers * merges
    with somewhere.open() as log:
        log.publish()
        history = log.history(TABLE)
        assert [record.version for record in history] == list(range(last, -1, -1))
        times = [record.timestamp for record in reversed(history)]
        assert times == sorted(set(times))
        there = paths(log)
        appended = sorted(f"p{n}-{i}" for n in range(appenders) for i in range(appends))
        assert [path for path in there if not path.startswith("merged")] == appended
        # Merges form a chain: each took out exactly what the one before it in the log put in.
        previous: list[str] = []
        for changes in log.changes(TABLE, 1):
            added = [a.path for a in changes.actions if a.key == "add" and a.path.startswith("merged")]
            if added:
                assert [a.path for a in changes.actions if a.key == "remove"] == previous
                previous = added
        assert [path for path in there if path.startswith("merged")] == previous
    names = sorted(p.name for p in (Path(somewhere.location) / "_delta_log").glob("*.json"))
    assert names == [f"{n:020}.json" for n in range(last + 1)]


def test_appends_and_merges_of_several_processes(somewhere: Place) -> None:
    run(somewhere, 4, 25, 2, 5)


@pytest.mark.slow
def test_eight_processes_append_250_times_each(somewhere: Place) -> None:
    run(somewhere, 8, 250, 0, 0)


@pytest.mark.slow
def test_eight_processes_append_and_merge(somewhere: Place) -> None:
    run(somewhere, 8, 100, 3, 20)
