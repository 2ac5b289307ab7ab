"""CHECK statements: a query that finds rows has found a mistake."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lockgate.errors import CheckFailed
from lockgate.running.result import CheckResult

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SHOWN = 5


def run_check(name: str, frame: DataFrame) -> CheckResult:
    """Look for rows; count them all only when there are more than are shown."""
    first = frame.limit(SHOWN + 1).collect()
    count = len(first) if len(first) <= SHOWN else frame.count()
    examples = [{c: _shown(v) for c, v in zip(frame.columns, row, strict=True)} for row in first[:SHOWN]]
    return CheckResult(name, passed=not first, failing_rows=count, examples=examples)


def failure(failed: list[CheckResult]) -> CheckFailed:
    """One error for all failed checks, with the first rows of each."""
    lines = []
    for check in failed:
        lines.append(f'CHECK "{check.name}" {found(check)}:')
        lines += ["  " + ", ".join(f"{c}={v}" for c, v in example.items()) for example in check.examples]
        if check.failing_rows > len(check.examples):
            lines.append(f"  ... and {check.failing_rows - len(check.examples)} more")
    return CheckFailed("\n".join(lines), in_place="nothing was published; every destination is as it was")


def found(check: CheckResult) -> str:
    return f"found {check.failing_rows:,} row{'' if check.failing_rows == 1 else 's'}"


def _shown(value: object) -> str:
    text = "NULL" if value is None else str(value)
    return text if len(text) <= 80 else text[:77] + "..."
