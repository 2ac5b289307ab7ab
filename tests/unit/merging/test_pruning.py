"""Row groups and files are pruned where footers prove that no source key is there, and nowhere else."""

from __future__ import annotations

import io
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from lockgate.merging.footers import ParquetFileMetadata
from lockgate.merging.pruning import ConservativeMembershipChecker, KeyRanges, PartitionPruner

NAN = float("nan")


def footer_of(table: pa.Table, **options: Any) -> pq.FileMetaData:
    file = io.BytesIO()
    pq.write_table(table, file, **options)
    return pq.read_metadata(file)


def candidates(
    table: pa.Table, keys: pa.Table, *, size: int = 2, partition: dict[str, Any] | None = None, **options: Any
) -> tuple[int, ...]:
    return KeyRanges(keys).candidate_row_groups(footer_of(table, row_group_size=size, **options), "x", partition or {})


def of_one_column(values: list[Any], keys: list[Any], type: pa.DataType | None = None, **options: Any) -> Any:
    return candidates(pa.table({"k": pa.array(values, type)}), pa.table({"k": pa.array(keys, type)}), **options)


INSTANT = pa.timestamp("ns", "UTC")


@pytest.mark.parametrize(
    ("type", "values", "keys", "expected"),
    [
        (pa.int64(), [1, 2, 5, 6, 8, 9], [4, 5], (1,)),
        (pa.int64(), [1, 3, 5, 7], [0, 4, 9], ()),  # within the file's range, in no row group
        (pa.int64(), [None, None, 1, 2], [1], (1,)),  # NULL matches nothing
        (pa.int8(), [-5, -3, 3, 5], [-4], (0,)),
        (pa.uint32(), [1, 2, 2**31, 2**32 - 1], [2**31 + 5], (1,)),
        (pa.uint64(), [1, 2, 2**63, 2**64 - 1], [2**63 + 5], (1,)),
        (pa.uint64(), [1, 2, 2**63, 2**64 - 1], [2**62], ()),
        (pa.string(), ["a", "b", "é", "ü"], ["é"], (1,)),
        (pa.string(), ["a", "b", "é", "ü"], ["c"], ()),
        (pa.large_string(), ["a", "b", "c", "d"], ["c"], (1,)),
        (pa.string_view(), ["a", "b", "c", "d"], ["c"], (1,)),
        (pa.binary(), [b"\x01", b"\x02", b"\x80", b"\xff"], [b"\x90"], (1,)),
        (pa.binary(2), [b"\x01a", b"\x02a", b"\x80a", b"\xffa"], [b"\x90a"], (1,)),
        (pa.date32(), [1, 2, 5, 6], [5], (1,)),
        (pa.date64(), [date(2026, 1, d) for d in (1, 2, 5, 6)], [date(2026, 1, 5)], (1,)),
        (pa.time32("s"), [1, 2, 5, 6], [5], (1,)),
        (pa.time64("ns"), [1, 2, 5, 6], [5], (1,)),
        (pa.timestamp("s"), [1, 2, 5, 6], [5], (1,)),
        (pa.timestamp("ms"), [1, 2, 5, 6], [5], (1,)),
        (pa.timestamp("us", "Europe/Berlin"), [1, 2, 5, 6], [5], (1,)),
        (pa.timestamp("ns"), [1, 2, 5, 6], [3], ()),  # nanoseconds are not cut to microseconds
        (INSTANT, [1, 2, 5, 6], [5], (1,)),
        (pa.decimal128(5, 2), [Decimal(n) for n in (-9, -1, 1, 9)], [Decimal("-1.01")], (0,)),
        (pa.decimal256(60, 2), [Decimal(n) for n in (-9, -1, 1, 9)], [Decimal("1.01")], (1,)),
        (pa.decimal64(12, 2), [Decimal(n) for n in (-9, -1, 1, 9)], [Decimal("1.01")], (1,)),
        (pa.bool_(), [False, False, True, True], [True], (1,)),
        (pa.dictionary(pa.int32(), pa.string()), ["a", "b", "c", "d"], ["c"], (1,)),
        (pa.float64(), [1.0, 2.0, 5.0, 6.0], [5.5], (1,)),
        (pa.float32(), [1.0, 2.0, 5.0, 6.0], [5.5], (1,)),
        (pa.float64(), [1.0, 2.0, -0.0, -0.0], [0.0], (1,)),
        (pa.float64(), [1.0, 2.0, 0.0, 0.0], [-0.0], (1,)),
        (pa.float64(), [1.0, NAN, 5.0, 6.0], [NAN], (0, 1)),  # bounds say nothing about NaN
        (pa.float64(), [NAN, NAN, 5.0, 6.0], [1.0], (0,)),  # no bounds at all
        (pa.float16(), [1.0, 2.0, 5.0, 6.0], [9.0], (0, 1)),
        (pa.duration("us"), [1, 2, 5, 6], [9], (0, 1)),
    ],
)
def test_statistics_pruning_excludes_non_overlapping_files(
    type: pa.DataType, values: list[Any], keys: list[Any], expected: tuple[int, ...]
) -> None:
    """Statistics pruning excludes non-overlapping files, for every type of key."""
    assert of_one_column(values, keys, type) == expected


