"""Quoting names for SQL, in one place."""


def quoted(name: str) -> str:
    """A name as Spark SQL takes it exactly, whatever is in it.

    >>> quoted("a`b")
    '`a``b`'
    """
    return "`" + name.replace("`", "``") + "`"
