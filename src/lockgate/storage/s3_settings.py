"""Where S3 is and who asks: from a connection of the profile, else from the usual AWS variables and files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

from lockgate.config import Connection
from lockgate.errors import ConfigError

TYPE = "s3"


@dataclass(frozen=True)
class S3Settings:
    """What is None or empty is left to the AWS variables."""

    endpoint: str | None = None
    region: str | None = None
    path_style: bool = False
    access_key_id: str | None = field(default=None, repr=False)
    secret_access_key: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)
    aws_profile: str | None = None
    connect_timeout: float = 10.0  # seconds
    timeout: float = 60.0  # seconds without a byte of the reply
    attempts: int = 5  # of one request, with a growing pause between them
    part_size: int = 8  # MiB of a part of an upload

    @classmethod
    def of(cls, connection: Connection) -> S3Settings:
        if problem := settings_problem(connection):
            raise ConfigError(problem)
        return cls(**connection.settings)


_KINDS: Mapping[str, tuple[type, ...]] = {
    "endpoint": (str,),
    "region": (str,),
    "path_style": (bool,),
    "access_key_id": (str,),
    "secret_access_key": (str,),
    "session_token": (str,),
    "aws_profile": (str,),
    "connect_timeout": (int, float),
    "timeout": (int, float),
    "attempts": (int,),
    "part_size": (int,),
}


def settings_problem(connection: Connection) -> str | None:
    """What is wrong with a connection of the type s3; never with its secrets in it.

    >>> settings_problem(Connection("lake", "s3", {"end_point": "http://127.0.0.1:9000"}))
    "connection lake has the unknown setting 'end_point'; did you mean endpoint?"
    """
    if connection.type.lower() != TYPE:
        return f"connection {connection.name} has the type {connection.type}, and s3:// addresses need the type {TYPE}"
    for name, value in connection.settings.items():
        if name not in _KINDS:
            close = get_close_matches(name, _KINDS, n=1)
            near = f"did you mean {close[0]}?" if close else f"there are {', '.join(_KINDS)}"
            return f"connection {connection.name} has the unknown setting {name!r}; {near}"
        is_flag = isinstance(value, bool)
        if not isinstance(value, _KINDS[name]) or (is_flag and bool not in _KINDS[name]):
            return f"connection {connection.name}: {name} has a value of the wrong kind"
    settings = connection.settings
    endpoint = settings.get("endpoint")
    if endpoint is not None and not endpoint.startswith(("http://", "https://")):
        return f"connection {connection.name}: endpoint must begin with http:// or https://"
    for name, least in (("connect_timeout", 0.001), ("timeout", 0.001), ("attempts", 1), ("part_size", 5)):
        if settings.get(name, least) < least:
            return f"connection {connection.name}: {name} must be at least {least:g}"
    if ("access_key_id" in settings) != ("secret_access_key" in settings):
        return f"connection {connection.name}: access_key_id and secret_access_key are given together or not at all"
    return None


def connection_problem(connections: Mapping[str, Connection], name: str | None) -> str | None:
    """Why no connection can be chosen for an address."""
    if name is not None:
        if name not in connections:
            known = ", ".join(sorted(n for n, c in connections.items() if c.type.lower() == TYPE)) or "none"
            return f"the profile has no connection {name}; of the type {TYPE} it has: {known}"
        return settings_problem(connections[name])
    fitting = _fitting(connections)
    if len(fitting) > 1:
        return f"the profile has {len(fitting)} connections of the type {TYPE}; say which with the option 'connection'"
    return settings_problem(fitting[0]) if fitting else None


def chosen_settings(connections: Mapping[str, Connection], name: str | None = None) -> S3Settings:
    """By the connection that is named, else by the only one of the type s3, else by the AWS variables."""
    if problem := connection_problem(connections, name):
        raise ConfigError(problem, in_place="nothing was written")
    fitting = [connections[name]] if name is not None else _fitting(connections)
    return S3Settings.of(fitting[0]) if fitting else S3Settings()


def _fitting(connections: Mapping[str, Connection]) -> list[Any]:
    return [c for c in connections.values() if c.type.lower() == TYPE]
