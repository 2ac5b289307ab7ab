"""Bloom filters prove absence within a row group's bounds; any doubt about them means that a key may be there."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lockgate.merging.bloom import BloomFilter, read_bloom_filter
from lockgate.merging.pruning import KeyRanges

BLOOM = {"ndv": 1_000, "fpp": 0.001}


def candidates(path: Path, keys: pa.Table, **partition: Any) -> tuple[int, ...]:
    return KeyRanges(keys).candidate_row_groups(pq.read_metadata(path), str(path), partition)


def written(path: Path, table: pa.Table, columns: list[str] | None = None, **options: Any) -> Path:
    filters = dict.fromkeys(columns or table.column_names, BLOOM)
    pq.write_table(table, path, bloom_filter_options=filters, **options)
    return path


EVEN = range(0, 1_000, 2)


@pytest.mark.parametrize(
    ("type", "of"),
    [
        (pa.int32(), int),
        (pa.int64(), lambda n: n - 500),
        (pa.uint32(), lambda n: n + 2**31),
        (pa.uint64(), lambda n: n + 2**63),
        (pa.string(), lambda n: f"é{n:04d}"),
        (pa.binary(), lambda n: f"{n:04d}".encode()),
        (pa.binary(4), lambda n: f"{n:04d}".encode()),
        (pa.date32(), lambda n: date.fromordinal(n + 1)),
        (pa.timestamp("us", "UTC"), int),
        (pa.timestamp("ns"), int),
        (pa.timestamp("s"), int),
        (pa.float64(), lambda n: n + 0.5),
        (pa.float32(), lambda n: n + 0.5),
        (pa.decimal128(30, 2), lambda n: Decimal(n - 500) / 100),
    ],
)
def test_a_value_within_the_bounds_but_not_in_the_filter_is_pruned(tmp_path: Path, type: pa.DataType, of: Any) -> None:
    path = written(tmp_path / "a.parquet", pa.table({"k": pa.array([of(n) for n in EVEN], type)}))
    for number in EVEN:
        assert candidates(path, pa.table({"k": pa.array([of(number)], type)})) == (0,)
    absent = [n for n in range(1, 998, 2) if candidates(path, pa.table({"k": pa.array([of(n)], type)}))]
    assert len(absent) < 10  # one in a thousand is expected to pass


@pytest.mark.parametrize("as_integer", [True, False])
def test_decimals_of_another_scale(tmp_path: Path, as_integer: bool) -> None:
    table = pa.table({"k": pa.array([Decimal(n) for n in EVEN], pa.decimal128(9, 2))})
    path = written(tmp_path / "a.parquet", table, store_decimal_as_integer=as_integer)
    for scale in (0, 4):
        type = pa.decimal128(20, scale)
        assert candidates(path, pa.table({"k": pa.array([Decimal(500)], type)})) == (0,)
        assert candidates(path, pa.table({"k": pa.array([Decimal(501)], type)})) == ()
    no_such_value = pa.table({"k": pa.array([Decimal("1.0001")], pa.decimal128(20, 4))})
    assert candidates(path, no_such_value) == (0,)


def test_zeros_of_either_sign_are_equal_though_their_bytes_are_not(tmp_path: Path) -> None:
    path = written(tmp_path / "a.parquet", pa.table({"k": [-1.0, -0.0, 1.0]}))
    assert candidates(path, pa.table({"k": [0.0]})) == (0,)


def test_more_than_a_thousand_keys_are_not_asked_about(tmp_path: Path) -> None:
    path = written(tmp_path / "a.parquet", pa.table({"k": range(0, 10_000, 2)}))
    assert candidates(path, pa.table({"k": range(1, 2_000, 2)})) in ((), (0,))
    assert candidates(path, pa.table({"k": range(1, 2_003, 2)})) == (0,)


def test_a_composite_key_must_be_in_the_filters_of_one_row_group_at_once(tmp_path: Path) -> None:
    table = pa.table({"a": EVEN, "b": [str(n) for n in EVEN]})
    path = written(tmp_path / "a.parquet", table)
    assert candidates(path, pa.table({"a": [500], "b": ["500"]})) == (0,)
    assert candidates(path, pa.table({"a": [500, 501], "b": ["501", "500"]})) == ()
    one = written(tmp_path / "b.parquet", table, ["b"])
    assert candidates(one, pa.table({"a": [501], "b": ["500"]})) == (0,)
    assert candidates(one, pa.table({"a": [500], "b": ["501"]})) == ()
    plain = table.select(["b"])
    inside = written(tmp_path / "c.parquet", plain)
    assert candidates(inside, pa.table({"a": [5], "b": ["501"]}), a=5) == ()
    assert candidates(inside, pa.table({"a": [5], "b": ["500"]}), a=5) == (0,)


def test_every_row_group_has_its_own_filter(tmp_path: Path) -> None:
    shuffled = [n * 7 % 1_000 for n in range(1_000)]
    path = written(tmp_path / "a.parquet", pa.table({"k": shuffled}), row_group_size=250)
    for key in range(0, 1_000, 50):
        assert shuffled.index(key) // 250 in candidates(path, pa.table({"k": [key]}))
    assert sum(len(candidates(path, pa.table({"k": [key]}))) for key in range(1_000)) < 1_100


class Bytes:
    def __init__(self, data: bytes) -> None:
        self.data = data

    def read_at(self, size: int, offset: int) -> bytes:
        return self.data[offset : offset + size]


@pytest.fixture(scope="module")
def real_filter(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = written(tmp_path_factory.mktemp("bloom") / "a.parquet", pa.table({"k": EVEN}))
    chunk = pq.read_metadata(path).row_group(0).column(0)
    start = chunk.bloom_filter_offset
    return path.read_bytes()[start : start + chunk.bloom_filter_length]


def test_a_filter_whose_length_only_its_header_tells(real_filter: bytes) -> None:
    for length in (len(real_filter), None):
        found = read_bloom_filter(Bytes(real_filter), 0, length)
        assert isinstance(found, BloomFilter)
        assert found.might_contain((2).to_bytes(8, "little"))
        assert not found.might_contain((3).to_bytes(8, "little"))


def test_any_other_header_is_a_doubt(real_filter: bytes) -> None:
    """Another algorithm, hash or compression, a size that is no number of blocks, or a cut file."""
    header_end = real_filter.index(b"\x1c\x1c\x00\x00\x1c")
    for at in range(header_end + 13):
        for flipped in (0x01, 0x10, 0x80):
            damaged = bytearray(real_filter)
            damaged[at] ^= flipped
            assert read_bloom_filter(Bytes(bytes(damaged)), 0, len(real_filter)) is None
    assert read_bloom_filter(Bytes(real_filter[:-1]), 0, None) is None
    assert read_bloom_filter(Bytes(real_filter), 0, len(real_filter) + 1) is None
    assert read_bloom_filter(Bytes(b""), 0, None) is None


def test_a_damaged_or_vanished_filter_never_prunes(tmp_path: Path) -> None:
    path = written(tmp_path / "a.parquet", pa.table({"k": EVEN}))
    footer = pq.read_metadata(path)
    ranges = KeyRanges(pa.table({"k": [501]}))
    assert ranges.candidate_row_groups(footer, str(path), {}) == ()
    content = bytearray(path.read_bytes())
    content[footer.row_group(0).column(0).bloom_filter_offset] = 0xFF
    path.write_bytes(content)
    assert ranges.candidate_row_groups(footer, str(path), {}) == (0,)
    path.unlink()
    assert ranges.candidate_row_groups(footer, str(path), {}) == (0,)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.text(max_size=5), st.floats()), min_size=1, max_size=20),
    st.integers(1, 7),
)
def test_a_key_that_is_there_always_passes(tmp_path: Path, rows: list[tuple[int, str, float]], size: int) -> None:
    columns = list(zip(*rows, strict=True))
    table = pa.table({"a": columns[0], "b": columns[1], "c": columns[2]})
    path = written(tmp_path / "h.parquet", table, row_group_size=size)
    for at in range(len(rows)):
        assert at // size in candidates(path, table.slice(at, 1))
