"""`lockgate table import`: an existing Delta table becomes one of the log, where it lies."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from lockgate.config import Project
from lockgate.errors import ArgumentError, LockgateError
from lockgate.storage.log_folder import LocalLogFolder
from lockgate.tables.opening import opened_log
from lockgate.tables.places import log_address, table_folder
from lockgate.txlog.existing_import import import_table
from lockgate.txlog.existing_intervals import LIVE
from lockgate.txlog.existing_table import ExistingTable

if TYPE_CHECKING:
    from lockgate.txlog.writer import TxnLogWriter

_NOTHING = "nothing was imported"


@dataclass(frozen=True)
class Imported:
    """What was imported. Versions before `first_version` could not be read any more."""

    table: str
    location: str
    version: int
    first_version: int
    files: int
    bytes: int
    partition_columns: tuple[str, ...]
    constraints: tuple[str, ...]
    applications: int
    notes: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def import_existing(
    project: Project,
    name: str,
    place: str | Path,
    *,
    log: TxnLogWriter | str | None = None,
    progress: Callable[[int], None] | None = None,
) -> Imported:
    """Take the Delta table in the folder `place` into the log under this name. Its files are not touched.

    >>> import deltalake, pyarrow, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> deltalake.write_deltalake(folder, pyarrow.table({"id": [1, 2]}))
    >>> imported = import_existing(Project(Path(tempfile.mkdtemp())), "sales.daily", folder)
    >>> imported.version, imported.files
    (0, 1)
    """
    location = table_folder(project, name, place)
    folder = LocalLogFolder(location)
    if not folder.exists():
        raise ArgumentError(
            f"{location} is no Delta table: it has no folder _delta_log",
            in_place=_NOTHING,
            hint="give the folder of the table",
        )
    opened = opened_log(log_address(project, log)) if log is None or isinstance(log, str) else log
    try:
        found = import_table(opened, name, str(location), folder, progress=progress)
    except LockgateError as error:
        if error.in_place in (None, "nothing was created", "nothing was changed"):
            error.in_place = f"{_NOTHING}; the table at {location} is as it was"
        raise
    finally:
        if opened is not log:
            opened.close()
    return _told(name, str(location), found)


def _told(name: str, location: str, found: ExistingTable) -> Imported:
    metadata = next(commit.metadata for commit in reversed(found.commits) if commit.metadata is not None)
    live = found.adds.filter(pc.equal(found.adds.column("removed_version"), pa.scalar(LIVE, pa.int64())))
    prefix = "delta.constraints."
    return Imported(
        table=name,
        location=location,
        version=found.last,
        first_version=found.first,
        files=live.num_rows,
        bytes=pc.sum(live.column("size")).as_py() or 0,
        partition_columns=tuple(metadata.partition_columns),
        constraints=tuple(sorted(k.removeprefix(prefix) for k in metadata.configuration if k.startswith(prefix))),
        applications=len({txn.app_id for commit in found.commits for txn in commit.transactions}),
        notes=found.notes,
    )
