"""Pass: who defines which name. A name is defined once; a table may get further versions on purpose."""

from __future__ import annotations

from dataclasses import replace

from lockgate.language.diagnostics import Diagnostic, Place
from lockgate.language.statements import CheckStep, CreateTableStep, LoadStep, SourceStep
from lockgate.plan.draft import Draft


def collect_definitions(draft: Draft) -> Draft:
    """Fill in `sources` and `versions`, and complain about names that are defined twice."""
    found: list[Diagnostic] = []
    sources: dict[str, int] = {}
    checks: dict[str, int] = {}
    versions: dict[str, tuple[int, ...]] = {}
    for index, statement in enumerate(draft.statements):
        if isinstance(statement, SourceStep):
            found += _unless_new("source", statement.name, index, sources, draft)
        elif isinstance(statement, CheckStep):
            found += _unless_new("check", statement.name, index, checks, draft)
        elif isinstance(statement, LoadStep | CreateTableStep):
            folded = statement.table_name.casefold()
            made = versions.get(folded, ())
            if made and not _is_new_version(statement):
                first = draft.statements[made[0]].place
                hint = "to go on with it use MODE APPEND or a keyed mode, to replace it CREATE OR REPLACE TABLE"
                found.append(_twice("table", statement.table_name, first, statement.place, hint))
                continue
            versions[folded] = (*made, index)
    return replace(draft, sources=sources, versions=versions).complaining(found)


def _is_new_version(statement: LoadStep | CreateTableStep) -> bool:
    return statement.mode != "REPLACE" or (isinstance(statement, CreateTableStep) and statement.or_replace)


def _unless_new(kind: str, name: str, index: int, known: dict[str, int], draft: Draft) -> list[Diagnostic]:
    folded = name.casefold()
    if folded not in known:
        known[folded] = index
        return []
    first, again = draft.statements[known[folded]].place, draft.statements[index].place
    return [_twice(kind, name, first, again, "give one of them another name")]


def _twice(kind: str, name: str, first: Place, again: Place, hint: str) -> Diagnostic:
    where = f"line {first.line}" if first.file == again.file else f"{first.file}:{first.line}"
    return Diagnostic(again, "duplicate", f"{kind} {name} is defined on {where} already", hint)
