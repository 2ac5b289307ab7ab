"""The schema's versions: one `.sql` file each, applied in order."""

from __future__ import annotations

from importlib.resources import files

from lockgate.errors import DatabaseError


def scripts(database: str) -> list[list[str]]:
    """The statements of each version of the schema, oldest first.

    >>> scripts("sqlite")[0][0].partition(" (")[0]
    'CREATE TABLE dl_tables'
    """
    folder = files(__package__).joinpath("schema", database)
    names = sorted(entry.name for entry in folder.iterdir() if entry.name.endswith(".sql"))
    return [_statements(folder.joinpath(name).read_text(encoding="utf-8")) for name in names]


def _statements(script: str) -> list[str]:
    """Statements end with a semicolon at the end of a line; those of a function's body, between `$$`, are one."""
    parts: list[str] = []
    for line in script.split(";\n"):
        if parts and parts[-1].count("$$") % 2:
            parts[-1] += f";\n{line}"
        else:
            parts.append(line)
    return [part.strip() for part in parts if part.strip()]


def require_known(found: int, known: int, address: str) -> None:
    """Refuse a schema that a newer version made."""
    if found > known:
        raise DatabaseError(
            f"the log {address} was written by a newer Lockgate (schema {found}, this one knows {known})",
            in_place="nothing was read or written",
            hint="upgrade lockgate",
        )


def require_current(found: int, known: int, address: str) -> None:
    """Refuse a schema that is missing or older."""
    require_known(found, known, address)
    if found == 0:
        raise DatabaseError(
            f"there is no log at {address}",
            in_place="nothing was read or written",
            hint="create a table first (`lockgate table create`), or correct the address of the log",
        )
    if found < known:
        raise DatabaseError(
            f"the log {address} has schema {found}, and this Lockgate needs {known}",
            in_place="nothing was read or written",
            hint="run `lockgate table migrate`",
        )
