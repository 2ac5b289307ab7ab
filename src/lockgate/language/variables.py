"""Variables: who gave them a value, which giver wins, and which characters of a text they brought in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Span:
    """Some characters, and who gave them when that was not the pipeline's author."""

    text: str
    given_by: str | None = None


@dataclass(frozen=True)
class Value:
    """A variable's value: typed for `:name`, as text for `${name}`."""

    value: Any
    spans: tuple[Span, ...]

    @property
    def text(self) -> str:
        return "".join(span.text for span in self.spans)

    @staticmethod
    def written(value: Any, text: str) -> Value:
        """A value that the author wrote in the pipeline itself."""
        return Value(value, (Span(text),))


def as_text(value: object) -> str:
    """How `${name}` shows a value: booleans as SQL spells them, the rest as `str` does.

    >>> as_text(True)
    'true'
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


@dataclass(frozen=True)
class Variables:
    """The values that come from outside a pipeline. SET and inline defaults stand in the pipeline itself.

    >>> Scope(Variables({"env": "prod"}, {"env": "dev"})).lookup("env").text
    'prod'
    """

    command_line: Mapping[str, Any] = field(default_factory=dict)
    profile: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)


class Scope:
    """What every name means at one spot of the text: SET holds from where it stands."""

    def __init__(self, variables: Variables, assigned: Mapping[str, Value] | None = None) -> None:
        self._variables = variables
        self._assigned = dict(assigned or {})

    def lookup(self, name: str) -> Value | None:
        """The value of a name: command line, profile, SET, environment, in this order."""
        given = self._variables
        for values, giver in ((given.command_line, "on the command line"), (given.profile, "by the profile")):
            if name in values:
                return _from_outside(name, values[name], giver)
        if name in self._assigned:
            return self._assigned[name]
        if name in given.environment:
            return _from_outside(name, given.environment[name], "by the environment")
        return None

    def assign(self, name: str, value: Value) -> None:
        self._assigned[name] = value

    def copy(self) -> Scope:
        """A scope for a branch that is not taken: what it SETs must not leak."""
        return Scope(self._variables, self._assigned)

    def names(self, *, environment: bool = False) -> set[str]:
        """Known names. The environment is left out of hints: it is large and not the author's."""
        given = self._variables
        names = {*given.command_line, *given.profile, *self._assigned}
        return names | set(given.environment) if environment else names


def _from_outside(name: str, value: Any, giver: str) -> Value:
    return Value(value, (Span(as_text(value), f"${{{name}}}, given {giver},"),))
