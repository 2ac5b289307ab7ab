"""Passwords kept out of what is said."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import quote, unquote, urlsplit


def secrets_of(url: str) -> tuple[str, ...]:
    """The password in an address, as it stands there and as it is meant.

    >>> secrets_of("postgresql://me:p%40ss@host/db")
    ('p%40ss', 'p@ss')
    """
    password = urlsplit(url).password if "://" in url else None
    return tuple(dict.fromkeys((password, unquote(password), quote(unquote(password))))) if password else ()


def without(secrets: Iterable[str], text: str) -> str:
    """A message of a library, which may quote the address it was given.

    >>> without(["hunter2"], "cannot parse postgresql://me:hunter2@host")
    'cannot parse postgresql://me:***@host'
    """
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        text = text.replace(secret, "***")
    return text
