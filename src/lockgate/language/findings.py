"""What reading a pipeline has found so far: statements, errors, parameters."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from lockgate.language.diagnostics import Diagnostic, Place, did_you_mean, nearest
from lockgate.language.lexer import Token, lex
from lockgate.language.parameters import find_parameters
from lockgate.language.program import Program, Statement
from lockgate.language.sql_trees import parse_query
from lockgate.language.statements import CheckStep, CreateTableStep, ExportStep, Sql
from lockgate.language.unterminated import STATEMENT_WORDS
from lockgate.language.variables import Scope

# An INCREMENTAL table gets these from the run: they are the window it computes.
WINDOW_PARAMETERS = ("start_date", "end_date")


@dataclass
class Findings:
    """Collected across all files of one pipeline."""

    statements: list[Statement] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    warnings: list[Diagnostic] = field(default_factory=list)
    parameters: dict[str, Any] = field(default_factory=dict)
    files: list[str] = field(default_factory=list)
    unsure: set[str] = field(default_factory=set)
    incomplete: bool = False

    def program(self) -> Program:
        program = Program(
            statements=tuple(self.statements),
            parameters=self.parameters,
            files=tuple(dict.fromkeys(self.files)),
            unsure=frozenset(self.unsure),
            incomplete=self.incomplete,
        )
        found, warned = program.sorted(self.diagnostics), program.sorted(self.warnings)
        return replace(program, diagnostics=found, warnings=warned)

    def add(self, statement: Statement, scope: Scope, *, live: bool) -> None:
        """Take a statement in, and check what can be checked about it alone."""
        place = getattr(statement, "mode_place", statement.place)
        self.diagnostics += [Diagnostic(place, "mode", message) for message in statement.validate()]
        if isinstance(statement, CreateTableStep | CheckStep) or (
            isinstance(statement, ExportStep) and statement.table_name is None
        ):
            self._query(statement, scope)
        if live:
            self.statements.append(statement)

    def lost(self, tokens: tuple[Token, ...]) -> None:
        """Remember the name that a statement with an error would have defined."""
        words = [token.word for token in tokens[:5]]
        words[0] = nearest(words[0], STATEMENT_WORDS) or words[0]
        for lead in (["SOURCE"], ["LOAD"], ["CREATE", "TABLE"], ["CREATE", "OR", "REPLACE", "TABLE"]):
            if words[: len(lead)] == lead and len(tokens) > len(lead):
                name = tokens[len(lead)].text
                self.unsure.add(name.strip("`").casefold())
                if "__" in name:  # a mask: the name came from a variable
                    self.incomplete = True

    def _query(self, statement: CreateTableStep | CheckStep | ExportStep, scope: Scope) -> None:
        query = statement.query
        if query is None:
            return
        tree = parse_query(query.text)
        if tree.root is None:
            place = query.place_of(tree.offset)
            hint = "Lockgate's own reading of this SQL failed; Spark has the last word when it runs"
            self.warnings.append(Diagnostic(place, "sql-syntax", f"cannot read this SQL: {tree.problem}", hint))
        given = WINDOW_PARAMETERS if getattr(statement, "mode", "") == "INCREMENTAL" else ()
        for name in query.parameters:
            self._parameter(query, name, scope, given_by_run=name in given)

    def _parameter(self, query: Sql, name: str, scope: Scope, *, given_by_run: bool) -> None:
        value = scope.lookup(name)
        if value is None:
            if not given_by_run:
                hint = did_you_mean(name, scope.names()) or f"give it with --var {name}=..., or SET {name} = ..."
                message = f"parameter :{name} has no value"
                self.diagnostics.append(Diagnostic(_parameter_place(query, name), "parameter", message, hint))
            return
        if name in self.parameters and not _same(self.parameters[name], value.value):
            # All queries of a run share one set of parameters; a second value would silently win everywhere.
            message = f"parameter :{name} has another value here than in an earlier query"
            hint = "SET it under another name"
            self.diagnostics.append(Diagnostic(_parameter_place(query, name), "parameter", message, hint))
            return
        self.parameters[name] = value.value


def _same(one: object, other: object) -> bool:
    return type(one) is type(other) and one == other


def _parameter_place(query: Sql, name: str) -> Place:
    return query.place_of(find_parameters(lex(query.text))[name].start)
