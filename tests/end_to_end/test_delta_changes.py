"""Change data of a Delta table as the source of a pipeline, and constraints on its exports."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import lockgate
from lockgate.running.result import RunResult

Run = Callable[..., RunResult]


@pytest.mark.usefixtures("project")
def test_changes_are_a_source_and_constraints_hold_for_exports(run_sql: Run, project: Path) -> None:
    schema = pa.schema({"id": pa.int64(), "x": pa.string()})
    with lockgate.create_table("orders", schema) as table:
        table.append([{"id": 1, "x": "a"}, {"id": 2, "x": "b"}])
        table.merge([{"id": 2, "x": "c"}, {"id": 3, "x": "d"}], strategy="upsert", key_columns="id")
    run_sql(
        'SOURCE c TYPE DELTA PARAMS {"table": "orders", "changes_from": 1, "changes_to": 2, "changes_key": "id"};'
        "LOAD c1 FROM c; EXPORT SELECT id, _change_type, _commit_version FROM c1 ORDER BY id, _change_type, "
        '_commit_version TO "out.csv" TYPE CSV MODE REPLACE;'
    )
    assert (project / "out.csv").read_text().splitlines()[1:] == [
        "1,insert,1", "2,insert,1", "2,update_postimage,2", "2,update_preimage,2", "3,insert,2",
    ]  # fmt: skip
    run_sql(
        'SOURCE c TYPE DELTA PARAMS {"table": "orders", "changes_from": 0, "changes_to": 0};'
        'LOAD c1 FROM c; EXPORT SELECT id, _change_type FROM c1 TO "none.csv" TYPE CSV MODE REPLACE;'
    )
    assert len((project / "none.csv").read_text().splitlines()) <= 1
    with pytest.raises(lockgate.SourceError, match="versions 0 to 2"):
        run_sql(
            'SOURCE c TYPE DELTA PARAMS {"table": "orders", "changes_from": 9}; LOAD d FROM c; '
            'EXPORT d TO "o.csv" TYPE CSV;'
        )
    with lockgate.open_table("orders") as table:
        table.add_constraint("small", "id < 10")
        for mode in ("APPEND", "REPLACE", "UPSERT KEY (id)"):
            with pytest.raises(lockgate.LockgateError, match="breaks the constraint small"):
                run_sql(f"EXPORT SELECT 10L AS id, 'x' AS x TO \"orders\" TYPE DELTA MODE {mode};")
        assert table.version == 3
        run_sql("EXPORT SELECT 9L AS id, 'x' AS x TO \"orders\" TYPE DELTA MODE UPSERT KEY (id);")
        assert sorted(table.to_arrow()["id"].to_pylist()) == [1, 2, 3, 9]
