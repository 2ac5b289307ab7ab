"""Whether a source's columns fit a target, what the target's schema is after the merge, and a source made to fit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Literal, Protocol, get_args

import pyarrow as pa

from lockgate.errors import ConfigError, NullKeyError, SchemaMismatchError
from lockgate.merging.conversions import convertible
from lockgate.merging.keys import normalize_keys
from lockgate.merging.lossless import cast_exactly, unrelated
from lockgate.merging.nulls import null_rows
from lockgate.merging.type_families import is_bytes, is_text
from lockgate.merging.widening import added, widened

Mode = Literal["strict", "evolve"]

_IN_PLACE = "nothing was written"


class TableLike(Protocol):
    """What the checks need to know of a table. It may hold no rows at all: a footer, a plan, a description."""

    @property
    def schema(self) -> pa.Schema: ...

    @property
    def num_rows(self) -> int: ...


def validate_keys_and_schema(
    source: TableLike, target: TableLike | None, key_columns: str | Sequence[str], *, mode: Mode = "strict"
) -> None:
    """Refuse keys that are missing, cannot be keys or are NULL, and schemas that do not go together.

    NULLs are looked for where the source has its columns at hand; nothing is read for it.

    >>> validate_keys_and_schema(pa.table({"id": [1, None]}), None, "id")
    Traceback (most recent call last):
    lockgate.errors.NullKeyError: key column "id" is NULL in 1 of 2 source rows
    """
    keys = normalize_keys(key_columns)
    require_keys(source.schema, "source", keys)
    if target is not None:
        require_keys(target.schema, "target", keys)
        agree(source.schema, target.schema, mode=mode)
    column_of = getattr(source, "column", None)
    if callable(column_of):
        for key in keys:
            refuse_null_key(key, null_rows(column_of(key)), source.num_rows)


def refuse_null_key(key: str, nulls: int, rows: int) -> None:
    if nulls:
        raise NullKeyError(
            f'key column "{key}" is NULL in {nulls} of {rows} source rows',
            hint="a row without a key cannot be merged: give the rows a key or leave them out",
            in_place=_IN_PLACE,
        )


def agree(source: pa.Schema, target: pa.Schema, *, mode: Mode) -> pa.Schema:
    """The dataset's schema after the merge, from the schemas alone. Whether each value fits is seen by `fit`.

    >>> old, new = pa.schema([("id", pa.int32())]), pa.schema([("id", pa.int64()), ("name", pa.string())])
    >>> agree(new, old, mode="evolve").names
    ['id', 'name']
    """
    if mode not in get_args(Mode):
        raise ConfigError(f'schema must be "strict" or "evolve", not {mode!r}', in_place=_IN_PLACE)
    _refuse_repeated(source, "source")
    _refuse_repeated(target, "target")
    theirs_by_name, ours = {f.name: f for f in source}, set(target.names)
    missing = [name for name in target.names if name not in theirs_by_name]
    extra = [name for name in source.names if name not in ours]
    if missing or (extra and mode == "strict"):
        raise _other_columns(missing, extra if mode == "strict" else [], source, target)
    fields = []
    for field in target:
        theirs = theirs_by_name[field.name].type
        type_ = widened(field.type, theirs) if mode == "evolve" else field.type
        if not convertible(theirs, type_):
            raise unrelated(field.name, theirs, field.type)
        fields.append(field.with_type(type_))
    return pa.schema(fields + [added(source.field(name)) for name in extra], metadata=target.metadata)


def fit(source: pa.Table, schema: pa.Schema) -> pa.Table:
    """The source with exactly this schema: columns by name, each value equal to what it was.

    >>> fit(pa.table({"b": ["x"], "a": [1]}), pa.schema([("a", pa.int8()), ("b", pa.string())])).schema.names
    ['a', 'b']
    """
    columns = []
    given = dict(zip(source.column_names, source.columns, strict=True))
    for field in schema:
        if field.name not in given:
            raise _other_columns([field.name], [], source.schema, schema)
        column = cast_exactly(given[field.name], field.type, field.name)
        nulls = 0 if field.nullable else null_rows(column)
        if nulls:
            raise SchemaMismatchError(
                f'column "{field.name}" of the target may not be NULL, but {nulls} source rows have NULL there',
                hint="fill the column in the source",
                in_place=_IN_PLACE,
            )
        columns.append(column)
    return pa.Table.from_arrays(columns, schema=schema)


def require_columns(schema: pa.Schema, whose: str, names: Sequence[str], called: str) -> None:
    """Refuse a table that lacks one of these columns, or in which a name is not clear."""
    _refuse_repeated(schema, whose)
    missing = [name for name in names if name not in schema.names]
    if missing:
        raise SchemaMismatchError(
            f"the {whose} has no {called} {_listed(missing)}; its columns are {_listed(schema.names)}",
            hint=_nearest(missing, schema.names),
            in_place=_IN_PLACE,
        )


def _refuse_repeated(schema: pa.Schema, whose: str) -> None:
    repeated = [name for name, times in Counter(schema.names).items() if times > 1]
    if repeated:
        raise SchemaMismatchError(
            f"the {whose} has several columns named {_listed(repeated)}",
            hint="columns are matched by name: give each its own",
            in_place=_IN_PLACE,
        )


def require_keys(schema: pa.Schema, whose: str, keys: Sequence[str]) -> None:
    """Refuse a table without these columns, or with types that cannot be keys."""
    require_columns(schema, whose, keys, "key column")
    for key in keys:
        if not _can_be_key(schema.field(key).type):
            raise SchemaMismatchError(
                f'column "{key}" of the {whose} cannot be a key: its type is {schema.field(key).type}',
                hint="a key is a number, text, bytes, a boolean, a date or a time",
                in_place=_IN_PLACE,
            )


def _can_be_key(type_: pa.DataType) -> bool:
    if isinstance(type_, pa.BaseExtensionType):
        return _can_be_key(type_.storage_type)
    if pa.types.is_dictionary(type_) or pa.types.is_run_end_encoded(type_):
        return _can_be_key(type_.value_type)
    if pa.types.is_interval(type_):  # a month has no fixed length: two of them cannot be compared
        return False
    return pa.types.is_primitive(type_) or pa.types.is_decimal(type_) or is_text(type_) or is_bytes(type_)


def _other_columns(missing: list[str], extra: list[str], source: pa.Schema, target: pa.Schema) -> SchemaMismatchError:
    parts = []
    if missing:
        parts.append(f"the source has no column {_listed(missing)}")
    if extra:
        parts.append(f"the target has no column {_listed(extra)}")
    near = _nearest(missing, source.names) or _nearest(extra, target.names)
    if missing:
        hint = near or "whole rows are replaced: add the column to the source, else its values would be lost"
    else:
        hint = (f"{near}, or " if near else "") + 'use schema="evolve" to add new columns'
    return SchemaMismatchError(" and ".join(parts), hint=hint, in_place=_IN_PLACE)


def _nearest(names: Iterable[str], known: Sequence[str]) -> str | None:
    folded = {name.lower(): name for name in known}
    near = [
        f'"{folded[match[0]]}" for "{name}"'
        for name in names
        if (match := get_close_matches(name.lower(), folded, n=1, cutoff=0.75))
    ]
    return f"did you mean {', '.join(near)}?" if near else None


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)
