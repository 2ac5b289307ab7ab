"""Progress of a run on standard error: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from lockgate.running.progress import Progress, Silent


def make_progress(*, quiet: bool = False) -> Progress:
    if quiet:
        return Silent()
    return TerminalProgress() if sys.stderr.isatty() else PlainProgress()


class PlainProgress:
    """A line for each thing that is finished, for logs."""

    def phase(self, name: str) -> None:
        self._print(f"{name}:")

    @contextmanager
    def working(self, what: str, watch: Path | None = None) -> Iterator[None]:
        del watch
        began = time.monotonic()
        yield
        if time.monotonic() - began >= 1.0:
            self._print(f"  {what}: {time.monotonic() - began:.1f} s")

    def done(self, what: str, detail: str = "") -> None:
        self._print(f"  {what}: {detail or 'done'}")

    def failed(self, what: str, detail: str) -> None:
        self._print(f"  {what}: FAILED, {detail}")

    def note(self, text: str) -> None:
        self._print(f"note: {text}")

    @staticmethod
    def _print(text: str) -> None:
        with suppress(OSError, ValueError):  # a closed terminal must not end a run, least of all between two swaps
            print(text, file=sys.stderr, flush=True)


class TerminalProgress:
    """The same with a moving line for what is under way: time, bytes staged and their rate."""

    def __init__(self) -> None:
        from rich.console import Console

        self._console = Console(stderr=True, highlight=False)

    def _print(self, text: str) -> None:
        with suppress(OSError, ValueError):  # as above
            self._console.print(text)

    def phase(self, name: str) -> None:
        self._print(f"[bold cyan]{_plain(name)}[/bold cyan]")

    @contextmanager
    def working(self, what: str, watch: Path | None = None) -> Iterator[None]:
        from rich.progress import BarColumn, DownloadColumn, TextColumn, TimeElapsedColumn, TransferSpeedColumn
        from rich.progress import Progress as Bar

        columns = [TextColumn("  {task.description}"), BarColumn(bar_width=20), TimeElapsedColumn()]
        if watch is not None:
            columns += [DownloadColumn(), TransferSpeedColumn()]
        with Bar(*columns, console=self._console, transient=True) as bar:
            task = bar.add_task(what, total=None)
            finished = threading.Event()

            def follow(folder: Path) -> None:
                while not finished.wait(0.25):
                    bar.update(task, completed=_size(folder))

            follower = threading.Thread(target=follow, args=(watch,), daemon=True) if watch is not None else None
            if follower:
                follower.start()
            try:
                yield
            finally:
                finished.set()
                if follower:
                    follower.join()

    def done(self, what: str, detail: str = "") -> None:
        self._print(f"  [green]✓[/green] {_plain(what)}  [dim]{_plain(detail)}[/dim]")

    def failed(self, what: str, detail: str) -> None:
        self._print(f"  [red]✗[/red] {_plain(what)}  [red]{_plain(detail)}[/red]")

    def note(self, text: str) -> None:
        self._print(f"  [yellow]note:[/yellow] {_plain(text)}")


def _plain(text: str) -> str:
    from rich.markup import escape

    return escape(text)


def _size(folder: Path) -> int:
    """Bytes below a folder that others are writing to; what vanishes while we look does not count."""
    total = 0
    for where, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.stat(os.path.join(where, name)).st_size
            except OSError:
                continue
    return total
