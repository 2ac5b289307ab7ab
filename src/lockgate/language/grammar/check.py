"""CHECK "name" AS query: the rows it finds are the failures."""

from __future__ import annotations

from lockgate.language.cursor import Cursor
from lockgate.language.mistakes import Mistake
from lockgate.language.queries import read_query
from lockgate.language.statements import CheckStep


def read_check(cursor: Cursor) -> CheckStep:
    """Read what follows CHECK."""
    place = cursor.start_place
    name_place = cursor.place()
    quoted = cursor.current is not None and cursor.current.kind == "string"
    name = cursor.string("the name of the check").text if quoted else cursor.name("the name of the check")
    if not name.strip():
        raise Mistake(name_place, "syntax", "the name of the check is empty")
    cursor.expect("AS")
    return CheckStep(place=place, name=name, query=read_query(cursor, cursor.end, len(cursor.text.text)))
