"""A query as sqlglot's tree. Spark has the last word on SQL, so a query that sqlglot cannot read is no error here."""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass
from functools import lru_cache

from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ParseError

# sqlglot's parser is compiled and overruns the C stack on text that is nested some thousand deep.
MAX_NESTING = 200

_CLASS = re.compile(r"<class '[\w.]*?(\w+)'>")  # sqlglot names its own classes in messages
_TABLE = re.compile(r"TABLE(?=[\s`])", re.IGNORECASE)


@dataclass(frozen=True)
class Tree:
    """The tree, or why there is none and at which offset of the text."""

    root: exp.Expr | None
    problem: str = ""
    offset: int = 0


@lru_cache(maxsize=1024)
def parse_query(text: str) -> Tree:
    """Parse one query. `TABLE t` is read as `FROM  t`, which sqlglot knows and which has the same length."""
    if _nesting(text) > MAX_NESTING:
        return Tree(None, f"nested more than {MAX_NESTING} deep")
    readable = _TABLE.sub("FROM ", text, count=1) if _TABLE.match(text) else text
    log = logging.getLogger("sqlglot")
    level = log.level
    log.setLevel(logging.CRITICAL)  # it logs what it could not parse; that is our diagnostic
    try:
        roots = [root for root in Spark().parse(readable) if root is not None]
    except ParseError as error:
        return Tree(None, *_first(error, text))
    except RecursionError:
        return Tree(None, "nested too deep")
    except Exception:  # its compiled parser meets odd text with a TypeError as readily as with its own errors
        return Tree(None, "the parser gave up")
    finally:
        log.setLevel(level)
    if len(roots) != 1 or not isinstance(roots[0], exp.Query | exp.Values):
        return Tree(None, "not a query")
    return Tree(roots[0])


def _nesting(text: str) -> int:
    """How deep brackets go at most; those in strings count too, which errs on the safe side."""
    depth = deepest = 0
    for char in text:
        if char in "([{":
            depth += 1
            deepest = max(deepest, depth)
        elif char in ")]}" and depth:
            depth -= 1
    return deepest


def _first(error: ParseError, text: str) -> tuple[str, int]:
    detail = error.errors[0] if error.errors else {}
    message = _CLASS.sub(lambda match: match[1], str(detail.get("description") or "cannot be parsed"))
    near = str(detail.get("highlight") or "")
    lines = text.split("\n")
    line = min(max(int(detail.get("line") or 1), 1), len(lines))
    start = sum(len(before) + 1 for before in lines[: line - 1])
    offset = start + max(0, int(detail.get("col") or 1) - len(near))
    return message, min(offset, len(text))  # the caret shows the spot; its text may be a variable's secret value
