"""Text in, statements out: the pipeline language. No I/O and no Spark here.

sqlglot takes a while to import, so `parse` imports the reader when it is called; the records of `statements` are
cheap to have.
"""

from __future__ import annotations

from collections.abc import Callable

from lockgate.language.diagnostics import Diagnostic, Place
from lockgate.language.program import Program, Statement
from lockgate.language.variables import Variables

__all__ = ["Diagnostic", "Place", "Program", "Statement", "Variables", "parse"]


def parse(
    text: str,
    *,
    file: str = "<pipeline>",
    variables: Variables | None = None,
    read: Callable[[str], str] | None = None,
) -> Program:
    """Read a pipeline. Nothing in the text makes this raise: what is wrong is in `diagnostics`, all of it.

    `read` gives the text of an included file and may raise OSError or UnicodeDecodeError.

    >>> parse("LOAD users FROM src MODE APPEND;").statements[0].mode
    'APPEND'
    """
    from lockgate.language.reading import read_program

    return read_program(text, file, variables or Variables(), read)