def test_missing_or_inexact_stats_treated_as_unknown_membership() -> None:
    """Missing or inexact stats treated as unknown membership."""
    assert of_one_column([1, 2, 5, 6], [9], write_statistics=False) == (0, 1)
    long = ["x" * 10_000, "y" * 10_000, "zz", "zz"]  # pyarrow leaves such bounds out
    assert of_one_column(long, ["zz"]) == (0, 1)


def test_int96_timestamps_are_not_understood_and_kept() -> None:
    assert of_one_column([1, 2], [9], pa.timestamp("us"), use_deprecated_int96_timestamps=True) == (0,)


@pytest.mark.parametrize("precision", [5, 12, 30])
@pytest.mark.parametrize("as_integer", [True, False])
def test_decimals_of_every_physical_type_and_another_scale(precision: int, as_integer: bool) -> None:
    values = [Decimal("-2.50"), Decimal("-2.25"), Decimal("1.00"), Decimal("1.50")]
    table = pa.table({"k": pa.array(values, pa.decimal128(precision, 2))})
    for scale, key, expected in (
        (4, "-2.3001", (0,)),
        (4, "1.5001", ()),
        (1, "1.5", (1,)),
        (0, "1", (1,)),
        (0, "3", ()),
    ):
        keys = pa.table({"k": pa.array([Decimal(key)], pa.decimal128(38, scale))})
        assert candidates(table, keys, store_decimal_as_integer=as_integer) == expected


@pytest.mark.parametrize(
    ("file_type", "source_type", "values", "keys", "expected"),
    [
        (pa.timestamp("ns"), pa.timestamp("us"), [1_500, 2_500, 9_000, 9_999], [2], (0,)),
        (pa.timestamp("ns"), pa.timestamp("us"), [1_500, 2_500, 9_000, 9_999], [5], ()),
        (pa.timestamp("ms"), pa.timestamp("ns"), [1, 2, 9, 10], [1_500_000], (0,)),
        (pa.timestamp("ms"), pa.timestamp("ns"), [1, 2, 9, 10], [2_000_001], ()),
        (pa.timestamp("us"), pa.timestamp("us", "UTC"), [1, 2, 9, 10], [5], (0, 1)),  # which clock? nobody knows
        (pa.int32(), pa.int64(), [1, 2, 9, 10], [2**40, 9], (1,)),
        (pa.int64(), pa.string(), [1, 2, 9, 10], ["1"], (0, 1)),
        (pa.int64(), pa.float64(), [1, 2, 9, 10], [100.0], (0, 1)),
        (pa.float32(), pa.float64(), [1.0, 2.0, 9.0, 10.0], [9.5], (1,)),
    ],
)
def test_a_file_of_another_type(
    file_type: pa.DataType, source_type: pa.DataType, values: list[Any], keys: list[Any], expected: tuple[int, ...]
) -> None:
    table, source = pa.table({"k": pa.array(values, file_type)}), pa.table({"k": pa.array(keys, source_type)})
    assert candidates(table, source) == expected


