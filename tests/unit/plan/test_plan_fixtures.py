"""Pipelines that read well and cannot be planned; `-- expect: 3:8 code` in them names each error."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lockgate.config import Connection, Profile
from lockgate.errors import PipelineError
from lockgate.language import Variables, parse
from lockgate.plan import check, make_plan

FIXTURES = sorted((Path(__file__).parents[2] / "fixtures" / "language" / "bad_plan").glob("*.sql"))


@pytest.mark.parametrize("path", FIXTURES, ids=lambda p: p.stem)
def test_bad_plan(path: Path) -> None:
    text = path.read_bytes().decode("utf-8")
    given = dict(re.findall(r"^-- var: (\w+)=(.*?)\r?$", text, re.MULTILINE))
    program = parse(text, file=path.name, variables=Variables(given))
    connections = {"lake": Connection("lake", "s3")}
    problems = check(program, pipeline=path.name, project=Path("/project"), profile=Profile(connections=connections))
    found = [f"{d.place.line}:{d.place.column} {d.code}" for d in problems]
    assert found == re.findall(r"^-- expect: (.*?)\r?$", text, re.MULTILINE)


def test_all_errors_are_raised_at_once() -> None:
    path = next(p for p in FIXTURES if p.stem == "five_mistakes")
    with pytest.raises(PipelineError) as raised:
        make_plan(parse(path.read_text(), file="p.sql"), pipeline="p.sql", project=Path("/project"))
    assert len(raised.value.diagnostics) == 5
    text = str(raised.value)
    assert text.count("^") >= 5
    for hint in ("header", "users", "users_raw", "EXPORT", "CSV"):
        assert f"did you mean {hint}?" in text
