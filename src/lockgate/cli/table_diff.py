"""`lockgate table diff`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from lockgate.cli.console import DEBUG, JSON, PROFILE, errors_shown, print_json
from lockgate.cli.dataset_options import columns
from lockgate.cli.table import NAME
from lockgate.cli.tables import print_table

if TYPE_CHECKING:
    import pyarrow as pa


@click.command()
@NAME
@click.argument("old", type=click.IntRange(min=0))
@click.argument("new", type=click.IntRange(min=0))
@click.option("--key", multiple=True, required=True, metavar="COLUMNS", help="The columns that tell rows apart.")
@click.option("--limit", type=click.IntRange(min=0), default=5, show_default=True, help="Rows to show of each kind.")
@PROFILE
@JSON
@DEBUG
def diff(
    name: str, old: int, new: int, key: tuple[str, ...], limit: int, profile: str | None, json: bool, debug: bool
) -> None:
    """Show which rows version NEW of the table NAME has that version OLD has not, and the other way round."""
    with errors_shown(debug, json):
        from lockgate.tables.entry import open_table

        with open_table(name, profile=profile) as table:
            found = table.diff(old, new, columns(key))
    kinds = {"added": found.added, "removed": found.removed}
    if json:
        print_json(
            {
                "table": name,
                "old": found.old,
                "new": found.new,
                **{kind: rows.num_rows for kind, rows in kinds.items()},
                "changed": found.changed,
                "files_read": found.files_read,
                "rows": {
                    **{kind: rows.slice(0, limit).to_pylist() for kind, rows in kinds.items()},
                    "changed": [
                        {"before": before, "after": after}
                        for before, after in zip(
                            found.before.slice(0, limit).to_pylist(),
                            found.after.slice(0, limit).to_pylist(),
                            strict=True,
                        )
                    ],
                },
            }
        )
        return
    click.echo(
        f"{name}, version {found.old} to {found.new}: {found.added.num_rows:,} rows added, "
        f"{found.removed.num_rows:,} removed, {found.changed:,} changed"
    )
    for kind, rows in (*kinds.items(), ("changed from", found.before), ("changed to", found.after)):
        if rows.num_rows and limit:
            _print(kind, rows, limit)


def _print(kind: str, rows: pa.Table, limit: int) -> None:
    more = f" (the first {limit} of {rows.num_rows:,})" if rows.num_rows > limit else ""
    shown = [["NULL" if v is None else str(v) for v in row.values()] for row in rows.slice(0, limit).to_pylist()]
    print_table(rows.column_names, shown, title=f"{kind}{more}")
