"""Where a project's tables are: the address of their log, and the folder of each. Light: `check` loads this."""

from __future__ import annotations

from pathlib import Path

from lockgate.config import Project, redact_address
from lockgate.errors import ArgumentError

_NOTHING = "nothing was written"
_SQLITE = "sqlite:///"


def log_address(project: Project, log: str | None = None) -> str:
    """The address of the log, a relative file of SQLite made absolute: it is relative to the project.

    >>> log_address(Project(Path("/work")))
    'sqlite:////work/.lockgate/log.db'
    """
    address = log or project.profile.log
    if not address.startswith(_SQLITE):
        if not address.startswith(("postgresql://", "postgres://")):
            raise ArgumentError(
                f"{redact_address(address)!r} is not the address of a log",
                in_place=_NOTHING,
                hint='write "sqlite:///file" or "postgresql://user@host/database"',
            )
        return address
    return f"{_SQLITE}{project.root / address.removeprefix(_SQLITE)}"


def table_folder(project: Project, name: str, location: str | Path | None = None) -> Path:
    """The folder of a table: below the warehouse by the parts of its name, unless a location is given.

    >>> table_folder(Project(Path("/work")), "sales.daily").as_posix()
    '/work/warehouse/sales/daily'
    """
    problem = name_problem(name)
    if problem:
        raise ArgumentError(problem, in_place=_NOTHING, hint='a table is named like "sales.daily"')
    if location is not None:
        return _local(project, str(location))
    return _local(project, project.profile.warehouse).joinpath(*name.split("."))


def name_problem(name: object) -> str | None:
    """Why a text is no name of a table; None where it is one.

    >>> name_problem("sales..daily")
    "'sales..daily' is not the name of a table: a part of it is empty"
    """
    if not isinstance(name, str) or not name:
        return f"{name!r} is not the name of a table"
    for part in name.split("."):
        if not part.strip():
            return f"{name!r} is not the name of a table: a part of it is empty"
        if part.startswith("_"):
            return f"{name!r} is not the name of a table: the folder of {part!r} would be hidden from readers"
        if any(c in "/\\:" or not c.isprintable() for c in part) or not _is_text(part):
            return f"{name!r} is not the name of a table: {part!r} cannot name a folder"
        if len(part.encode()) > 200:
            return "the name of a table has a part of more than 200 bytes, which no folder can have"
    return None


def _is_text(part: str) -> bool:
    try:
        part.encode()
    except UnicodeEncodeError:
        return False
    return True


def _local(project: Project, place: str) -> Path:
    if "://" in place or not place or "\0" in place:
        raise ArgumentError(
            f"tables cannot live at {redact_address(place)!r} in this version",
            in_place=_NOTHING,
            hint="name a folder of this machine",
        )
    return Path(project.root, place).resolve()
