"""INCLUDE: relative paths, shared variables, and files that are not as they should be."""

from __future__ import annotations

import pytest

from lockgate.language import Program, Variables, parse
from lockgate.language.statements import LoadStep


def program_of(files: dict[str, str], **given: str) -> Program:
    def read(path: str) -> str:
        text = files.get(path.replace("\\", "/"))
        if text is None:
            raise FileNotFoundError(2, "No such file", path)
        return text

    return parse(files["p/main.sql"], file="p/main.sql", variables=Variables(given), read=read)


def test_statements_stand_where_the_include_stood() -> None:
    program = program_of(
        {
            "p/main.sql": 'SET x = 1; LOAD a FROM s; INCLUDE "sub/b.sql"; LOAD c${y} FROM s;',
            "p/sub/b.sql": 'LOAD b${x} FROM s; INCLUDE "../up.sql"',
            "p/up.sql": "SET y = 2;",
        }
    )
    assert program.diagnostics == ()
    assert [s.table_name for s in program.statements if isinstance(s, LoadStep)] == ["a", "b1", "c2"]
    assert program.files == ("p/main.sql", "p/sub/b.sql", "p/up.sql")


def test_errors_name_the_included_file_and_come_in_reading_order() -> None:
    program = program_of({"p/main.sql": '\nINCLUDE "b.sql";\nLOAD x;', "p/b.sql": "LOAD;"})
    assert [str(d.place) for d in program.diagnostics] == ["p/main.sql:3:7", "p/b.sql:1:5"]


def test_a_circle_is_shown() -> None:
    [problem] = program_of({"p/main.sql": 'INCLUDE "b.sql";', "p/b.sql": 'INCLUDE "../p/main.sql";'}).diagnostics
    assert problem.code == "include"
    assert "p/main.sql -> p/b.sql -> p/main.sql" in problem.message.replace("\\", "/")


def test_an_endless_chain_ends() -> None:
    [problem] = parse("INCLUDE 'x/a.sql';", file="a.sql", read=lambda _path: "INCLUDE 'x/a.sql';").diagnostics
    assert "deep" in problem.message


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (PermissionError(13, "Permission denied"), "Permission denied"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "x"), "UTF-8"),
        (ValueError("embedded null byte"), "null byte"),
    ],
)
def test_a_file_that_cannot_be_read(error: Exception, said: str) -> None:
    def read(_path: str) -> str:
        raise error

    [problem] = parse("INCLUDE 'b.sql';", read=read).diagnostics
    assert said in problem.message


def test_without_a_reader() -> None:
    [problem] = parse("INCLUDE 'b.sql';").diagnostics
    assert problem.code == "include"


def test_a_branch_that_is_not_taken_reads_nothing() -> None:
    def read(path: str) -> str:
        raise AssertionError(path)

    assert parse("IF false THEN INCLUDE 'b.sql'; END IF;", read=read).diagnostics == ()


def test_a_value_cannot_choose_a_file_outside() -> None:
    [problem] = program_of({"p/main.sql": 'INCLUDE "${x}.sql";'}, x="../secret").diagnostics
    assert problem.code == "path-escape"
