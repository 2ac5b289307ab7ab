"""SOURCE name TYPE T PARAMS {...} · SOURCE name FROM "connection" [OPTIONS {...}]"""

from __future__ import annotations

from lockgate.language.cursor import Cursor
from lockgate.language.json_clause import JsonObject, read_object
from lockgate.language.statements import SourceStep


def read_source(cursor: Cursor) -> SourceStep:
    """Read what follows SOURCE."""
    place = cursor.start_place
    name = cursor.name("the name of the source")
    if cursor.accept("TYPE"):
        type_place = cursor.place()
        type_name = cursor.name("a source type").upper()
        params = _params(cursor, required=True)
        return SourceStep(
            place=place,
            name=name,
            connector_type=type_name,
            type_place=type_place,
            params=params.values,
            params_place=params.place,
            param_places=params.key_places,
            path_escape=params.path_escape,
        )
    if cursor.accept("FROM"):
        type_place = cursor.place()
        connection = cursor.string("the name of a connection").text
        params = _params(cursor, required=False)
        return SourceStep(
            place=place,
            name=name,
            connection=connection,
            type_place=type_place,
            params=params.values,
            params_place=params.place,
            param_places=params.key_places,
            path_escape=params.path_escape,
        )
    raise cursor.unexpected('TYPE or FROM "connection"', known=("TYPE", "FROM"))


def _params(cursor: Cursor, *, required: bool) -> JsonObject:
    keyword = cursor.word
    place = cursor.place()
    if keyword in ("PARAMS", "OPTIONS"):
        cursor.advance()
        params = read_object(cursor, keyword)
        cursor.expect_end()
        return params
    if required or cursor.current is not None:
        raise cursor.unexpected("PARAMS {...}", known=("PARAMS", "OPTIONS"))
    return JsonObject(place=place)
