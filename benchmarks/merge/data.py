"""The data of the merge benchmark: a dataset of 50 files and two sources, the same whenever they are made.

python benchmarks/merge/data.py FOLDER [--rows N]       the dataset and its sources
python benchmarks/merge/data.py FOLDER --small N        N small files, for planning.py
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

ROWS = 10_000_000
FILES = 50
CASES = {"a": "updates in 2 files", "b": "updates in every file"}
IN_CASE_A = (7, 8)  # the files that (a) updates
SMALL_ROWS = 100  # of each small file
TOUCHED_SMALL = 3
KEYS = 30

# One random number a column and row: hash(id * 16 + column). A source row is the same with column + 8.
_COLUMNS = """id,
    CAST(hash(id * 16 + {s} + 1) % 1000000 AS BIGINT) AS customer,
    CAST(hash(id * 16 + {s} + 2) AS DOUBLE) / 18446744073709551616 * 1000 AS amount,
    CAST(hash(id * 16 + {s} + 3) % 100 AS INTEGER) AS quantity,
    CAST(DATE '2020-01-01' + CAST(hash(id * 16 + {s} + 4) % 2000 AS INTEGER) AS DATE) AS day,
    make_timestamp(CAST(1600000000000000 + hash(id * 16 + {s} + 5) % 100000000000000 AS BIGINT)) AS "at",
    ['new', 'paid', 'sent', 'back'][CAST(1 + hash(id * 16 + {s} + 6) % 4 AS INTEGER)] AS status,
    'note ' || (hash(id * 16 + {s} + 7) % 1000000) AS note"""
STORED = _COLUMNS.format(s=0)
SENT = _COLUMNS.format(s=8)

# Exact, whatever the order of the rows: a sum of doubles would depend on it.
CHECKSUM = """SELECT count(*), CAST(sum(id) AS VARCHAR), CAST(sum(CAST(amount * 1000000 AS BIGINT)) AS VARCHAR),
    CAST(sum(hash(id, customer, amount, quantity, day, CAST("at" AS TIMESTAMP), status, note)) AS VARCHAR) FROM """


def schema() -> Any:
    import pyarrow as pa

    types = [
        pa.int64(),
        pa.int64(),
        pa.float64(),
        pa.int32(),
        pa.date32(),
        pa.timestamp("us"),
        pa.string(),
        pa.string(),
    ]
    names = ["id", "customer", "amount", "quantity", "day", "at", "status", "note"]
    return pa.schema(list(zip(names, types, strict=True)))


def make(folder: Path, rows: int) -> None:
    """The dataset in `data`, the sources as `a.parquet` and `b.parquet`, and what a merge of each must give."""
    import duckdb
    import pyarrow.parquet as pq

    connection = duckdb.connect()
    (folder / "data").mkdir(parents=True)
    each = rows // FILES
    for number in range(FILES):
        ids = f"(SELECT range AS id FROM range({number * each}, {(number + 1) * each}))"
        table = connection.sql(f"SELECT {STORED} FROM {ids} ORDER BY id").to_arrow_table().cast(schema())
        pq.write_table(table, folder / "data" / _name(number))

    total, sent = each * FILES, rows // 100
    updates = sent * 9 // 10
    ranges = {"a": (IN_CASE_A[0] * each, (IN_CASE_A[-1] + 1) * each), "b": (0, total)}
    about: dict[str, Any] = {
        "rows": total,
        "after": total + sent - updates,
        "sent": sent,
        "touched": {},
        "expected": {},
    }
    for case, (first, end) in ranges.items():
        connection.execute(
            f"""CREATE OR REPLACE TEMP TABLE sent AS SELECT {SENT} FROM (
                (SELECT range AS id FROM range({first}, {end}) ORDER BY hash(range * 16 + 15), range LIMIT {updates})
                UNION ALL SELECT range FROM range({total}, {total + sent - updates})) ORDER BY hash(id), id"""
        )
        pq.write_table(connection.sql("FROM sent").to_arrow_table().cast(schema()), folder / f"{case}.parquet")
        touched = connection.sql(f"SELECT DISTINCT id // {each} FROM sent WHERE id < {total} ORDER BY 1").fetchall()
        about["touched"][case] = [_name(number) for (number,) in touched]
        about["expected"][case] = connection.execute(
            f"""{CHECKSUM} (SELECT * FROM read_parquet('{folder}/data/*.parquet') WHERE id NOT IN (SELECT id FROM sent)
                UNION ALL FROM sent)"""
        ).fetchall()[0]
    (folder / "about.json").write_text(json.dumps(about))


def checksum(files: list[str]) -> list[Any]:
    import duckdb

    read = "read_parquet($1, union_by_name = true)"
    return list(duckdb.connect().execute(CHECKSUM + read, [files]).fetchall()[0])


def make_small(folder: Path, files: int) -> None:
    """`files` small files in `small`, and a source `keys.parquet` that touches three of them."""
    import duckdb
    import pyarrow.parquet as pq

    connection = duckdb.connect()
    (folder / "small").mkdir(parents=True)
    ids = f"(SELECT range AS id FROM range({files * SMALL_ROWS}))"
    table = connection.sql(f"SELECT {STORED} FROM {ids} ORDER BY id").to_arrow_table().cast(schema()).combine_chunks()
    for number in range(files):
        pq.write_table(table.slice(number * SMALL_ROWS, SMALL_ROWS), folder / "small" / _name(number))
    touched = touched_small(files)
    chosen = [number * SMALL_ROWS + 7 * n for number in touched for n in range(KEYS // TOUCHED_SMALL)]
    sent = connection.sql(f"SELECT {SENT} FROM (SELECT unnest({chosen}) AS id)").to_arrow_table().cast(schema())
    pq.write_table(sent, folder / "keys.parquet")


def touched_small(files: int) -> list[int]:
    return [files * part // (TOUCHED_SMALL + 1) for part in range(1, TOUCHED_SMALL + 1)]


def _name(number: int) -> str:
    return f"part-{number:05d}.parquet"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--small", type=int)
    options = parser.parse_args()
    if options.small:
        make_small(options.folder, options.small)
    else:
        make(options.folder, options.rows)
