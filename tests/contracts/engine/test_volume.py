"""Some thousand rows in files of many row groups: enough for threads, batches and vectors to meet their borders."""

from __future__ import annotations

import random

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contracts.engine.dataset import STRATEGIES, Dataset, counts

ROWS = 12_000
LAYOUTS = [{"row_group_size": 2048}, {"row_group_size": 500, "compression": "zstd"}, {"write_statistics": False}, {}]


def rows(numbers: list[int], mark: str) -> pa.Table:
    return pa.table(
        {
            "a": [f"key {n // 7}" for n in numbers],
            "n": numbers,
            "b": pa.array([n % 7 for n in numbers], pa.int32()),
            "x": [None if n % 11 == 0 else f"{mark} {n}" for n in numbers],
            "l": [[n] * (n % 4) for n in numbers],
        }
    )


@pytest.mark.parametrize("key", [["n"], ["a", "b"]], ids=["one column", "two columns"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_rows_order_and_counts(dataset: Dataset, strategy: str, key: list[str]) -> None:
    chance = random.Random(7)
    numbers = list(range(ROWS))
    chance.shuffle(numbers)
    part = ROWS // len(LAYOUTS)
    parts = [numbers[i * part : (i + 1) * part] for i in range(len(LAYOUTS))]
    paths = [dataset.add(f"{i}.parquet", rows(parts[i], "old"), **LAYOUTS[i]) for i in range(len(LAYOUTS))]
    chosen = chance.sample(range(ROWS + 1500), 4500)
    matched, fresh = {n for n in chosen if n < ROWS}, {n for n in chosen if n >= ROWS}

    result = dataset.merge(rows(chosen, "new").select(["l", "b", "x", "n", "a"]), strategy, key)

    replaces, inserts, removes = strategy != "insert", strategy != "update", strategy == "full_merge"
    assert counts(result) == {
        "inserted": len(fresh) if inserts else 0,
        "updated": len(matched) if replaces else 0,
        "deleted": ROWS - len(matched) if removes else 0,
    }
    for path, before in zip(paths, parts, strict=True):
        kept = [n for n in before if n in matched] if removes else before
        found = pq.ParquetFile(path).read()
        assert found["n"].to_pylist() == kept, "in the order they had"
        new = [replaces and n in matched for n in kept]
        old_rows, new_rows = rows(kept, "old").to_pylist(), rows(kept, "new").to_pylist()
        assert found.to_pylist() == [n if is_new else o for o, n, is_new in zip(old_rows, new_rows, new, strict=True)]
    added = [n for name in result.inserted_files for n in pq.ParquetFile(name).read()["n"].to_pylist()]
    assert sorted(added) == (sorted(fresh) if inserts else [])
