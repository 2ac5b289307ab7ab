"""Tables on standard output: as wide as the terminal, and unbroken where there is none."""

from __future__ import annotations

import sys
from collections.abc import Sequence

_WIDE = 10_000


def print_table(heading: Sequence[str], rows: Sequence[Sequence[str]], title: str | None = None) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=None, header_style="bold", pad_edge=False)
    for name in heading:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*row)
    Console(width=None if sys.stdout.isatty() else _WIDE, highlight=False, markup=False).print(table, crop=False)
