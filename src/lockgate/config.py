"""`lockgate.toml` as frozen records. Secrets come from the environment and are hidden in every repr."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from lockgate.errors import ConfigError

FILE_NAME = "lockgate.toml"
STATE_FOLDER = ".lockgate"

_SECRET_KEY = re.compile(r"password|secret|token|credential|access_key", re.IGNORECASE)
_ENVIRONMENT = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")


@dataclass(frozen=True)
class SparkSettings:
    master: str = "local[*]"
    remote: str | None = field(default=None, repr=False)
    conf: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def address(self) -> str:
        """Where Spark is, as it may be shown."""
        return redact_address(self.remote) if self.remote else self.master


@dataclass(frozen=True)
class Connection:
    """A named place outside: a database, a bucket. Its settings may hold secrets, so its repr hides them."""

    name: str
    type: str
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __repr__(self) -> str:
        shown = {key: redact(key, value) for key, value in self.settings.items()}
        return f"Connection(name={self.name!r}, type={self.type!r}, settings={shown!r})"


@dataclass(frozen=True)
class Profile:
    name: str = "dev"
    tables: str = "memory"
    warehouse: str = "warehouse"
    log: str = field(default="sqlite:///.lockgate/log.db", repr=False)
    staging: str = ""
    spark: SparkSettings = SparkSettings()
    variables: Mapping[str, Any] = field(default_factory=dict, repr=False)
    connections: Mapping[str, Connection] = field(default_factory=dict)


@dataclass(frozen=True)
class Project:
    """The folder a pipeline belongs to, and the profile in force."""

    root: Path
    profile: Profile = Profile()

    @property
    def state(self) -> Path:
        return self.root / STATE_FOLDER


def load_project(
    start: Path | None = None, *, profile: str | None = None, environment: Mapping[str, str] | None = None
) -> Project:
    """The project of the folder `start` (else the current one): the nearest `lockgate.toml` at or above it.

    >>> import tempfile
    >>> load_project(Path(tempfile.mkdtemp())).profile.spark.master
    'local[*]'
    """
    here = (start or Path.cwd()).resolve()
    environment = os.environ if environment is None else environment
    for folder in (here, *here.parents):
        if (folder / FILE_NAME).is_file():
            return Project(folder, _profile(folder / FILE_NAME, profile, environment))
    if profile:
        raise ConfigError(
            f"there is no {FILE_NAME} at or above {here}, so there is no profile {profile!r}",
            hint="leave --profile out to use the defaults, or write the file (`lockgate init` makes one)",
        )
    return Project(here)


def _profile(path: Path, wanted: str | None, environment: Mapping[str, str]) -> Profile:
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {path}: {error}") from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from error
    _known(path, "the file", document, {"default_profile", "profile"})
    profiles = _table(path, "profile", document.get("profile", {}))
    name = wanted or _default_name(path, document, profiles)
    if name not in profiles:
        if wanted is None and not profiles:
            return Profile()
        close = get_close_matches(name, profiles, n=1)
        known = ", ".join(sorted(profiles)) or "none"
        raise ConfigError(
            f"{path} has no profile {name!r}; it has: {known}", hint=f"did you mean {close[0]}?" if close else None
        )
    return _read_profile(path, name, _table(path, f"profile.{name}", profiles[name]), environment)


def _default_name(path: Path, document: Mapping[str, Any], profiles: Mapping[str, Any]) -> str:
    named = document.get("default_profile")
    if named is not None:
        return _text(path, "default_profile", named)
    return next(iter(profiles)) if len(profiles) == 1 else "dev"


def _read_profile(path: Path, name: str, raw: Mapping[str, Any], environment: Mapping[str, str]) -> Profile:
    where = f"profile.{name}"
    _known(path, where, raw, {"tables", "warehouse", "log", "staging", "spark", "variables", "connections"})
    tables = _text(path, f"{where}.tables", raw.get("tables", "memory"))
    if tables not in ("memory", "warehouse"):
        raise ConfigError(f'{path}: {where}.tables must be "memory" or "warehouse", not {tables!r}')
    spark = _table(path, f"{where}.spark", raw.get("spark", {}))
    _known(path, f"{where}.spark", spark, {"master", "remote", "conf"})
    conf = _table(path, f"{where}.spark.conf", spark.get("conf", {}))
    defaults = Profile()
    return Profile(
        name=name,
        tables=tables,
        warehouse=_expand(
            path, _text(path, f"{where}.warehouse", raw.get("warehouse", defaults.warehouse)), environment
        ),
        log=_expand(path, _text(path, f"{where}.log", raw.get("log", defaults.log)), environment),
        staging=_expand(path, _text(path, f"{where}.staging", raw.get("staging", "")), environment),
        spark=SparkSettings(
            master=_expand(path, _text(path, f"{where}.spark.master", spark.get("master", "local[*]")), environment),
            remote=_expand(path, _text(path, f"{where}.spark.remote", spark.get("remote", "")), environment) or None,
            conf={key: _expand(path, _spark_value(value), environment) for key, value in conf.items()},
        ),
        variables=dict(_table(path, f"{where}.variables", raw.get("variables", {}))),
        connections=_connections(path, where, raw.get("connections", {}), environment),
    )


def _connections(path: Path, where: str, raw: Any, environment: Mapping[str, str]) -> dict[str, Connection]:
    found = {}
    for name, value in _table(path, f"{where}.connections", raw).items():
        settings = dict(_table(path, f"{where}.connections.{name}", value))
        kind = settings.pop("type", None)
        if not isinstance(kind, str):
            raise ConfigError(f"{path}: {where}.connections.{name} needs a type", hint='for example type = "postgres"')
        expanded = {k: _expand(path, v, environment) if isinstance(v, str) else v for k, v in settings.items()}
        found[name] = Connection(name, kind, expanded)
    return found


def _expand(path: Path, text: str, environment: Mapping[str, str]) -> str:
    def value(match: re.Match[str]) -> str:
        if match[1] not in environment:
            raise ConfigError(
                f"{path} uses ${{{match[1]}}}, and the environment has no {match[1]}", hint=f"export {match[1]}=..."
            )
        return environment[match[1]]

    return _ENVIRONMENT.sub(value, text)


def _spark_value(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _table(path: Path, where: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise ConfigError(f"{path}: {where} must be a table, not {value!r}")
    return value


def _text(path: Path, where: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ConfigError(f"{path}: {where} must be text, not {value!r}")
    return value


def _known(path: Path, where: str, table: Mapping[str, Any], known: set[str]) -> None:
    for key in table:
        if key not in known:
            close = get_close_matches(key, known, n=1)
            hint = f"did you mean {close[0]}?" if close else f"known here: {', '.join(sorted(known))}"
            raise ConfigError(f"{path}: {where} has no setting {key!r}", hint=hint)


def redact(key: str, value: Any) -> Any:
    """`value` as it may be shown: secrets by their name, passwords inside addresses.

    >>> redact("url", "postgresql://me:hunter2@host/db")
    'postgresql://me:***@host/db'
    """
    if _SECRET_KEY.search(key):
        return "***"
    return redact_address(value) if isinstance(value, str) and "://" in value else value


def redact_address(address: str) -> str:
    """An address without its password, and without parameters such as Spark Connect's `;token=`.

    >>> redact_address("sc://host:15002/;token=hunter2")
    'sc://host:15002/;***'
    """
    parts = urlsplit(address)
    if parts.password:
        parts = parts._replace(netloc=parts.netloc.replace(f":{parts.password}@", ":***@"))
    before, semicolon, _ = urlunsplit(parts._replace(query="", fragment="")).partition(";")
    return before + (";***" if semicolon else "") + ("?***" if parts.query else "")
