"""Exports meet their destinations at planning time, and a plan can be told to people and machines."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lockgate.destinations.protocol import Complaint, ExportRequest
from lockgate.language import parse
from lockgate.plan import check, make_plan
from lockgate.plan.describe import to_json, to_rows

PROJECT = Path("/project")


class Picky:
    """A destination with a complaint about everything."""

    type = "PICKY"

    def __init__(self) -> None:
        self.requests: list[ExportRequest] = []

    def problems(self, request: ExportRequest) -> list[Complaint]:
        self.requests.append(request)
        return [
            Complaint("type", "t", "about the type"),
            Complaint("mode", "m", "about the mode"),
            Complaint("destination", "d", "about the destination"),
            Complaint("options", "o", "about options"),
            Complaint("options", "p", "about option 'b'", "a hint"),
        ]


def test_complaints_come_with_their_places() -> None:
    picky: Any = Picky()
    text = 'CREATE TABLE t AS SELECT 1;\nEXPORT t TO \'x\' TYPE PICKY OPTIONS {"a": 1, "b": 2} MODE UPSERT KEY (id);'
    found = check(parse(text), pipeline="p", project=PROJECT, find=lambda _type: picky)
    assert [(d.place.column, d.code) for d in found] == [(13, "d"), (22, "t"), (36, "o"), (45, "p"), (58, "m")]
    [request] = picky.requests
    assert (request.destination, request.mode, request.keys) == ("x", "UPSERT", ("id",))
    assert (request.project, request.options, request.number) == (PROJECT, {"a": 1, "b": 2}, 1)


def test_a_mistake_in_the_text_is_not_told_twice() -> None:
    text = "CREATE TABLE t AS SELECT 1;\nEXPORT t TO 'x.csv' TYPE CSV MODE UPSERT;"
    assert [d.code for d in check(parse(text), pipeline="p", project=PROJECT)] == ["mode"]


TEXT = """SOURCE s TYPE CSV PARAMS {"path": "x"};
LOAD t FROM s;
CHECK c AS SELECT * FROM t WHERE x < :limit;
EXPORT t TO "out/t.csv" TYPE CSV MODE REPLACE AS result;"""


def test_as_json() -> None:
    program = parse("SET limit = 0;\n" + TEXT, file="p.sql")
    plan = make_plan(program, pipeline="p.sql", project=PROJECT)
    assert plan.parameters == {"limit": 0}
    told = json.loads(json.dumps(to_json(plan)))
    assert told["steps"] == [
        {"name": "s", "kind": "source", "reads": [], "mode": None, "place": "p.sql:2:1"},
        {"name": "t", "kind": "load", "reads": ["s"], "mode": "REPLACE", "place": "p.sql:3:1"},
        {"name": "c", "kind": "check", "reads": ["t"], "mode": None, "place": "p.sql:4:1"},
        {"name": "result", "kind": "export", "reads": ["t"], "mode": "REPLACE", "place": "p.sql:5:1"},
    ]
    [export] = told["exports"]
    assert export["name"] == "result"
    assert export["destination"] == "out/t.csv"
    assert (export["status"], export["inserted"], export["keys"]) == ("planned", None, [])


def test_as_rows() -> None:
    program = parse(TEXT.replace(":limit", "0"), file="p.sql")
    heading, *rows = to_rows(make_plan(program, pipeline="p.sql", project=PROJECT))
    assert all(len(row) == len(heading) for row in rows)
    assert rows[1] == ("2", "load", "t", "s", "table t, kept for several readers", "REPLACE")
    assert rows[3] == ("4", "export", "result", "t", "out/t.csv (CSV)", "REPLACE")
