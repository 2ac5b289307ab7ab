"""Pass: LOAD and CREATE TABLE ask only for what tables can do in this version."""

from __future__ import annotations

from collections.abc import Iterator

from lockgate.errors import SchemaMismatchError
from lockgate.language.diagnostics import Diagnostic
from lockgate.language.statements import CreateTableStep, LoadStep
from lockgate.merging.order import parse_order_by
from lockgate.modes import EXPORT_MODES
from lockgate.plan.draft import Draft


def check_table_modes(draft: Draft) -> Draft:
    """Complain about modes that need a warehouse, which tables in memory do not have, and about odd ORDER BYs."""
    tables = [s for s in draft.statements if isinstance(s, LoadStep | CreateTableStep)]
    kept = draft.profile.tables == "warehouse"
    return draft.complaining(problem for statement in tables for problem in _problems(statement, kept=kept))


def _problems(statement: LoadStep | CreateTableStep, *, kept: bool) -> Iterator[Diagnostic]:
    if statement.mode not in EXPORT_MODES and not kept:
        yield Diagnostic(
            statement.mode_place,
            "mode-unavailable",
            f"MODE {statement.mode} goes on with a table of earlier runs, and this profile keeps tables in memory",
            'set tables = "warehouse" in the profile, or use ' + ", ".join(EXPORT_MODES),
        )
    try:
        parse_order_by(statement.order_by)
    except SchemaMismatchError as refused:
        message = refused.message.replace("order_by", "ORDER BY", 1)
        hint = "write columns, each with ASC or DESC and NULLS FIRST or NULLS LAST; make a column of an expression"
        yield Diagnostic(statement.mode_place, "mode", message, hint)
