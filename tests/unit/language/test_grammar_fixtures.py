"""Every .sql file under fixtures/language: what good ones mean, and where bad ones are wrong.

Leading comments talk to this test: `-- var: name=value` gives a variable on the command line, `-- expect: 3:8 code`
names an error. A good file has a .expected beside it: its statements as JSON.
"""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

import pytest

from lockgate.language import Place, Program, Variables, parse

FIXTURES = Path(__file__).parents[2] / "fixtures" / "language"
GOOD = sorted((FIXTURES / "good").glob("*.sql"))
BAD = sorted((FIXTURES / "bad").glob("*.sql"))


def read(path: Path) -> str:
    return path.read_bytes().decode("utf-8")


def program_of(path: Path) -> Program:
    text = read(path)
    given = dict(re.findall(r"^-- var: (\w+)=(.*?)\r?$", text, re.MULTILINE))

    def missing(included: str) -> str:
        raise FileNotFoundError(included)

    return parse(text, file=path.name, variables=Variables(given), read=missing)


def plain(value: Any) -> Any:
    """A statement without its places, as JSON would have it."""
    if dataclasses.is_dataclass(value):
        fields = [f.name for f in dataclasses.fields(value) if not callable(getattr(value, f.name))]
        shown = {name: getattr(value, name) for name in fields if name != "place" and not re.search("_places?$", name)}
        kept = {name: plain(item) for name, item in shown.items() if item not in (None, [], (), {}, "", False)}
        return {"statement": type(value).__name__, **kept}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    assert not isinstance(value, Place)
    return value


def test_there_are_enough_of_them() -> None:
    assert len(GOOD) + len(BAD) >= 40


@pytest.mark.parametrize("path", GOOD, ids=lambda p: p.stem)
def test_good(path: Path) -> None:
    program = program_of(path)
    assert [d.render() for d in program.diagnostics] == []
    expected = json.loads(read(path.with_suffix(".expected")))
    assert [plain(s) for s in program.statements] == expected["statements"]
    assert program.parameters == expected["parameters"]


@pytest.mark.parametrize("path", BAD, ids=lambda p: p.stem)
def test_bad(path: Path) -> None:
    found = [f"{d.place.line}:{d.place.column} {d.code}" for d in program_of(path).diagnostics]
    assert found == re.findall(r"^-- expect: (.*?)\r?$", read(path), re.MULTILINE)
