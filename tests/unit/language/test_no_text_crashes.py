"""Whatever the text, parsing and checking end with a list of diagnostics and nothing else."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lockgate.language import Variables, parse
from lockgate.plan import check

FIXTURES = Path(__file__).parents[2] / "fixtures" / "language"
TEXTS = [path.read_bytes().decode("utf-8") for path in sorted(FIXTURES.glob("*/*.sql"))]

KEYWORDS = """
SOURCE LOAD CREATE OR REPLACE TABLE CHECK EXPORT SET INCLUDE IF THEN ELSE END MODE KEY ORDER BY LOOKBACK TYPE PARAMS
OPTIONS FROM TO AS SELECT WITH UPSERT APPEND CSV a b 1 2.5 1L 'x' "y" `z` ; ;; ( ) [ ] { } {% {# #} , . : :: :p = ==
<> < -- /* */ /*+ ' " ` $ ${ ${x} ${y|d} ${bad ${} {"path":"a"} {"a":1} é
"""
WORDS = [*KEYWORDS.split(), "\\", "\n", "\r\n", "\t", "\x00", "\ufeff", "\U0001f600", " "]

VALUES = st.one_of(
    st.text(max_size=10), st.sampled_from(["'", '"', "`", ";", "/*", "--", "a;b", "${x}", "}", "\\", ""])
)


def survive(text: str, value: str = "v") -> None:
    program = parse(text, file="p.sql", variables=Variables({"x": value}), read=lambda _path: text)
    for diagnostic in check(program, pipeline="p.sql", project=Path("/project")):
        assert diagnostic.render()
        assert diagnostic.place.line >= 1
        assert diagnostic.place.column >= 1


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=80), VALUES)
def test_any_text(text: str, value: str) -> None:
    survive(text, value)


@settings(max_examples=500, deadline=None)
@given(st.lists(st.sampled_from(WORDS), max_size=25), st.sampled_from([" ", "", "\n"]), VALUES)
def test_any_words(words: list[str], glue: str, value: str) -> None:
    survive(glue.join(words), value)


@settings(max_examples=300, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(TEXTS), st.randoms(use_true_random=False), VALUES)
def test_mutated_fixtures(text: str, chance: random.Random, value: str) -> None:
    for _ in range(chance.randint(1, 4)):
        start = chance.randint(0, len(text))
        end = min(len(text), start + chance.choice([0, 0, 1, 3, 20]))
        text = text[:start] + chance.choice(["", *WORDS]) + text[end:]
    survive(text, value)


@pytest.mark.parametrize(
    "text",
    [
        "IF true THEN " * 500 + "LOAD a FROM s;" + "END IF;" * 500,
        "IF " + "(" * 5000 + "1" + ")" * 5000 + " THEN LOAD a FROM s; END IF;",
        "IF " + "NOT " * 5000 + "true THEN LOAD a FROM s; END IF;",
        "CREATE TABLE a AS SELECT " + "(" * 9000 + "1" + ")" * 9000 + ";",
        "CREATE TABLE a AS SELECT * FROM " + "(SELECT * FROM " * 9000 + "b" + ")" * 9000 + ";",
        "CREATE TABLE a AS SELECT " + "NOT " * 3000 + "true;",
        "CREATE TABLE a AS SELECT " + "CASE WHEN a THEN " * 2000 + "1" + " END" * 2000 + ";",
        'SOURCE a TYPE CSV PARAMS {"a": ' + "[" * 20000 + "]" * 20000 + "};",
        'SOURCE a TYPE CSV PARAMS {"a": ' + '{"a": ' * 500 + "1" + "}" * 500 + "};",
        'SOURCE a TYPE CSV PARAMS {"a": ' + "9" * 10000 + "};",
        "/*" * 5000,
        "'" * 5001,
        "${x}" * 2000,
        "SET a = '" + "x" * 100000 + "';",
    ],
    ids=lambda text: text[:30],
)
def test_deep_and_long_text(text: str) -> None:
    survive(text)