def test_a_cut_upper_bound_excludes_nothing_that_begins_with_it() -> None:
    """Nobody says whether a bound was cut, so a cut one is simulated by a file that really holds it."""
    assert of_one_column(["a", "bc"], ["bcd"]) == (0,)
    assert of_one_column(["a", "bc"], ["bd"]) == ()


def test_a_composite_key_must_fit_in_all_columns_at_once() -> None:
    table = pa.table({"a": [1, 5, 6, 9], "b": ["a", "b", "y", "z"]})
    assert candidates(table, pa.table({"a": [2, 7], "b": ["y", "a"]})) == ()
    assert candidates(table, pa.table({"a": [2, 7], "b": ["a", "a"]})) == (0,)
    many = pa.table({"a": [*range(100), 7], "b": ["q"] * 100 + ["y"]})
    assert candidates(table, many) == (1,)
    next_to_it = pa.table({"a": [*range(50), 200], "b": [6] * 50 + [5]})
    assert candidates(pa.table({"a": [0, 100], "b": [5, 5]}), next_to_it) == ()


def test_a_nested_leaf_is_not_the_key() -> None:
    table = pa.table({"s": [{"k": 1}] * 4, "k": [7, 8, 9, 10]})
    assert candidates(table, pa.table({"k": [1]})) == ()
    only_nested = pa.table({"s": pa.array([{"k": 1}] * 2, pa.struct([pa.field("k", pa.int64(), False)]))})
    assert candidates(only_nested, pa.table({"k": [5]})) == (0,)  # the column is nowhere: not for us to say


def test_files_of_several_layouts_are_told_apart() -> None:
    ranges = KeyRanges(pa.table({"k": [5]}))
    required = pa.schema([pa.field("k", pa.int64(), False), pa.field("x", pa.int64(), False)])
    nested_type = pa.struct([pa.field("k", pa.int64(), False), pa.field("x", pa.int64(), False)])
    flat = footer_of(pa.table({"k": [9], "x": [5]}, required))
    swapped = footer_of(pa.table({"x": [9], "k": [5]}))
    nested = footer_of(
        pa.table([pa.array([{"k": 9, "x": 9}], nested_type)], pa.schema([pa.field("s", nested_type, False)]))
    )
    unsigned = footer_of(pa.table({"k": pa.array([5], pa.uint8()), "x": [9]}))
    text = footer_of(pa.table({"k": ["a"], "x": [9]}))
    for _ in range(2):
        for footer, expected in ((flat, ()), (swapped, (0,)), (nested, (0,)), (unsigned, (0,)), (text, (0,))):
            assert ranges.candidate_row_groups(footer, "x", {}) == expected


def test_the_same_place_but_another_type_is_another_layout() -> None:
    """Read as signed, the bounds of the second file would be negative."""
    ranges = KeyRanges(pa.table({"k": [2**31 + 6]}))
    signed = footer_of(pa.table({"k": pa.array([1], pa.int32())}))
    unsigned = footer_of(pa.table({"k": pa.array([2**31 + 5, 2**31 + 7], pa.uint32())}))
    assert ranges.candidate_row_groups(signed, "x", {}) == ()
    assert ranges.candidate_row_groups(unsigned, "x", {}) == (0,)


def test_key_columns_in_the_folder_name_are_compared_exactly() -> None:
    """Partition pruning reduces candidate files where the partition column is a part of the key."""
    table = pa.table({"id": [1, 2, 5, 6]})
    keys = pa.table({"day": pa.array([date(2026, 1, 1), date(2026, 1, 3)]), "id": [5, 1]})
    assert candidates(table, keys, partition={"day": date(2026, 1, 1)}) == (1,)
    assert candidates(table, keys, partition={"day": date(2026, 1, 3)}) == (0,)
    assert candidates(table, keys, partition={"day": date(2026, 1, 2)}) == ()
    assert candidates(table, keys, partition={"day": None}) == ()
    assert candidates(table, keys, partition={"other": 1}) == (0, 1)
    assert candidates(table, keys, partition={"day": "no date"}) == (0, 1)


