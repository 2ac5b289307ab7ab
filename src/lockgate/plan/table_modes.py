"""Pass: LOAD and CREATE TABLE ask only for modes that tables have in this version."""

from __future__ import annotations

from lockgate.language.diagnostics import Diagnostic
from lockgate.language.statements import CreateTableStep, LoadStep
from lockgate.plan.draft import Draft

AVAILABLE = ("REPLACE", "APPEND")


def check_table_modes(draft: Draft) -> Draft:
    """Complain about the modes that need a warehouse, which tables in memory do not have."""
    return draft.complaining(
        Diagnostic(
            statement.mode_place,
            "mode-unavailable",
            f"MODE {statement.mode} on a table of the pipeline is not available in this version",
            f"tables take {' and '.join(AVAILABLE)} so far",
        )
        for statement in draft.statements
        if isinstance(statement, LoadStep | CreateTableStep) and statement.mode not in AVAILABLE
    )
