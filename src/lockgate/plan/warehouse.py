"""Pass: tables that outlive the run. Where the profile keeps tables in a warehouse, each table of the pipeline is also
published: by an export into the Delta table of its name, with the rows that its statements bring."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from lockgate.language.diagnostics import Diagnostic
from lockgate.language.statements import CreateTableStep, ExportStep, LoadStep
from lockgate.plan.draft import Draft

Made = LoadStep | CreateTableStep


def publish_tables(draft: Draft) -> Draft:
    """Add the exports, behind the statements of the text."""
    if draft.profile.tables != "warehouse":
        return draft
    found: list[Diagnostic] = []
    added: list[ExportStep] = []
    for indices in draft.versions.values():
        makers = [statement for index in indices if isinstance(statement := draft.statements[index], Made)]
        found += _problems(makers)
        added.append(_export(makers))
    program = replace(draft.program, statements=(*draft.program.statements, *added))
    return replace(draft, program=program).complaining(found)


def _export(makers: list[Made]) -> ExportStep:
    first, last = makers[0], makers[-1]
    starts_anew = any(maker.mode == "REPLACE" for maker in makers)
    return ExportStep(
        place=last.place,
        sql_query="",
        destination_uri=first.table_name,
        destination_place=first.place,
        connector_type="DELTA",
        type_place=first.place,
        mode="REPLACE" if starts_anew else last.mode,
        mode_place=last.mode_place,
        options_place=last.place,
        upsert_keys=[] if starts_anew else list(last.upsert_keys),
        order_by=[] if starts_anew else list(last.order_by),
        name=f"table {first.table_name}",
        table_name=first.table_name if starts_anew else None,
        brought_by=() if starts_anew else tuple(makers),
    )


def _problems(makers: list[Made]) -> Iterator[Diagnostic]:
    """What a table has already is changed by one statement, or by several that only append. After a REPLACE the table
    is what the pipeline makes of it, so then everything goes."""
    if any(maker.mode == "REPLACE" for maker in makers):
        return
    for maker in makers[1:]:
        if {maker.mode, makers[0].mode} != {"APPEND"}:
            yield Diagnostic(
                maker.mode_place,
                "mode",
                f"table {maker.table_name} stays in the warehouse, and line {makers[0].place.line} changes it already",
                "bring all rows with one statement, or begin with MODE REPLACE; several APPENDs are fine",
            )
