"""Reading a pipeline: statement by statement, in order, with errors recorded and never raised."""

from __future__ import annotations

import os.path
from collections.abc import Callable, Sequence
from pathlib import PurePath

from lockgate.language.blocks import BlockBuilder, Branch, IfBlock, Node, Passage
from lockgate.language.conditions import holds
from lockgate.language.cursor import Cursor
from lockgate.language.diagnostics import Diagnostic, Place, did_you_mean
from lockgate.language.expansion import Expanded
from lockgate.language.findings import Findings
from lockgate.language.grammar import STATEMENTS
from lockgate.language.grammar.assignment import read_include, read_set
from lockgate.language.lexer import Token, lex_file
from lockgate.language.mistakes import Mistake
from lockgate.language.paths import escape
from lockgate.language.program import Program
from lockgate.language.queries import QUERY_WORDS, lex_value_text
from lockgate.language.quoting import Quoted
from lockgate.language.references import find_references, mask
from lockgate.language.replacement import ReferenceMap, expand
from lockgate.language.source_text import SourceText
from lockgate.language.unterminated import STATEMENT_WORDS
from lockgate.language.variables import Scope, Variables

Read = Callable[[str], str]

MAX_INCLUDES = 16


def read_program(text: str, file: str, variables: Variables, read: Read | None) -> Program:
    """Read a pipeline and everything it includes."""
    reader = _Reader(read)
    reader.read_file(text, file, Scope(variables))
    return reader.findings.program()


class _Reader:
    def __init__(self, read: Read | None) -> None:
        self.findings = Findings()
        self._read = read
        self._open: list[str] = []  # the files that are being read, outermost first

    def read_file(self, text: str, file: str, scope: Scope) -> None:
        source = SourceText(file, text)
        self.findings.files.append(file)
        references = find_references(source.text)
        tokens, breaks = lex_file(mask(source.text, references))
        for broken in breaks:
            place = source.place(broken.start)
            self.findings.diagnostics.append(Diagnostic(place, "unterminated", f"this {broken.what} is never closed"))
        builder = BlockBuilder(source, {broken.start for broken in breaks})
        nodes = builder.build(tokens)
        self.findings.diagnostics += [mistake.diagnostic for mistake in builder.mistakes]
        self._open.append(os.path.normpath(file))
        self._walk(ReferenceMap.of(source, references, tokens), nodes, scope, live=True)
        self._open.pop()

    def _walk(self, file: ReferenceMap, nodes: Sequence[Node], scope: Scope, *, live: bool) -> None:
        """Read statements; those in a branch that is not taken (`live` is False) are checked and dropped."""
        for node in nodes:
            if isinstance(node, IfBlock):
                self._branches(file, node, scope, live=live)
            elif node.broken:
                self.findings.lost(node.tokens)
            else:
                self._passage(file, node, scope, live=live)

    def _branches(self, file: ReferenceMap, block: IfBlock, scope: Scope, *, live: bool) -> None:
        decided = not live
        for branch in block.branches:
            truth = self._truth(file, branch, scope, live=live and not decided)
            if truth is None and not decided:  # no telling which branch holds, so none is taken
                decided = True
                self.findings.incomplete = True
            taken = bool(truth) and not decided
            decided = decided or taken
            self._walk(file, branch.body, scope if taken else scope.copy(), live=taken)

    def _truth(self, file: ReferenceMap, branch: Branch, scope: Scope, *, live: bool) -> bool | None:
        if not branch.sound:
            return None
        if branch.condition is None:
            return True
        start, end = branch.condition[0].start, branch.condition[-1].end
        text, undefined = expand(file, start, end, scope, hide_all=True)
        if undefined:
            self.findings.diagnostics += undefined if live else []
            return None
        try:
            return holds(Cursor(text, lex_value_text(text)))
        except Mistake as mistake:
            self.findings.diagnostics.append(mistake.diagnostic)
            return None

    def _passage(self, file: ReferenceMap, passage: Passage, scope: Scope, *, live: bool) -> None:
        start, tokens = passage.start, passage.tokens
        while tokens:
            text, undefined = expand(file, start, passage.end, scope)
            if undefined:
                if live:
                    self.findings.diagnostics += undefined
                    self._lose(tokens)
                return
            try:
                self._statement(text, scope, live=live)
                return
            except Mistake as mistake:
                self.findings.diagnostics.append(mistake.diagnostic)
                if live:
                    self._lose(tokens)
                resume = mistake.resume
            if resume is None or resume <= start:
                return
            start, tokens = resume, tuple(token for token in tokens if token.start >= resume)

    def _lose(self, tokens: tuple[Token, ...]) -> None:
        self.findings.lost(tokens)
        if tokens[0].word == "INCLUDE":
            self.findings.incomplete = True

    def _statement(self, text: Expanded, scope: Scope, *, live: bool) -> None:
        cursor = Cursor(text, lex_value_text(text))
        if cursor.current is None:
            return  # nothing but a variable without text
        word = cursor.word
        if word in STATEMENTS:
            cursor.advance()
            self.findings.add(STATEMENTS[word](cursor), scope, live=live)
        elif word == "SET":
            cursor.advance()
            scope.assign(*read_set(cursor))
        elif word == "INCLUDE":
            cursor.advance()
            place = cursor.place()
            path = read_include(cursor)
            if live:
                self._include(path, place, text.source.file, scope)
        else:
            raise _unknown_statement(cursor)

    def _include(self, path: Quoted, place: Place, file: str, scope: Scope) -> None:
        problem = escape(path.spans)
        if problem:
            raise Mistake(place, "path-escape", problem, "write the path in the pipeline itself")
        target = os.path.normpath(os.path.join(PurePath(file).parent, path.text))
        if target in self._open:
            chain = " -> ".join([*self._open[self._open.index(target) :], target])
            raise Mistake(place, "include", f"a file includes itself: {chain}", "remove this INCLUDE")
        if len(self._open) >= MAX_INCLUDES:
            raise Mistake(place, "include", f"INCLUDE is nested more than {MAX_INCLUDES} deep")
        if self._read is None:
            raise Mistake(place, "include", f"{target} cannot be included: this text is not read from a file")
        try:
            text = self._read(target)
        except FileNotFoundError:
            hint = "the path is relative to the folder of the file that includes it"
            raise Mistake(place, "include", f"there is no file {target}", hint) from None
        except OSError as error:
            raise Mistake(place, "include", f"{target} cannot be read: {error.strerror or error}") from None
        except UnicodeDecodeError:
            raise Mistake(place, "include", f"{target} is not UTF-8 text", "save it as UTF-8") from None
        except ValueError as error:  # a NUL in the path
            raise Mistake(place, "include", f"{path.text!r} is no path: {error}") from None
        self.read_file(text, target, scope)


def _unknown_statement(cursor: Cursor) -> Mistake:
    token = cursor.advance()
    shown = cursor.shown(token)
    if token.word in QUERY_WORDS or token.symbol == "(":
        hint: str | None = "a query stands in CREATE TABLE name AS ..., CHECK name AS ... or EXPORT ..."
    else:
        hint = did_you_mean(token.word, STATEMENT_WORDS) if token.word else None
        hint = hint or f"a statement begins with {', '.join(STATEMENT_WORDS)}"
    return Mistake(cursor.place(token), "unknown-statement", f"{shown} does not begin a statement", hint)
