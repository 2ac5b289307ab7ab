"""Walking over the tokens of one statement, with errors that say what was expected."""

from __future__ import annotations

from collections.abc import Sequence

from lockgate.language.diagnostics import Place, did_you_mean
from lockgate.language.expansion import Expanded
from lockgate.language.lexer import Token
from lockgate.language.mistakes import Mistake
from lockgate.language.quoting import Quoted, unquote
from lockgate.language.unterminated import STATEMENT_WORDS


class Cursor:
    """A position among the tokens of a statement."""

    def __init__(self, text: Expanded, tokens: Sequence[Token]) -> None:
        self.text = text
        self.tokens = tuple(tokens)
        self.index = 0

    @property
    def current(self) -> Token | None:
        return self.tokens[self.index] if self.index < len(self.tokens) else None

    @property
    def word(self) -> str:
        """The current token as a keyword, or nothing."""
        return self.current.word if self.current else ""

    @property
    def end(self) -> int:
        """The offset just behind the last token read."""
        return self.tokens[self.index - 1].end if self.index else 0

    @property
    def start_place(self) -> Place:
        return self.place(self.tokens[0])

    def peek(self, ahead: int = 1) -> Token | None:
        index = self.index + ahead
        return self.tokens[index] if index < len(self.tokens) else None

    def place(self, token: Token | None = None) -> Place:
        """The place of a token, of the current one, or of the end of the statement."""
        token = token or self.current
        if token is None:
            return self.text.place(self.tokens[-1].end if self.tokens else 0)
        return self.text.place(token.start, token.end - token.start)

    def advance(self) -> Token:
        token = self.tokens[self.index]
        self.index += 1
        return token

    def accept(self, *words: str) -> bool:
        """Read these words if all of them are next."""
        for ahead, word in enumerate(words):
            token = self.peek(ahead)
            if token is None or token.word != word:
                return False
        self.index += len(words)
        return True

    def expect(self, *words: str) -> None:
        if not self.accept(*words):
            raise self.unexpected(" ".join(words), known=words[:1])

    def expect_symbol(self, symbol: str) -> None:
        if self.current is None or self.current.symbol != symbol:
            raise self.unexpected(symbol)
        self.index += 1

    def expect_end(self, expected: str = "the end of the statement") -> None:
        if self.current is not None:
            raise self.unexpected(expected)

    def name(self, what: str) -> str:
        """A plain or backquoted name."""
        token = self.current
        if token is None or token.kind not in ("word", "name"):
            raise self.unexpected(what)
        after = self.peek()
        if after is not None and after.symbol == "." and after.start == token.end:
            message = f"{what} is one word here, without a dot"
            raise Mistake(self.place(after), "syntax", message, "dotted names belong into backquotes")
        self.index += 1
        if token.kind == "name":
            text = unquote(self.text, token).text
        else:
            text = self.text.slice(token.start, token.end).revealed().text
        if not text:
            raise Mistake(self.place(token), "syntax", f"{what} is empty")
        return text

    def string(self, what: str) -> Quoted:
        """Text in quotes."""
        token = self.current
        if token is None or token.kind != "string" or token.text[0] not in "'\"":
            hint = "it stands in quotes" if token is not None and token.kind in ("word", "name") else None
            raise self.unexpected(what, hint=hint)
        self.index += 1
        return unquote(self.text, token)

    def unexpected(self, expected: str, *, known: Sequence[str] = (), hint: str | None = None) -> Mistake:
        """The error for the current token: a forgotten `;` if a statement seems to begin here."""
        token = self.current
        if token is None:
            return Mistake(self.place(), "syntax", f"expected {expected}, found the end of the statement", hint)
        found = self.shown(token)
        if token.word in STATEMENT_WORDS and self.begins_line(token):
            return self.missing_semicolon(token)
        if token.word and hint is None:
            hint = did_you_mean(token.word, known)
        return Mistake(self.place(token), "syntax", f"expected {expected}, found {found}", hint)

    def shown(self, token: Token) -> str:
        """A token as the file has it: a variable's value may be a secret and is not shown."""
        start, _ = self.text.origin(token.start)
        last, reference = self.text.origin(token.end - 1)
        found = self.text.source.text[start : last + (reference or 1)]
        return found if len(found) <= 40 else found[:37] + "..."

    def missing_semicolon(self, token: Token) -> Mistake:
        offset, reference = self.text.origin(token.start)
        message = f"a ; may be missing before {token.text}"
        hint = "every statement ends with ;"
        return Mistake(self.place(token), "missing-semicolon", message, hint, resume=None if reference else offset)

    def begins_line(self, token: Token) -> bool:
        """Whether nothing but white space stands before a token on its line."""
        text, position = self.text.text, token.start - 1
        while position >= 0 and text[position] in " \t":
            position -= 1
        return position >= 0 and text[position] in "\r\n" and token is not self.tokens[0]