def test_only_the_partition_is_the_key() -> None:
    table = pa.table({"v": [1, 2, 3]})
    assert candidates(table, pa.table({"day": ["a"]}), partition={"day": "a"}) == (0, 1)
    assert candidates(table, pa.table({"day": ["a"]}), partition={"day": "b"}) == ()
    ns = pa.table({"t": pa.array([1, 2], pa.timestamp("ns"))})
    assert candidates(table, ns, partition={"t": 1}) == (0, 1)
    assert candidates(table, ns, partition={"t": 3}) == ()


def test_row_groups_and_sources_without_rows() -> None:
    assert of_one_column([], [1], pa.int64()) == ()
    assert of_one_column([1], [], pa.int64()) == ()
    assert of_one_column([1], [None], pa.int64()) == ()


class OddStatistics:
    """A footer whose statistics cannot be had, or make no sense."""

    num_row_groups, num_rows, has_min_max, has_null_count, null_count = 1, 10, True, False, 0
    bloom_filter_offset = None

    def __init__(self, footer: pq.FileMetaData, low: Any, high: Any) -> None:
        self.schema, self.min_raw, self.max_raw = footer.schema, low, high

    def row_group(self, _: int) -> OddStatistics:
        return self

    column = row_group

    @property
    def statistics(self) -> OddStatistics:
        if self.min_raw == "broken":
            raise OSError("cannot decrypt")
        return self


@pytest.mark.parametrize(("low", "high"), [("broken", 0), (NAN, 1.0), (1.0, NAN), (2.0, 1.0), (None, 1.0), (b"x", 1.0)])
def test_odd_statistics_prove_nothing(low: Any, high: Any) -> None:
    footer = OddStatistics(footer_of(pa.table({"k": [1.0]})), low, high)
    assert KeyRanges(pa.table({"k": [50.0]})).candidate_row_groups(footer, "x", {}) == (0,)
    sane = OddStatistics(footer_of(pa.table({"k": [1.0]})), 1.0, 2.0)
    assert KeyRanges(pa.table({"k": [50.0]})).candidate_row_groups(sane, "x", {}) == ()


BYTES = st.binary(max_size=4)
TEXT = st.text(st.sampled_from("aéz\u0000\U0001f600b"), max_size=4)
COLUMNS: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.int8(), st.integers(-(2**7), 2**7 - 1)),
    (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    (pa.uint16(), st.integers(0, 2**16 - 1)),
    (pa.uint32(), st.integers(0, 2**32 - 1)),
    (pa.uint64(), st.integers(0, 2**64 - 1)),
    (pa.float32(), st.floats(width=32)),
    (pa.float64(), st.floats() | st.sampled_from([0.0, -0.0, math.inf, NAN])),
    (pa.float16(), st.floats(width=16, allow_nan=False)),
    (pa.bool_(), st.booleans()),
    (pa.string(), TEXT),
    (pa.large_string(), TEXT),
    (pa.dictionary(pa.int16(), pa.string()), TEXT),
    (pa.binary(), BYTES),
    (pa.binary(3), st.binary(min_size=3, max_size=3)),
    (pa.date32(), st.dates()),
    (pa.date64(), st.dates()),
    (pa.time32("ms"), st.integers(0, 86_399_999)),
    (pa.time64("ns"), st.integers(0, 86_399_999_999_999)),
    (pa.timestamp("s"), st.integers(-(10**10), 10**10)),
    (pa.timestamp("us", "UTC"), st.integers(-(10**15), 10**15)),
    (pa.timestamp("ns"), st.integers(-(2**63), 2**63 - 1)),
    (pa.decimal128(5, 2), st.decimals(-999, 999, places=2)),
    (pa.decimal128(38, 10), st.decimals(-(10**27), 10**27, places=10)),
    (pa.decimal256(60, 3), st.decimals(-(10**50), 10**50, places=3)),
]


