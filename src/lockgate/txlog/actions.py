"""Delta's actions as records, to and from the JSON lines of a commit.

`path` is what Delta's JSON holds: a URI relative to the table, percent-encoded once (`paths.as_uri`).
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeAlias

from lockgate.errors import ValidationError

_ENCODE = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


@dataclass(frozen=True, slots=True)
class DeletionVector:
    """Which rows of a file are deleted."""

    storage_type: str
    path_or_inline_dv: str
    size_in_bytes: int
    cardinality: int
    offset: int | None = None

    @property
    def unique_id(self) -> str:
        """What tells it from every other deletion vector.

        >>> DeletionVector("u", "ab^-aqEH.-t@S}K{vb[*k^", 36, 2, 4).unique_id
        'uab^-aqEH.-t@S}K{vb[*k^@4'
        """
        at = "" if self.offset is None else f"@{self.offset}"
        return f"{self.storage_type}{self.path_or_inline_dv}{at}"


@dataclass(frozen=True, slots=True)
class Add:
    """A file joins the table. `stats` is JSON text and is kept byte for byte."""

    path: str
    partition_values: Mapping[str, str | None]
    size: int
    modification_time: int
    data_change: bool = True
    stats: str | None = None
    tags: Mapping[str, str] | None = None
    deletion_vector: DeletionVector | None = None
    base_row_id: int | None = None
    default_row_commit_version: int | None = None
    clustering_provider: str | None = None

    key: ClassVar[str] = "add"

    @property
    def deletion_vector_id(self) -> str | None:
        return self.deletion_vector.unique_id if self.deletion_vector else None


@dataclass(frozen=True, slots=True)
class Remove:
    """A file leaves the table. Without `deletion_timestamp` the log takes the time of the commit."""

    path: str
    deletion_timestamp: int | None = None
    data_change: bool = True
    extended_file_metadata: bool | None = None
    partition_values: Mapping[str, str | None] | None = None
    size: int | None = None
    stats: str | None = None
    tags: Mapping[str, str] | None = None
    deletion_vector: DeletionVector | None = None
    base_row_id: int | None = None
    default_row_commit_version: int | None = None

    key: ClassVar[str] = "remove"

    @property
    def deletion_vector_id(self) -> str | None:
        return self.deletion_vector.unique_id if self.deletion_vector else None


@dataclass(frozen=True, slots=True)
class Format:
    """How the files of a table are written: always Parquet."""

    provider: str = "parquet"
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Metadata:
    """A table's schema (`schema_string` is JSON text), its partition columns and its properties."""

    id: str
    schema_string: str
    partition_columns: Sequence[str] = ()
    configuration: Mapping[str, str] = field(default_factory=dict)
    name: str | None = None
    description: str | None = None
    created_time: int | None = None
    format: Format = Format()

    key: ClassVar[str] = "metaData"


@dataclass(frozen=True, slots=True)
class Protocol:
    """What a reader and a writer of the table must understand."""

    min_reader_version: int
    min_writer_version: int
    reader_features: Sequence[str] | None = None
    writer_features: Sequence[str] | None = None

    key: ClassVar[str] = "protocol"


@dataclass(frozen=True, slots=True)
class Txn:
    """How far an application has come with its own numbering."""

    app_id: str
    version: int
    last_updated: int | None = None

    key: ClassVar[str] = "txn"


@dataclass(frozen=True, slots=True)
class CommitInfo:
    """What a commit says about itself. The log adds `timestamp` and `txnId`."""

    info: Mapping[str, Any]

    key: ClassVar[str] = "commitInfo"


@dataclass(frozen=True, slots=True)
class DomainMetadata:
    """A named piece of configuration that belongs to a feature."""

    domain: str
    configuration: str
    removed: bool = False

    key: ClassVar[str] = "domainMetadata"


Action: TypeAlias = Add | Remove | Metadata | Protocol | Txn | CommitInfo | DomainMetadata


def to_json(action: Action) -> str:
    """One line of a commit, as Delta writes it.

    >>> to_json(Txn("loader", 3))
    '{"txn":{"appId":"loader","version":3}}'
    """
    return _ENCODE({action.key: body_of(action)})


def from_json(line: str | bytes | Mapping[str, Any], *, strict: bool = False) -> Action:
    """The action of one line, or of the dict that the line stands for. `strict` refuses fields that nobody knows,
    which would otherwise be left out, as Delta's readers do.

    >>> from_json('{"txn":{"appId":"loader","version":3}}')
    Txn(app_id='loader', version=3, last_updated=None)
    """
    from lockgate.txlog.action_json import read_action

    if isinstance(line, (str, bytes)):
        try:
            line = json.loads(line)
        except ValueError as error:
            raise ValidationError(f"an action is not JSON: {error}", in_place="nothing was committed") from error
    if not isinstance(line, Mapping):
        raise ValidationError(f"an action is a JSON object, not {line!r:.80}", in_place="nothing was committed")
    return read_action(line, strict=strict)


def json_text(value: Any) -> str:
    """A value as it is written inside a commit."""
    return _ENCODE(value)


def body_of(action: Action) -> dict[str, Any]:
    """What stands behind the action's key in its line."""
    from lockgate.txlog.action_json import write_action

    return write_action(action)
