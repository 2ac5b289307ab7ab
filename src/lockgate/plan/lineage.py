"""Pass: which statement reads what, and from which version of a table."""

from __future__ import annotations

from dataclasses import replace

from lockgate.language.diagnostics import Diagnostic, Place, did_you_mean
from lockgate.language.statements import CreateTableStep, ExportStep, LoadStep, SourceStep, Sql
from lockgate.plan.draft import Draft, TableRead, name_of
from lockgate.plan.table_names import tables_in

_MAYBE_MISSING = "it may be part of what could not be read; mend the other errors first"


def trace_lineage(draft: Draft) -> Draft:
    """Fill in `reads`, and complain about tables and sources that nobody defines."""
    found: list[Diagnostic] = []
    reads: list[tuple[TableRead, ...]] = []
    for index, statement in enumerate(draft.statements):
        own: list[TableRead] = []
        if isinstance(statement, LoadStep):
            producer = draft.sources.get(statement.source_name.casefold())
            if producer is not None:
                own.append(TableRead(name_of(draft.statements[producer]), producer))
            elif statement.source_name.casefold() not in draft.program.unsure:
                found.append(_unknown_source(statement, draft))
        elif not isinstance(statement, SourceStep):
            for name, place in _tables(statement, draft):
                producer = _version(draft, name, index)
                if producer is not None:
                    own.append(TableRead(_spelling(draft, name), producer))
                elif name.casefold() not in draft.program.unsure:
                    found.append(_unknown_table(name, place, draft))
        if isinstance(statement, LoadStep | CreateTableStep) and statement.mode != "REPLACE":
            own += _goes_on_with(statement, index, draft)
        reads.append(tuple(own))
    return replace(draft, reads=tuple(reads)).complaining(found)


def _tables(statement: object, draft: Draft) -> list[tuple[str, Place]]:
    query = getattr(statement, "query", None)
    if isinstance(statement, ExportStep) and statement.brought_by:
        return [(statement.brought_by[-1].table_name, statement.place)]  # the last one; the others come before it
    if isinstance(statement, ExportStep) and statement.table_name is not None:
        place = query.place_of(0) if isinstance(query, Sql) else statement.place
        return [(statement.table_name, place)]
    if not isinstance(query, Sql):
        return []
    found = []
    for table in tables_in(query.text, draft.versions.keys()):
        place = query.place_of(table.offset)
        if place.length == 1:  # not inside a variable, whose own length is known already
            place = replace(place, length=table.length)
        found.append((table.name, place))
    return found


def _version(draft: Draft, name: str, reader: int) -> int | None:
    """The last version that stands before the reader; the very last if the reader stands before all of them."""
    made = draft.versions.get(name.casefold(), ())
    before = [index for index in made if index < reader]
    return before[-1] if before else made[-1] if made else None


def _goes_on_with(statement: LoadStep | CreateTableStep, index: int, draft: Draft) -> list[TableRead]:
    """The version of a table that APPEND adds to and that a keyed mode merges into, if it is not the first."""
    earlier = [made for made in draft.versions.get(statement.table_name.casefold(), ()) if made < index]
    return [TableRead(_spelling(draft, statement.table_name), made) for made in earlier[-1:]]


def _spelling(draft: Draft, name: str) -> str:
    return name_of(draft.statements[draft.versions[name.casefold()][0]])


def _table_names(draft: Draft) -> list[str]:
    return [_spelling(draft, folded) for folded in draft.versions]


def _source_names(draft: Draft) -> list[str]:
    return [name_of(draft.statements[index]) for index in draft.sources.values()]


def _unknown_source(load: LoadStep, draft: Draft) -> Diagnostic:
    name = load.source_name
    hint = did_you_mean(name, _source_names(draft))
    if name.casefold() in draft.versions:
        hint = f"{name} is a table; LOAD reads a SOURCE, and a table is copied with CREATE TABLE ... AS"
    hint = hint or (_MAYBE_MISSING if draft.program.incomplete else _all_of("sources", _source_names(draft)))
    return Diagnostic(load.source_place, "unknown-source", f"there is no source {name}", hint)


def _unknown_table(name: str, place: Place, draft: Draft) -> Diagnostic:
    hint = did_you_mean(name, _table_names(draft))
    if name.casefold() in draft.sources:
        hint = f"{name} is a source; load it first: LOAD {name} FROM {name};"
    hint = hint or (_MAYBE_MISSING if draft.program.incomplete else _all_of("tables", _table_names(draft)))
    return Diagnostic(place, "unknown-table", f"there is no table {name}", hint)


def _all_of(kind: str, names: list[str]) -> str:
    if not names:
        return f"the pipeline defines no {kind}"
    shown = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
    return f"{kind} of the pipeline: {shown}"
