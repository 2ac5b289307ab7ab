"""`lockgate table release`: a table of the log becomes an ordinary Delta table again."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from lockgate.config import Project
from lockgate.tables.opening import opened_log
from lockgate.tables.places import log_address
from lockgate.txlog.existing_release import release_table

if TYPE_CHECKING:
    from lockgate.txlog.writer import TxnLogWriter


@dataclass(frozen=True)
class Released:
    """What was released, and up to which version it is published."""

    table: str
    location: str
    version: int

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def release(project: Project, name: str, *, log: TxnLogWriter | str | None = None) -> Released:
    """Publish all that is pending, then take the table out of the log. Its folder stays, and any writer may have it."""
    opened = opened_log(log_address(project, log)) if log is None or isinstance(log, str) else log
    try:
        record = release_table(opened, name)
    finally:
        if opened is not log:
            opened.close()
    return Released(record.name, record.location, record.current_version)
