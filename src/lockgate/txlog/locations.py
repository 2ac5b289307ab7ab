"""Where tables live: how a place is spelled in the log, and that no two tables share one."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from lockgate.errors import TableExists
from lockgate.txlog.records import TableRecord
from lockgate.txlog.validation import check_name


def spelled(location: str, root: Path) -> str:
    """An absolute path without a trailing slash, or an `s3://` address without one.

    >>> spelled("warehouse/sales/orders/", Path("/project"))
    '/project/warehouse/sales/orders'
    """
    check_name(location[:1000], "a location")
    if "://" in location:
        return location.rstrip("/")
    return os.path.normpath(root.absolute() / location)


def require_free(tables: Iterable[TableRecord], name: str, location: str) -> None:
    """Refuse a name that is taken, and a location that is another table's, lies inside it or around it."""
    for each in tables:
        if each.name == name:
            raise TableExists(
                f"the log has a table {name} already, at {each.location}", in_place="nothing was created",
                hint="open that one, or give another name",
            )  # fmt: skip
        if f"{location}/".startswith(f"{each.location}/") or f"{each.location}/".startswith(f"{location}/"):
            raise TableExists(
                f"the location {location} belongs to the table {each.name}, which is at {each.location}",
                in_place="nothing was created",
                hint="give the table a folder of its own",
            )
