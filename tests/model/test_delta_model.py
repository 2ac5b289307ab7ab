"""Random writes to a Delta table against a dict, and every version read again at the end."""

from __future__ import annotations

import tempfile
from typing import Any

import pyarrow as pa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import lockgate

SCHEMA = pa.schema({"id": pa.int64(), "part": pa.string(), "x": pa.float64()})
IDS = st.integers(-3, 12)
ROW = st.fixed_dictionaries({"x": st.one_of(st.none(), st.floats(width=32))})
ROWS = st.dictionaries(IDS, ROW, max_size=8)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["insert", "update", "upsert", "full_merge", "deduplicate", "overwrite"]),
        ROWS,
        st.sampled_from(["arrow", "arrow", "duckdb"]),
        st.booleans(),
    ),
    min_size=1,
    max_size=6,
)


def part_of(key: int) -> str | None:
    return [None, "a b", "x/y"][key % 3]


def spelled(rows: dict[int, Any]) -> list[str]:
    return sorted(repr((key, part_of(key), row["x"])) for key, row in rows.items())


def after(state: dict[int, Any], action: str, rows: dict[int, Any]) -> dict[int, Any]:
    if action == "overwrite":
        return dict(rows)
    matched = {key: row for key, row in rows.items() if key in state}
    new = {key: row for key, row in rows.items() if key not in state}
    if action == "insert":
        return state | new
    if action == "update":
        return state | matched
    return dict(rows) if action == "full_merge" else state | rows


@settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck))
@given(STEPS)
def test_a_table_is_what_a_dict_is(steps: list[tuple[str, dict[int, Any], str, bool]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        state: dict[int, Any] = {}
        states = {0: state}
        address = f"sqlite:///{folder}/log.db"
        with lockgate.create_table("t", SCHEMA, partition_by="part", location=f"{folder}/t", log=address) as table:
            for action, rows, engine, skip in steps:
                source = pa.Table.from_pylist([{"id": k, "part": part_of(k), **r} for k, r in rows.items()], SCHEMA)
                if action == "overwrite":
                    result: Any = table.overwrite(source)
                else:
                    result = table.merge(source, strategy=action, key_columns="id", engine=engine, skip_unchanged=skip)
                    assert result.target_count_before == len(state)
                before, state = state, after(state, action, rows)
                states[result.version] = state
                assert result.version == table.version
                if action not in ("overwrite",):
                    assert result.inserted == len(state.keys() - before.keys())
                    assert result.deleted == len(before.keys() - state.keys())
            for version, expected in states.items():
                found = table.at(version=version).to_arrow().to_pylist()
                assert sorted(repr(tuple(row.values())) for row in found) == spelled(expected), version
