"""CSV and JSON: what is written is what is read back, by us and by others."""

from __future__ import annotations

import bz2
import csv
import gzip
import json

import pyarrow as pa
import pytest

import lockgate

HARD = """SELECT * FROM VALUES
  (1, 'plain', 'x'), (2, NULL, ''), (3, '', NULL), (4, 'a,b;c', 'say "hi"'), (5, 'two\\nlines', 'cr\\r\\nlf'),
  (6, '  spaces  ', 'tab\\there'), (7, 'back\\\\slash', 'ends with \\\\'), (8, 'ünïcödé 😀', '''single'''),
  (9, '"', '""'), (10, ',', '\\\\"') AS t(id, a, b) ORDER BY id"""

EXPECTED = [
    (1, "plain", "x"),
    (2, None, ""),
    (3, "", None),
    (4, "a,b;c", 'say "hi"'),
    (5, "two\nlines", "cr\r\nlf"),
    (6, "  spaces  ", "tab\there"),
    (7, "back\\slash", "ends with \\"),
    (8, "ünïcödé 😀", "'single'"),
    (9, '"', '""'),
    (10, ",", '\\"'),
]


def test_csv_null_is_empty_and_an_empty_string_is_quoted(run_sql, project):
    run_sql(f'EXPORT {HARD} TO "out/a.csv" TYPE CSV MODE REPLACE;')
    raw = (project / "out/a.csv").read_bytes().decode()
    assert raw.startswith('id,a,b\n1,plain,x\n2,,""\n3,"",\n4,"a,b;c","say ""hi"""\n5,"two\nlines","cr\r\nlf"\n')
    with open(project / "out/a.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))[1:]
    assert rows == [[str(i), a or "", b or ""] for i, a, b in EXPECTED]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"delimiter": ";", "quote": "'", "null_value": "n/a"},
        {"delimiter": "\t", "header": False},
        {"encoding": "utf-16"},
        {"escape": "\\"},
        {"null_value": "NULL", "compression": "gzip"},
    ],
    ids=lambda o: ",".join(o) or "defaults",
)
def test_csv_round_trip_through_our_own_source(run_sql, project, options):
    name = "a.csv.gz" if options.get("compression") else "a.csv"
    read = {k: v for k, v in options.items() if k != "compression"}
    read |= {"path": f"out/{name}", "schema": "id INT, a STRING, b STRING"}
    run_sql(f'EXPORT {HARD} TO "out/{name}" TYPE CSV OPTIONS {json.dumps(options)} MODE REPLACE;')
    run_sql(
        f"SOURCE s TYPE CSV PARAMS {json.dumps(read)}; LOAD t FROM s;"
        'EXPORT SELECT * FROM t ORDER BY id TO "out/back.parquet" TYPE PARQUET MODE REPLACE;'
    )
    import pyarrow.parquet as pq

    back = pq.read_table(project / "out/back.parquet").to_pydict()
    assert list(zip(back["id"], back["a"], back["b"], strict=True)) == EXPECTED


@pytest.mark.parametrize(("suffix", "opener"), [(".gz", gzip.open), (".bz2", bz2.open)])
def test_compression_by_suffix(run_sql, project, suffix, opener):
    run_sql(f"""
        EXPORT SELECT id FROM range(3) ORDER BY id TO "out/a.csv{suffix}" TYPE CSV MODE REPLACE;
        EXPORT SELECT id FROM range(3) ORDER BY id TO "out/a.json{suffix}" TYPE JSON MODE REPLACE;
    """)
    with opener(project / f"out/a.csv{suffix}") as file:
        assert file.read() == b"id\n0\n1\n2\n"
    with opener(project / f"out/a.json{suffix}") as file:
        assert file.read() == b'{"id":0}\n{"id":1}\n{"id":2}\n'


def test_zstd_by_suffix_and_no_compression_by_option(run_sql, project):
    run_sql("""
        EXPORT SELECT 1 AS id TO "out/a.csv.zst" TYPE CSV MODE REPLACE;
        EXPORT SELECT 1 AS id TO "out/b.csv.gz" TYPE CSV OPTIONS {"compression": "none"} MODE REPLACE;
    """)
    with pa.input_stream(str(project / "out/a.csv.zst"), compression="zstd") as stream:
        assert stream.read() == b"id\n1\n"
    assert (project / "out/b.csv.gz").read_bytes() == b"id\n1\n"


def test_an_encoding_that_lacks_a_character_is_an_error(run_sql, project):
    (project / "out").mkdir()
    (project / "out/a.csv").write_text("old")
    text = 'EXPORT SELECT \'{}\' AS x TO "out/a.csv" TYPE CSV OPTIONS {{"encoding": "latin-1"}} MODE REPLACE;'
    with pytest.raises(lockgate.StageError, match="'€' does not exist in latin-1"):
        run_sql(text.format("10 €"))
    assert (project / "out/a.csv").read_text() == "old"
    run_sql(text.format("Ärger"))
    assert (project / "out/a.csv").read_bytes() == "x\nÄrger\n".encode("latin-1")


def test_utf16_has_one_byte_order_mark(run_sql, project):
    run_sql('EXPORT SELECT id FROM range(2) TO "out/a.csv" TYPE CSV OPTIONS {"encoding": "utf-16"} MODE REPLACE;')
    assert (project / "out/a.csv").read_bytes().decode("utf-16") == "id\n0\n1\n"


def test_column_names_in_the_header_are_quoted(run_sql, project):
    run_sql('EXPORT SELECT 1 AS `a,b`, 2 AS `say "hi"` TO "out/a.csv" TYPE CSV MODE REPLACE;')
    assert (project / "out/a.csv").read_text() == '"a,b","say ""hi"""\n1,2\n'


def test_a_row_of_one_null_is_a_line(run_sql, project):
    run_sql('EXPORT SELECT CAST(NULL AS STRING) AS x FROM range(2) TO "out/a.csv" TYPE CSV MODE REPLACE;')
    assert (project / "out/a.csv").read_text() == "x\n\n\n"


def test_json_keeps_nulls_unless_told(run_sql, project):
    run_sql("""
        EXPORT SELECT 1 AS a, CAST(NULL AS INT) AS b TO "out/a.json" TYPE JSON MODE REPLACE;
        EXPORT SELECT 1 AS a, CAST(NULL AS INT) AS b TO "out/b.json" TYPE JSON OPTIONS {"ignore_null_fields": true}
          MODE REPLACE;
    """)
    assert json.loads((project / "out/a.json").read_text()) == {"a": 1, "b": None}
    assert json.loads((project / "out/b.json").read_text()) == {"a": 1}
