"""The planner's table of contents: each pass takes a draft and returns a better one."""

from __future__ import annotations

from collections.abc import Callable

from lockgate.plan.definitions import collect_definitions
from lockgate.plan.draft import Draft
from lockgate.plan.exports import check_exports
from lockgate.plan.lineage import trace_lineage
from lockgate.plan.order import put_in_order
from lockgate.plan.sharing import find_shared
from lockgate.plan.sources import check_sources
from lockgate.plan.substance import require_statements
from lockgate.plan.table_modes import check_table_modes
from lockgate.plan.warehouse import publish_tables

PASSES: tuple[Callable[[Draft], Draft], ...] = (
    require_statements,
    check_sources,
    check_table_modes,
    collect_definitions,
    publish_tables,
    check_exports,
    trace_lineage,
    put_in_order,
    find_shared,
)
