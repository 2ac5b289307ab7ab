"""Python functions that SQL can call: the decorator, and the record it leaves on a function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])
MARK = "__lockgate_function__"


@dataclass(frozen=True)
class FunctionMark:
    name: str
    returns: str
    vectorized: bool


def function(*, returns: str, vectorized: bool = False, name: str | None = None) -> Callable[[F], F]:
    """Let SQL call a Python function of the project's `functions/` folder by its name.

    `returns` is a Spark SQL type. With `vectorized=True` it gets and returns pyarrow arrays, a batch at a time.

    >>> @function(returns="double")
    ... def with_tax(amount: float) -> float:
    ...     return amount * 1.2
    >>> with_tax(10.0)
    12.0
    """
    if not isinstance(returns, str) or not returns.strip():
        raise ValueError('returns must name a Spark SQL type, such as "double"')

    def mark(target: F) -> F:
        setattr(target, MARK, FunctionMark(name or target.__name__, returns, vectorized))
        return target

    return mark
