"""Paths that may stand in SQL text."""

from __future__ import annotations

import re
import unicodedata

from lockgate.errors import ArgumentError

_DANGEROUS = re.compile(r"""['"`;\\]|--|/\*|\*/|\.\.""")
_INVISIBLE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}


class PathValidator:
    """Guards every path that reaches SQL as text: what fails never does."""

    @staticmethod
    def validate_path_for_sql(path: str) -> None:
        """Raise a ValueError when the path holds quotes, semicolons, comments, `..`, or characters that hide.

        >>> PathValidator.validate_path_for_sql("/data/day=2026-01-01/part-0.parquet")
        """
        text = str(path)
        found = None
        if not text:
            found = "it is empty"
        elif bad := _DANGEROUS.search(text):
            found = f"it holds {bad.group()!r}"
        elif bad := _DANGEROUS.search(unicodedata.normalize("NFKC", text)):
            found = f"it holds a character that stands for {bad.group()!r}"
        else:
            hidden = next((c for c in text if unicodedata.category(c) in _INVISIBLE), None)
            if hidden is not None:
                found = f"it holds the character U+{ord(hidden):04X}"
        if found:
            raise ArgumentError(
                f"the path {text!r} cannot be used in SQL: {found}",
                in_place="nothing was written",
                hint="rename the file or folder, or use engine='arrow'",
            )

    @staticmethod
    def escape_for_sql(path: str) -> str:
        """The path as the inside of an SQL string.

        >>> PathValidator.escape_for_sql("it's")
        "it''s"
        """
        return str(path).replace("'", "''")
