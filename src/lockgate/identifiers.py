"""Quoting names for SQL, in one place."""


def quoted(name: str) -> str:
    """A name as Spark SQL takes it exactly, whatever is in it.

    >>> quoted("a`b")
    '`a``b`'
    """
    return "`" + name.replace("`", "``") + "`"


def double_quoted(name: str) -> str:
    """A name as PostgreSQL takes it exactly: upper and lower case, spaces, signs and all.

    >>> double_quoted('a"b')
    '"a""b"'
    """
    return '"' + name.replace('"', '""') + '"'
