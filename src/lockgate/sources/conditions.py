"""Conditions on rows, in which no value is a part of the SQL.

COPY takes no parameters. So a value becomes a setting of the transaction, by a statement that does take them, and the
condition asks for that setting.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Value:
    text: str
    type: str  # as the server spells it


@dataclass(frozen=True)
class Condition:
    """SQL in pieces, with values between them."""

    parts: tuple[str | Value, ...]

    @classmethod
    def of(cls, *parts: str | Value) -> Condition:
        return cls(parts)

    @classmethod
    def all_of(cls, conditions: Sequence[Condition]) -> Condition:
        return _joined(conditions, " AND ")

    @classmethod
    def any_of(cls, conditions: Sequence[Condition]) -> Condition:
        return _joined(conditions, " OR ")


def _joined(conditions: Sequence[Condition], word: str) -> Condition:
    parts: list[str | Value] = []
    for condition in conditions:
        parts += [word if parts else "", "(", *condition.parts, ")"]
    return Condition(tuple(parts))


def rendered(conditions: Iterable[Condition]) -> tuple[str, tuple[tuple[str, str], ...]]:
    """The SQL behind WHERE, and the settings that it asks for.

    >>> rendered([Condition.of('"id" >= ', Value("7", "integer"))])
    ('("id" >= current_setting(\\'lockgate.v0\\')::integer)', (('lockgate.v0', '7'),))
    """
    values: list[tuple[str, str]] = []
    sql = []
    for condition in conditions:
        piece = ""
        for part in condition.parts:
            if isinstance(part, str):
                piece += part
                continue
            name = f"lockgate.v{len(values)}"
            values.append((name, part.text))
            piece += f"current_setting('{name}')::{part.type}"
        sql.append(f"({piece})")
    return " AND ".join(sql) or "TRUE", tuple(values)
