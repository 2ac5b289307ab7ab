"""What can be said against actions before any lock is taken: of themselves, and against the table as it is known."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from lockgate.errors import ValidationError
from lockgate.txlog import features
from lockgate.txlog.actions import (
    Action,
    Add,
    CommitInfo,
    DomainMetadata,
    Metadata,
    Protocol,
    Remove,
    Txn,
    from_json,
    json_text,
)
from lockgate.txlog.paths import problem_of

_CONTROL = re.compile("[\0-\x1f]")
# Most names of files: parts of letters and digits with single dots and slashes between, so no way out of the table.
PLAIN = "[A-Za-z0-9_=-]+(?:[./][A-Za-z0-9_=-]+)*"
_PLAIN = re.compile(PLAIN)
_LONGEST_NAME = 1000
LONGEST_PATH = 32_768
_TYPES = (Add, Remove, Metadata, Protocol, Txn, CommitInfo, DomainMetadata)


@dataclass(frozen=True, slots=True)
class TableState:
    """What a commit is validated against. None before the first commit."""

    protocol: Protocol | None = None
    metadata: Metadata | None = None


def read_actions(actions: Iterable[Action | Mapping[str, Any]]) -> list[Action]:
    """The actions as records; dicts are in Delta's JSON form."""
    return [each if isinstance(each, _TYPES) else from_json(each, strict=True) for each in actions]


def validate(actions: Sequence[Action], state: TableState = TableState(), *, table: str = "the table") -> None:
    """Raise `ValidationError` where these actions are no commit to a table in that state.

    >>> validate([Add("../x.parquet", {}, 1, 0)], TableState(Protocol(1, 2), Metadata("id", "{}")))
    Traceback (most recent call last):
    ...
    lockgate.errors.ValidationError: an add of the table has the path '../x.parquet': it leaves the table
    """
    metadata = _only(actions, Metadata, table)
    protocol = _only(actions, Protocol, table)
    _only(actions, CommitInfo, table)
    if protocol is not None:
        _check_protocol(protocol, state.protocol, table)
    if metadata is not None:
        _check_metadata(metadata, table)
    then = TableState(protocol or state.protocol, metadata or state.metadata)
    if then.protocol is None or then.metadata is None:
        missing = " and ".join(n for n, v in (("protocol", then.protocol), ("metaData", then.metadata)) if v is None)
        raise refused(f"the first commit of {table} has no {missing}", "give both with the first commit")
    if metadata is not None or protocol is not None:
        features.refuse_unknown(then.protocol, then.metadata)
    _check_files(actions, then.metadata, table)
    _check_names(actions, then.protocol, table)
    append_only = state.protocol and state.metadata and features.is_append_only(state.protocol, state.metadata)
    if append_only and any(isinstance(each, Remove) and each.data_change for each in actions):
        raise refused(f"{table} is append-only (delta.appendOnly), and the commit removes rows from it")


def refused(message: str, hint: str | None = None) -> ValidationError:
    return ValidationError(message, in_place="nothing was committed", hint=hint)


def _only(actions: Sequence[Action], kind: type[Any], table: str) -> Any:
    found = [each for each in actions if type(each) is kind]
    if len(found) > 1:
        raise refused(f"a commit to {table} has {len(found)} actions {kind.key}; it may have one")
    return found[0] if found else None


def _check_protocol(protocol: Protocol, before: Protocol | None, table: str) -> None:
    problem = features.problem_of(protocol)
    if problem:
        raise refused(f"the protocol of {table} is not one: {problem}")
    if before and (protocol.min_reader_version, protocol.min_writer_version) < (
        before.min_reader_version,
        before.min_writer_version,
    ):
        raise refused(f"the protocol of {table} cannot go back to older versions")


def _check_metadata(metadata: Metadata, table: str) -> None:
    if metadata.format.provider != "parquet":
        raise refused(f"the files of {table} would be {metadata.format.provider}; a Delta table's are parquet")
    try:
        schema = json.loads(metadata.schema_string)
        columns = [field["name"] for field in schema["fields"]]
        is_struct = schema["type"] == "struct"
    except (ValueError, KeyError, TypeError) as error:
        raise refused(f"the schema of {table} is not a Delta schema: {metadata.schema_string!r:.80}") from error
    if not is_struct:
        raise refused(f"the schema of {table} is not a struct")
    for column in metadata.partition_columns:
        if column not in columns:
            raise refused(f"the partition column {column!r} is not in the schema of {table}")
    seen: dict[str, str] = {}
    for column in columns:
        other = seen.setdefault(column.lower(), column)
        if columns.count(column) > 1 or other != column:
            raise refused(f"the columns {other!r} and {column!r} of {table} have the same name, but for case")
    for text in (metadata.schema_string, metadata.name or "", metadata.description or "", *metadata.configuration):
        _check_text(text, "metaData", table)
    for text in metadata.configuration.values():
        _check_text(text, "metaData", table)


