"""A file's tokens as statements and nested IF blocks.

This works on masked text, before any variable has a value, so that no value can end a statement or a branch.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from lockgate.language.lexer import Token
from lockgate.language.mistakes import Mistake
from lockgate.language.source_text import SourceText

MAX_NESTING = 16


@dataclass(frozen=True)
class Passage:
    """The text of one statement: everything between two `;`, comments included."""

    start: int
    end: int
    tokens: tuple[Token, ...]
    broken: bool = False  # it holds something that was never closed; its error is reported already


@dataclass
class Branch:
    """`condition` is None for ELSE; `sound` is False when there is no telling when the branch holds."""

    condition: tuple[Token, ...] | None
    sound: bool = True
    body: list[Node] = field(default_factory=list)


@dataclass
class IfBlock:
    token: Token
    branches: list[Branch] = field(default_factory=list)


Node = Passage | IfBlock


class BlockBuilder:
    """Builds the tree of one file with an explicit stack: text decides how deep it goes, not the interpreter."""

    def __init__(self, source: SourceText, broken_at: Collection[int] = ()) -> None:
        self.source = source
        self.nodes: list[Node] = []
        self.mistakes: list[Mistake] = []
        self._broken_at = broken_at
        self._stack: list[IfBlock] = []

    def build(self, tokens: Sequence[Token]) -> list[Node]:
        """The statements and IF blocks of a file; what is wrong with them is in `mistakes`."""
        start = 0
        current: list[Token] = []
        for token in tokens:
            if token.symbol == ";":
                self._passage(start, token.start, current, broken=token.start in self._broken_at)
                start, current = token.end, []
            else:
                current.append(token)
        self._passage(start, len(self.source.text), current)
        for block in self._stack:
            self._complain(block.token, "this IF is never closed", "close it with END IF;")
        return self.nodes

    def _passage(self, start: int, end: int, tokens: list[Token], *, broken: bool = False) -> None:
        while tokens:
            taken = self._structure(tokens)
            if not taken:
                break
            start, tokens = tokens[taken - 1].end, tokens[taken:]
        if not tokens:
            return
        closes = bool(self._stack) and len(tokens) > 2 and [t.word for t in tokens[-2:]] == ["END", "IF"]
        if closes:
            self._complain(tokens[-2], "a ; may be missing before END IF", "every statement ends with ;")
            end, tokens = tokens[-2].start, tokens[:-2]
        self._body().append(Passage(start, end, tuple(tokens), broken))
        if closes:
            self._stack.pop()

    def _structure(self, tokens: list[Token]) -> int:
        """Handle IF, ELSE or END IF at the front of a passage; how many tokens that took."""
        first = tokens[0].word
        following = tokens[1].word if len(tokens) > 1 else ""
        if first == "IF":
            return self._open(tokens)
        if first == "ELSE":
            return self._else(tokens, chained=following == "IF")
        if first == "END" and following == "IF":
            if self._stack:
                self._stack.pop()
            else:
                self._complain(tokens[0], "END IF without an IF before it", "remove it, or add the IF it ends")
            if len(tokens) > 2:
                self._complain(tokens[2], "a ; may be missing after END IF", "every statement ends with ;")
            return 2
        return 0

    def _open(self, tokens: list[Token]) -> int:
        block = IfBlock(tokens[0])
        if len(self._stack) >= MAX_NESTING:
            self._complain(tokens[0], f"IF is nested more than {MAX_NESTING} deep", "split the pipeline with INCLUDE")
        else:
            self._body().append(block)
        self._stack.append(block)
        return self._condition(block, tokens, 1)

    def _else(self, tokens: list[Token], *, chained: bool) -> int:
        if not self._stack:
            self._complain(tokens[0], "ELSE without an IF before it", "remove it, or add the IF it belongs to")
            return len(tokens)
        block = self._stack[-1]
        if block.branches and block.branches[-1].condition is None and block.branches[-1].sound:
            self._complain(tokens[0], "this IF has an ELSE already", "nothing can follow ELSE but END IF")
        if chained:
            return self._condition(block, tokens, 2)
        block.branches.append(Branch(None))
        return 1

    def _condition(self, block: IfBlock, tokens: list[Token], begin: int) -> int:
        for index in range(begin, len(tokens)):
            if tokens[index].word == "THEN":
                if index == begin:
                    self._complain(tokens[index], "there is no condition between IF and THEN")
                block.branches.append(Branch(tuple(tokens[begin:index]), sound=index > begin))
                return index + 1
        self._complain(tokens[begin - 1], "IF has no THEN", "write IF condition THEN statements END IF;")
        block.branches.append(Branch((), sound=False))
        return len(tokens)

    def _body(self) -> list[Node]:
        return self._stack[-1].branches[-1].body if self._stack else self.nodes

    def _complain(self, token: Token, message: str, hint: str | None = None) -> None:
        place = self.source.place(token.start, token.end - token.start)
        self.mistakes.append(Mistake(place, "if", message, hint))
