"""Several processes that merge into and append to one Delta table at the same time lose nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest

import lockgate

_WRITER = """
import sys, lockgate
address, number, rounds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
with lockgate.open_table("t", log=address) as table:
    sys.stdin.readline()
    for turn in range(rounds):
        own = [{"id": 1000 * number + turn, "x": f"{number}"}]
        shared = [{"id": n, "x": f"{number}.{turn}"} for n in range(3)]
        table.merge(own + shared, strategy="upsert", key_columns="id", engine="arrow", tries=50)
        table.append([{"id": -1, "x": f"{number}.{turn}"}])
print("done")
"""


def test_merging_and_appending_processes_lose_nothing(project: Path) -> None:
    address = f"sqlite:///{project}/log.db"
    schema = pa.schema({"id": pa.int64(), "x": pa.string()})
    writers, rounds = 3, 4
    with lockgate.create_table("t", schema, log=address) as table:
        processes = [
            subprocess.Popen(
                [sys.executable, "-c", _WRITER, address, str(n), str(rounds)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            )
            for n in range(1, writers + 1)
        ]  # fmt: skip
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        for process in processes:
            out, errors = process.communicate()
            assert out.strip() == "done", errors
        rows = table.to_arrow().to_pylist()
        ids = [row["id"] for row in rows]
        assert sorted(i for i in ids if i >= 1000) == [
            1000 * n + t for n in range(1, writers + 1) for t in range(rounds)
        ]
        assert sorted(i for i in ids if 0 <= i < 3) == [0, 1, 2], "a key that two merges added is there once"
        assert ids.count(-1) == writers * rounds
        assert table.version == 2 * writers * rounds
        last = {row["x"] for row in rows if 0 <= row["id"] < 3}
        assert len(last) == 1, "the shared rows are all of one merge, the last"
        live = table.files().column("path").to_pylist()
        read = deltalake.DeltaTable(table.location)
        assert read.version() == table.version
        assert {Path(f).name for f in read.file_uris()} == {Path(f).name for f in live}


@pytest.mark.usefixtures("project")
def test_two_that_change_one_file_are_planned_again(monkeypatch: pytest.MonkeyPatch) -> None:
    from lockgate.tables import merging

    with lockgate.create_table("t", pa.schema({"id": pa.int64(), "x": pa.string()})) as table:
        table.append([{"id": 1, "x": "old"}])
        real, came = merging.merge_rows, []

        def between(*given, **named):
            if not came:  # the other writer comes after this one has chosen its snapshot
                came.append(1)
                table.merge([{"id": 1, "x": "theirs"}, {"id": 2, "x": "theirs"}], strategy="upsert", key_columns="id")
            return real(*given, **named)

        monkeypatch.setattr(merging, "merge_rows", between)
        result = table.merge([{"id": 2, "x": "ours"}], strategy="upsert", key_columns="id")
        assert (result.updated, result.inserted, result.version) == (1, 0, 3)
        assert table.to_arrow().sort_by("id").to_pylist() == [{"id": 1, "x": "theirs"}, {"id": 2, "x": "ours"}]
        left = {p.name for p in Path(table.location).rglob("*.parquet")}
        ever = {f for v in range(4) for f in table.at(version=v).files().column("path").to_pylist()}
        assert left == ever, "what a try that clashed had written is gone"


@pytest.mark.usefixtures("project")
def test_a_clash_that_never_ends_says_who(monkeypatch: pytest.MonkeyPatch) -> None:
    from lockgate.tables import merging

    with lockgate.create_table("t", pa.schema({"id": pa.int64(), "x": pa.string()})) as table:
        table.append([{"id": 1, "x": "old"}])
        real, inside = merging.merge_rows, []

        def between(*given, **named):
            if not inside:
                inside.append(1)
                table.overwrite([{"id": 1, "x": f"{table.version}"}])
                inside.clear()
            return real(*given, **named)

        monkeypatch.setattr(merging, "merge_rows", between)
        with pytest.raises(lockgate.VersionConflict, match="WRITE") as caught:
            table.merge([{"id": 1, "x": "ours"}], strategy="update", key_columns="id", tries=3)
        assert "3 times" in (caught.value.hint or "")
        assert caught.value.actual == table.version


@pytest.mark.usefixtures("project")
def test_two_that_add_one_key_add_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither removes a file: only what was read tells that the second had to see the first's row."""
    from lockgate.tables import merging

    with lockgate.create_table("t", pa.schema({"id": pa.int64(), "x": pa.string()})) as table:
        real, came = merging.merge_rows, []

        def between(source, target, engine, request):
            if not came:
                came.append(1)
                table.merge([{"id": 7, "x": "theirs"}], strategy="upsert", key_columns="id")
            return real(source, target, engine, request)

        monkeypatch.setattr(merging, "merge_rows", between)
        result = table.merge([{"id": 7, "x": "ours"}], strategy="upsert", key_columns="id")
        assert (result.inserted, result.updated) == (0, 1)
        assert table.to_arrow().to_pylist() == [{"id": 7, "x": "ours"}]