def _check_files(actions: Sequence[Action], metadata: Metadata, table: str) -> None:
    columns = set(metadata.partition_columns)
    files: set[tuple[str, str | None]] = set()
    for each in actions:
        if not isinstance(each, (Add, Remove)):
            continue
        key = each.path, each.deletion_vector_id
        if key in files:
            raise refused(f"a commit to {table} names the file {each.path!r} twice")
        files.add(key)
        check_path(each.path, each.key, table)
        values = each.partition_values
        if values is not None:
            check_partition_values(values, columns, each.path, table)
        if isinstance(each, Add):
            check_stats(each.stats, each.path, table)
            if each.size < 0:
                raise refused(f"the file {each.path!r} of {table} has the size {each.size}")
        elif each.stats is not None:
            check_stats(each.stats, each.path, table)


def check_path(path: str, action: str, table: str) -> None:
    if len(path) <= LONGEST_PATH and _PLAIN.fullmatch(path):
        return
    problem = problem_of(path)
    if problem is None and len(path) > LONGEST_PATH:
        problem = f"it is longer than {LONGEST_PATH} characters"
    if problem is None and not _is_text(path):
        problem = "it is not text in UTF-8, or has control characters that are not encoded"
    if problem:
        raise refused(f"an {action} of {table} has the path {path!r:.200}: {problem}")


def check_partition_values(values: Mapping[str, str | None], columns: set[str], path: str, table: str) -> None:
    if values.keys() != columns:
        raise refused(
            f"the file {path!r} has values of the partition columns {sorted(values)}, and {table} is partitioned by "
            f"{sorted(columns)}"
        )
    for column, value in values.items():
        if value == "":
            raise refused(
                f"the file {path!r} has an empty text as value of the partition column {column!r}",
                "Delta cannot tell it from NULL: write NULL, or another text",
            )
        if value is not None and not _is_text(value, newlines=True):
            raise refused(f"the file {path!r} has a partition value that is not text in UTF-8, or holds NUL")


def check_stats(stats: str | None, path: str, table: str) -> None:
    if stats is not None and not (stats.startswith("{") and stats.endswith("}") and _is_text(stats)):
        raise refused(f"the statistics of the file {path!r} of {table} are not a JSON object: {stats!r:.80}")


def _check_names(actions: Sequence[Action], protocol: Protocol, table: str) -> None:
    names: set[tuple[str, str]] = set()
    for each in actions:
        if isinstance(each, Txn):
            name = each.app_id
        elif isinstance(each, DomainMetadata):
            name = each.domain
            if not features.supports_domains(protocol):
                raise refused(f"{table} does not have the feature domainMetadata, which the domain {name!r} needs")
            _check_text(each.configuration, each.key, table)
        elif isinstance(each, CommitInfo):
            try:
                _check_text(json_text(dict(each.info)), each.key, table)
            except (TypeError, ValueError) as error:
                raise refused(f"commitInfo of a commit to {table} cannot be written as JSON: {error}") from error
            continue
        else:
            continue
        check_name(name, each.key)
        if (each.key, name) in names:
            raise refused(f"a commit to {table} has two actions {each.key} of {name!r}")
        names.add((each.key, name))


def check_name(name: str, what: str) -> None:
    """Refuse a name that a database would not take."""
    if not isinstance(name, str) or not name or len(name) > _LONGEST_NAME or not _is_text(name):
        raise refused(f"{what}: {name!r:.80} is not a name of 1 to {_LONGEST_NAME} printable characters")


def _check_text(text: str, what: str, table: str) -> None:
    if not _is_text(text, newlines=True):
        raise refused(f"{what} of a commit to {table} holds NUL, or text that is not UTF-8")


def _is_text(text: str, *, newlines: bool = False) -> bool:
    """Whether both databases, JSON and URIs can hold it."""
    if text.isascii():
        return text.isprintable() or (("\0" not in text) if newlines else not _CONTROL.search(text))
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return ("\0" not in text) if newlines else not _CONTROL.search(text)


def check_partition_text(text: str, columns: set[str], table: str) -> None:
    """The same for values that are given as JSON text, which must be spelled as the log spells it."""
    values = _object(text, "partition_values", table)
    if not all(value is None or isinstance(value, str) for value in values.values()):
        raise refused(f"partition values of files to add to {table} are texts or NULL, not {text!r:.80}")
    check_partition_values(values, columns, text, table)


def check_tags_text(text: str | None, table: str) -> None:
    if text is not None and not all(isinstance(value, str) for value in _object(text, "tags", table).values()):
        raise refused(f"tags of files to add to {table} are texts, not {text!r:.80}")


def _object(text: str, what: str, table: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        raise refused(f"{what} of files to add to {table} is not JSON: {text!r:.80}") from error
    if not isinstance(value, dict) or not _is_text(text):
        raise refused(f"{what} of files to add to {table} is not a JSON object on one line: {text!r:.80}")
    return value