@st.composite
def files_and_keys(draw: st.DrawFn) -> tuple[pa.Table, pa.Table, set[int], dict[str, Any]]:
    """A file, the keys of some of its rows and of others, the row groups that hold them, and how to write it."""
    columns = draw(st.lists(st.sampled_from(COLUMNS), min_size=1, max_size=3))
    row = st.tuples(*(st.none() | values for _, values in columns))
    rows = draw(st.lists(row, min_size=1, max_size=24))
    wanted = draw(st.lists(st.integers(0, len(rows) - 1), max_size=4, unique=True))
    wanted = [i for i in wanted if None not in rows[i]]
    strangers = draw(st.lists(st.tuples(*(values for _, values in columns)), max_size=4))
    size = draw(st.integers(1, 10))
    names = [f"k{i}" for i in range(len(columns))]

    def table(of: list[Any]) -> pa.Table:
        arrays = [pa.array([r[i] for r in of], type) for i, (type, _) in enumerate(columns)]
        return pa.table(arrays, names=names)

    keys = table([rows[i] for i in wanted] + strangers)
    options = {
        "row_group_size": size,
        "write_statistics": draw(st.sampled_from([True, True, False, names[:1]])),
        "store_decimal_as_integer": draw(st.booleans()),
        "use_dictionary": draw(st.booleans()),
        "version": draw(st.sampled_from(["1.0", "2.4", "2.6"])),
        "coerce_timestamps": None,
    }
    return table(rows), keys, {i // size for i in wanted}, options


@settings(max_examples=300, deadline=None)
@given(files_and_keys())
@example((pa.table({"k0": [-0.0]}), pa.table({"k0": [0.0]}), {0}, {}))
def test_a_row_group_with_a_source_key_is_never_pruned(
    case: tuple[pa.Table, pa.Table, set[int], dict[str, Any]],
) -> None:
    table, keys, holding, options = case
    try:
        footer = footer_of(table, **options)
    except pa.ArrowInvalid:  # nanoseconds do not always fit into the older formats
        footer = footer_of(table, **{**options, "version": "2.6"})
    found = set(KeyRanges(keys).candidate_row_groups(footer, "x", {}))
    assert holding <= found
    groups = [footer.row_group(g) for g in range(footer.num_row_groups)]
    bounds = ParquetFileMetadata("x", len(groups), table.num_rows, stats_of(footer))
    assert not holding or ConservativeMembershipChecker().file_might_contain_keys(bounds, keys.column_names, keys)


def stats_of(footer: pq.FileMetaData) -> dict[str, Any]:
    from lockgate.merging.column_statistics import column_statistics

    return {footer.schema.column(i).name: column_statistics(footer, i) for i in range(len(footer.schema))}


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1, max_size=40), st.data())
def test_composite_pruning_is_exact_about_ranges(rows: list[tuple[int, int]], data: st.DataObject) -> None:
    """Against a plain loop: a row group is a candidate where a source row is within all bounds, and only there."""
    source = data.draw(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=8))
    source += source[:2] * data.draw(st.sampled_from([0, 20]))  # enough to be compared by Arrow, not by a loop

    size = data.draw(st.integers(1, 8))
    table = pa.table({"a": [a for a, _ in rows], "b": [b for _, b in rows]})
    keys = pa.table(
        {"a": pa.array([a for a, _ in source], pa.int64()), "b": pa.array([b for _, b in source], pa.int64())}
    )
    expected = []
    for number, start in enumerate(range(0, len(rows), size)):
        a, b = zip(*rows[start : start + size], strict=True)
        if any(min(a) <= x <= max(a) and min(b) <= y <= max(b) for x, y in source):
            expected.append(number)
    assert candidates(table, keys, size=size) == tuple(expected)


def described(path: str, partition: dict[str, Any] | None, **stats: tuple[Any, Any]) -> ParquetFileMetadata:
    bounds = {c: {"min": low, "max": high, "null_count": 0} for c, (low, high) in stats.items()}
    return ParquetFileMetadata(path, 1, 10, bounds, partition)


