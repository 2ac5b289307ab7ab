"""One file a statement. Each function reads what follows the statement's first word."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from lockgate.language.cursor import Cursor
from lockgate.language.grammar.check import read_check
from lockgate.language.grammar.create_table import read_create_table
from lockgate.language.grammar.export import read_export
from lockgate.language.grammar.load import read_load
from lockgate.language.grammar.source import read_source
from lockgate.language.program import Statement

STATEMENTS: Mapping[str, Callable[[Cursor], Statement]] = {
    "SOURCE": read_source,
    "LOAD": read_load,
    "CREATE": read_create_table,
    "CHECK": read_check,
    "EXPORT": read_export,
}
