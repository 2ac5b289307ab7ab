"""The lines of a version's commit file, from its rows: byte for byte what is published."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

from lockgate.txlog import statements
from lockgate.txlog.actions import json_text
from lockgate.txlog.store import Row

_AT_ONCE = 500  # versions read from the database together


def lines_of(rows: Callable[..., list[Row]], table_id: int, first: int, last: int) -> Iterator[tuple[Row, list[str]]]:
    """Each version's row (version, timestamp, txn_id, blind_append, head) with the lines of its commit file."""
    for start in range(first, last + 1, _AT_ONCE):
        end = min(last, start + _AT_ONCE - 1)
        files: dict[int, list[str]] = {}
        for version, line in rows(statements.REMOVES, table_id, start, end):
            files.setdefault(version, []).append(line)
        for row in rows(statements.ADDS, table_id, start, end):
            files.setdefault(row[0], []).append(add_line(row[1:]))
        for row in rows(statements.VERSIONS, table_id, start, end):
            yield row, [*row[4].split("\n"), *files.get(row[0], ())]


def add_line(row: Row) -> str:
    """The line of a file that joined: as `to_json` of its record would write it.

    >>> add_line(("a.parquet", "{}", 1, 2, True, None, None, None, None))
    '{"add":{"path":"a.parquet","partitionValues":{},"size":1,"modificationTime":2,"dataChange":true}}'
    """
    path, values, size, modified, data_change, stats, tags, vector, extra = row
    flag = "true" if data_change else "false"
    parts = [
        f'{{"add":{{"path":{json_text(path)},"partitionValues":{values},"size":{size},"modificationTime":{modified}',
        f',"dataChange":{flag}',
    ]
    if stats is not None:
        parts.append(f',"stats":{json_text(stats)}')
    if tags is not None:
        parts.append(f',"tags":{tags}')
    if vector is not None:
        parts.append(f',"deletionVector":{vector}')
    if extra is not None:
        parts.append(f",{extra[1:-1]}")
    parts.append("}}")
    return "".join(parts)


def commit_info(head: str) -> dict[str, Any]:
    """The commitInfo of a version's row."""
    info: dict[str, Any] = json.loads(head.partition("\n")[0])["commitInfo"]
    return info
