"""The address of a PostgreSQL server as a profile gives it, and the words in it that no message may repeat."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from lockgate.config import Connection

TYPE = "postgres"
SETTINGS = ("url", "user", "password")
_SCHEMES = ("postgresql", "postgres")
# A server that went away without a word is noticed within about a minute, not after two hours.
_DEFAULTS = {
    "connect_timeout": "10",
    "keepalives_idle": "20",
    "keepalives_interval": "10",
    "keepalives_count": "3",
    "tcp_user_timeout": "60000",
    "application_name": "lockgate",
}
_SHORTEST_SECRET = 3  # characters; to blot out every "a" would make messages unreadable and hide nothing


class AddressProblem(NamedTuple):
    message: str
    hint: str


def is_postgres(connection: Connection) -> bool:
    return connection.type.casefold() == TYPE


def address_problem(connection: Connection) -> AddressProblem | None:
    """What is wrong with the settings, told without repeating them."""
    url = connection.settings.get("url")
    example = 'url = "postgresql://user:${PGPASSWORD}@host:5432/database"'
    unknown = [name for name in connection.settings if name not in SETTINGS]
    if unknown:
        return AddressProblem(f"has the unknown setting {unknown[0]!r}", f"a connection has {', '.join(SETTINGS)}")
    if not isinstance(url, str) or not url:
        return AddressProblem("has no url", example)
    scheme, found, rest = url.partition("://")
    if not found or scheme not in _SCHEMES:
        return AddressProblem("has a url that does not begin with postgresql://", example)
    advice = 'give it as a setting of its own, password = "${PGPASSWORD}", or percent-encode it in the url'
    authority = rest.partition("/")[0].partition("?")[0]
    if rest.count("@") > 1 or ("@" in rest.partition("?")[0] and "@" not in authority) or "#" in rest:
        return AddressProblem("has a url with a sign of its own meaning (@ / #) in the password", advice)
    try:
        _ = urlsplit(url).port
    except ValueError:
        if "," not in authority:  # several hosts, each with its port, are for libpq alone to read
            return AddressProblem("has a url whose port is no number", advice)
    for name in ("user", "password"):
        if not isinstance(connection.settings.get(name, ""), str):
            return AddressProblem(f"has a {name} that is no text", f'{name} = "..."')
    return None


def full_address(connection: Connection) -> str:
    """The address with all settings in it, for the driver's eyes only."""
    url = str(connection.settings["url"])
    given = {name for name, _ in parse_qsl(urlsplit(url).query, keep_blank_values=True)}
    added = {name: value for name, value in _DEFAULTS.items() if name not in given}
    added |= {name: str(connection.settings[name]) for name in ("user", "password") if name in connection.settings}
    query = "&".join(f"{name}={quote(value, safe='')}" for name, value in added.items())
    return f"{url}{'&' if urlsplit(url).query else '' if url.endswith('?') else '?'}{query}"


def secrets(connection: Connection) -> list[str]:
    """Every spelling of the password."""
    url = str(connection.settings.get("url", ""))
    found = [str(connection.settings.get("password", ""))]
    try:
        parts = urlsplit(url)
        password = unquote(parts.password or "")
        found += [parts.password or "", password, quote(password), quote(password, safe="")]
        found += [value for name, value in parse_qsl(parts.query) if "password" in name]
    except ValueError:
        pass
    return sorted({s for s in found if len(s) >= _SHORTEST_SECRET}, key=len, reverse=True)


def without(words: Iterable[str], text: str) -> str:
    """A text in which none of these words stands.

    >>> without(["hunter2"], "no such host: hunter2@db")
    'no such host: ***@db'
    """
    for word in sorted(filter(None, words), key=len, reverse=True):
        text = text.replace(word, "***")
    return text