def test_partition_pruning_with_single_and_multi_column_partitions() -> None:
    """Partition pruning reduces candidate files; unknown partition values are not pruned."""
    days = [described(f"{d}", {"day": d}) for d in ("2025-01-01", "2025-01-02")] + [described("?", None)]
    pruner = PartitionPruner()
    for day in (["2025-01-01"], [date(2025, 1, 1)]):
        source = pa.table({"id": [1], "day": day})
        assert pruner.identify_candidate_files(days, ["id"], source) == ["2025-01-01", "?"]
    assert pruner.identify_candidate_files(days, ["id"], [1, 2]) == ["2025-01-01", "2025-01-02", "?"]
    assert pruner.identify_candidate_files(days, ["day"], ["2025-01-02"]) == ["2025-01-02", "?"]
    months = [described(f"{y}-{m}", {"year": str(y), "month": f"{m:02d}"}) for y in (2024, 2025) for m in (1, 2)]
    months.append(described("2025-?", {"year": "2025"}))
    source = pa.table({"id": [1, 2], "year": [2024, 2025], "month": [2, 1]})
    assert pruner.identify_candidate_files(months, ["id"], source) == ["2024-2", "2025-1", "2025-?"]


def test_partition_pruning_with_a_schema_dates_zeros_and_null() -> None:
    files = [described(str(v), {"p": v}) for v in ("007", "8", None, "no number")]
    schema = pa.schema([("p", pa.int32())])
    source = pa.table({"id": [1, 2], "p": ["7", None]})
    found = PartitionPruner().identify_candidate_files(files, ["id"], source, schema)
    assert found == ["007", "None", "no number"]  # the last is of another type, so it is not known


@pytest.mark.parametrize(
    ("bounds", "keys", "expected"),
    [
        ((10, 20), [5, 25], False),
        ((10, 20), [5, 15], True),
        ((10, 20), [10], True),
        ((10, 20), [None], False),
        ((10, 20), [], False),
        ((10, 20), ["15"], True),  # of another type: not for us to say
        ((None, None), [5], True),
        ((1.0, NAN), [5.0], True),
        ((1.0, 2.0), [NAN], True),
        ((0.0, 0.0), [-0.0], True),
        (("a", "bc"), ["bcd"], True),  # the upper bound may have been cut
        (("a", "bc"), ["c"], False),
        ((Decimal("1.5"), Decimal("2.5")), [2], True),
        ((Decimal("1.5"), Decimal("2.5")), [4], False),
        ((datetime(2026, 1, 1), datetime(2026, 1, 2)), [datetime(2026, 1, 3)], False),
        ((datetime(2026, 1, 1), datetime(2026, 1, 2)), [datetime(2026, 1, 3, tzinfo=UTC)], True),
    ],
)
def test_conservative_membership_checking_edge_cases(bounds: Any, keys: list[Any], expected: bool) -> None:
    checker = ConservativeMembershipChecker()
    assert checker.file_might_contain_keys(described("x", None, id=bounds), ["id"], keys) is expected


def test_membership_of_tuples_dicts_tables_and_columns_without_statistics() -> None:
    file = described("x", None, a=(1, 5), b=("a", "c"))
    check = ConservativeMembershipChecker().file_might_contain_keys
    assert check(file, ["a", "b"], [(1, "b"), (9, "z")])
    assert not check(file, ["a", "b"], [(1, "z"), (9, "b")])
    assert not check(file, ["a", "b"], [{"a": 1, "b": "z"}, {"b": "b", "a": 9}])
    table = pa.table({"a": [9], "b": ["b"]})
    assert not check(file, ["a", "b"], table)
    assert not check(file, ["a", "b"], table)
    assert not check(file, ["a"], pa.array([9]))
    assert check(file, ["c"], [1])
    assert check(file, ["a", "c"], [(1, 1)])
    assert not check(file, ["a", "c"], [(9, 1)])
    all_null = ParquetFileMetadata("x", 1, 10, {"a": {"min": None, "max": None, "null_count": 10}})
    assert not check(all_null, ["a"], [1])
    assert not check(ParquetFileMetadata("x", 0, 0, {}), ["a"], [1])
