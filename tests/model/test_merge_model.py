"""Random histories of a dataset: every implementation gives the rows and the counts of the oracle."""

from __future__ import annotations

import math
import shutil
import tempfile
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from contracts.engine.dataset import as_multiset, data_files, folder_state, rows_of
from lockgate import DuplicateKeyError, MergeResult, NullKeyError, PartitionMoveError, merge, write_dataset
from lockgate.engines import spark_computed, spark_source
from model.oracle import Outcome, Row, WouldMove, key_of, merged

AT_LEAST = 2_000  # merges in one run

# a merge syncs all it writes, and a disk would take most of the time
MEMORY = "/dev/shm" if Path("/dev/shm").is_dir() else None

IMPLEMENTATIONS: dict[str, Mapping[str, Any]] = {
    "arrow": {"engine": "arrow"},
    "duckdb-merge": {"engine": "duckdb", "use_merge": True},
    "duckdb-union": {"engine": "duckdb", "use_merge": False},
}

# Few values, so that keys meet; odd ones, so that they meet where engines differ.
DOMAINS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int": (pa.int64(), [-1, 0, 1, 2, 3, 5, 8, 2**31 - 1]),
    "string": (pa.string(), ["", "a", "A", "a ", "é", "e\u0301", "日本", "it's"]),
    "float": (pa.float64(), [0.0, -0.0, math.nan, 1.5, -2.25, math.inf, 1e300]),
    "date": (pa.date32(), [date(1, 1, 1), date(1970, 1, 1), date(2026, 2, 28), date(9999, 12, 31)]),
}
KEYS = {"int": ("int",), "string": ("string",), "float": ("float",), "date": ("date",), "both": ("int", "string")}
PARTITIONS = ["p", "q r", "é/%", None]
CODECS = ["snappy", "zstd", "gzip", "none"]


class MergeModel(RuleBasedStateMachine):
    """One list of rows, and the same dataset once for every implementation."""

    implementations: ClassVar[Mapping[str, Mapping[str, Any]]] = IMPLEMENTATIONS
    connection: ClassVar[Any]
    merges: ClassVar[int] = 0
    fewest_rows: ClassVar[int] = 0  # that are written or merged at once

    def __init__(self) -> None:
        super().__init__()
        self.base = Path(tempfile.mkdtemp(prefix="lockgate-model-", dir=MEMORY))
        self.roots = {name: self.base / name for name in self.implementations}
        self.rows: list[Row] = []
        self.files = 0

    @initialize(kind=st.sampled_from(sorted(KEYS)), partition=st.sampled_from(["none", "beside the key", "in the key"]))
    def shape(self, kind: str, partition: str) -> None:
        self.key_types = {f"k{i}": DOMAINS[domain] for i, domain in enumerate(KEYS[kind])}
        self.partition = None if partition == "none" else "day"
        self.keys = [*self.key_types, *(["day"] if partition == "in the key" else [])]
        fields = [(name, type_) for name, (type_, _) in self.key_types.items()]
        fields += [("n", pa.int64()), ("x", pa.string()), ("y", pa.float64())]
        self.schema = pa.schema(fields + ([("day", pa.string())] if self.partition else []))

    def teardown(self) -> None:
        shutil.rmtree(self.base)

    # what hypothesis draws

    def some_rows(self, data: st.DataObject, *, null_keys: bool, at_most: int) -> list[Row]:
        columns: dict[str, st.SearchStrategy[Any]] = {
            name: st.sampled_from([*values, None] if null_keys else values)
            for name, (_, values) in self.key_types.items()
        }
        columns["n"] = st.sampled_from([None, 0, 1, 2])
        columns["x"] = st.sampled_from([None, "", "u", "v"])
        columns["y"] = st.sampled_from([None, 0.0, 1.0, math.nan])
        if self.partition:
            null_allowed = null_keys or "day" not in self.keys
            columns["day"] = st.sampled_from(PARTITIONS if null_allowed else PARTITIONS[:-1])
        return data.draw(
            st.lists(st.fixed_dictionaries(columns), min_size=self.fewest_rows, max_size=at_most), label="rows"
        )

    def with_unique_keys(self, rows: list[Row]) -> list[Row]:
        return list({key_of(row, self.keys): row for row in rows}.values())

    def as_table(self, data: st.DataObject, rows: list[Row]) -> pa.Table:
        """Columns in any order, in any number of chunks, whole numbers perhaps narrower than the dataset's."""
        table = pa.Table.from_pylist(rows, self.schema)
        table = table.select(data.draw(st.permutations(table.column_names), label="columns"))
        cut = data.draw(st.integers(0, len(rows)), label="cut")
        table = pa.concat_tables([table.slice(0, cut), table.slice(cut)])
        if self.schema.field("k0").type == pa.int64() and data.draw(st.booleans(), label="narrow keys"):
            at = table.schema.get_field_index("k0")
            table = table.set_column(at, "k0", table.column(at).cast(pa.int32()))
        return table

    # what happens to the dataset

    @rule(data=st.data(), size=st.sampled_from([1, 3, 100]), codec=st.sampled_from([None, *CODECS]))
    def append_through_write_dataset(self, data: st.DataObject, size: int, codec: str | None) -> None:
        rows = self.some_rows(data, null_keys=True, at_most=8)
        table = self.as_table(data, rows)
        for root in self.roots.values():
            result = write_dataset(
                table, root, partition_by=self.partition, max_rows_per_file=size, compression=codec, row_group_size=2
            )
            assert result.total_rows == len(rows)
        self.rows = self.rows + rows

    @rule(
        data=st.data(),
        codec=st.sampled_from(CODECS),
        statistics=st.booleans(),
        size=st.sampled_from([1, 2, 1000]),
        arrow_schema=st.booleans(),
    )
    def append_a_file_of_somebody_else(
        self, data: st.DataObject, codec: str, statistics: bool, size: int, arrow_schema: bool
    ) -> None:
        rows = self.some_rows(data, null_keys=True, at_most=8)
        folder = ""
        if self.partition:
            day = data.draw(st.sampled_from(PARTITIONS), label="folder")
            rows = [row | {"day": day} for row in rows]
            folder = f"day={'__HIVE_DEFAULT_PARTITION__' if day is None else quote(day, safe=' ')}/"
        table = self.as_table(data, rows)
        if self.partition:
            table = table.drop_columns(["day"])
        self.files += 1
        for root in self.roots.values():
            path = root / f"{folder}hand-{self.files:03}.parquet"
            path.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(
                table,
                path,
                compression=codec,
                write_statistics=statistics,
                row_group_size=size,
                store_schema=arrow_schema,
            )
        self.rows = self.rows + rows

    @rule(data=st.data())
    def insert(self, data: st.DataObject) -> None:
        self.merge(data, "insert")

    @rule(data=st.data())
    def update(self, data: st.DataObject) -> None:
        self.merge(data, "update")

    @rule(data=st.data())
    def upsert(self, data: st.DataObject) -> None:
        self.merge(data, "upsert")

    @rule(data=st.data())
    def full_merge(self, data: st.DataObject) -> None:
        self.merge(data, "full_merge")

    @rule(data=st.data(), order=st.sampled_from([None, ("n", False), ("n", True)]))
    def deduplicate(self, data: st.DataObject, order: tuple[str, bool] | None) -> None:
        self.merge(data, "deduplicate", order)

    @rule(data=st.data(), strategy=st.sampled_from(["insert", "update", "upsert", "full_merge"]))
    def merge_what_must_be_refused(self, data: st.DataObject, strategy: str) -> None:
        rows = self.some_rows(data, null_keys=True, at_most=6)
        keys = [key_of(row, self.keys) for row in rows]
        if None in keys:
            expected: type[Exception] = NullKeyError
        elif len(set(keys)) < len(keys):
            expected = DuplicateKeyError
        else:
            return
        table = self.as_table(data, rows)
        for name, root in self.roots.items():
            before = self.state_of(root)
            with pytest.raises(expected):
                self.run(name, table, strategy)
            assert self.state_of(root) == before

    def state_of(self, root: Path) -> dict[str, Any]:
        return folder_state(root)

    # how a merge is compared with the oracle

    def merge(self, data: st.DataObject, strategy: str, order: tuple[str, bool] | None = None) -> None:
        rows = self.some_rows(data, null_keys=False, at_most=10)
        if strategy != "deduplicate":
            rows = self.with_unique_keys(rows)
        table = self.as_table(data, rows)
        flags = {name: data.draw(st.booleans(), label=name) for name in ("skip_unchanged", "allow_partition_moves")}
        options = flags | {"max_rows_per_file": data.draw(st.sampled_from([1, 2, 1000]), label="max_rows_per_file")}
        if order is not None:
            options["order_by"] = f"{order[0]} {'DESC' if order[1] else 'ASC'}"
        try:
            outcome = merged(self.rows, rows, strategy, self.keys, partition=self.partition, order=order, **flags)
        except WouldMove:
            for name in self.roots:
                with pytest.raises(PartitionMoveError):
                    self.run(name, table, strategy, **options)
            return
        dry_run = data.draw(st.sampled_from([False, False, True]), label="dry run")
        for name in self.roots:
            if dry_run:
                self.compare(self.run(name, table, strategy, dry_run=True, **options), outcome, len(rows))
            else:
                self.compare(self.run(name, table, strategy, **options), outcome, len(rows))
        if not dry_run:
            self.rows = outcome.rows

    def run(self, name: str, table: Any, strategy: str, **options: Any) -> MergeResult:
        MergeModel.merges += 1
        return merge(
            table,
            self.roots[name],
            strategy=strategy,
            key_columns=self.keys,
            partition_by=self.partition,
            connection=self.connection,
            **self.implementations[name],
            **options,
        )

    def compare(self, result: MergeResult, outcome: Outcome, given: int) -> None:
        assert (result.inserted, result.updated, result.deleted) == (
            outcome.inserted,
            outcome.updated,
            outcome.deleted,
        )
        assert (result.target_count_before, result.target_count_after) == (len(self.rows), len(outcome.rows))
        assert (result.source_count, result.deduplicated) == (given, outcome.deduplicated)

    @invariant()
    def every_implementation_has_the_rows_of_the_oracle(self) -> None:
        expected = as_multiset(self.rows)
        for name, root in self.roots.items():
            found = as_multiset(row for file in data_files(root) for row in rows_of(file, root))
            assert found == expected, name

    @invariant()
    def nothing_is_left_behind(self) -> None:
        for root in self.roots.values():
            hidden = {path.name for path in root.rglob(".*")} if root.exists() else set()
            assert hidden <= {".lockgate_lock"}


def play(model: type[MergeModel], *, steps: int = 25, **options: Any) -> None:
    with duckdb.connect() as MergeModel.connection:
        run_state_machine_as_test(
            model,
            settings=settings(
                stateful_step_count=steps,
                derandomize=True,  # the same histories every time: a failure is a failure for everybody
                deadline=None,
                print_blob=True,
                suppress_health_check=list(HealthCheck),
                **options,
            ),
        )


def test_every_implementation_agrees_with_the_oracle() -> None:
    MergeModel.merges = 0
    play(MergeModel, max_examples=45, phases=(Phase.generate, Phase.shrink))
    assert MergeModel.merges >= AT_LEAST


class LosesARow(MergeModel):
    """An implementation with a fault: of four source rows it takes three."""

    def run(self, name: str, table: pa.Table, strategy: str, **options: Any) -> MergeResult:
        lost = name == "arrow" and table.num_rows == 4
        return super().run(name, table.slice(1) if lost else table, strategy, **options)


def test_a_fault_would_be_found() -> None:
    with pytest.raises(AssertionError):
        play(LosesARow, max_examples=20, phases=(Phase.generate,))


class SparkModel(MergeModel):
    """The same histories on Spark, where a merge takes a second. A source comes as a table or as a DataFrame, and some
    are said to be too large for their keys to be collected."""

    implementations = {"spark": {"engine": "spark"}}
    session: ClassVar[Any]
    most: ClassVar[int] = 3  # merges in one history
    fewest_rows = 1

    def __init__(self) -> None:
        super().__init__()
        self.done = 0

    def as_table(self, data: st.DataObject, rows: list[Row]) -> pa.Table:
        self.how = data.draw(st.sampled_from(["a table", "a frame", "joined", "joined, large"]), label="how")
        return super().as_table(data, rows)

    def merge(self, data: st.DataObject, strategy: str, order: tuple[str, bool] | None = None) -> None:
        if self.done < self.most and (self.rows or strategy != "update"):
            self.done += 1
            super().merge(data, strategy, order)

    def state_of(self, root: Path) -> dict[str, Any]:
        """Files alone: a DataFrame's rows are staged in the folder before they can be checked, so its time changes."""
        return {name: state for name, state in folder_state(root).items() if isinstance(state, tuple)}

    def run(self, name: str, table: Any, strategy: str, **options: Any) -> MergeResult:
        source = table if self.how == "a table" else self.session.createDataFrame(table)
        with pytest.MonkeyPatch.context() as patch:
            if self.how.startswith("joined"):
                patch.setattr(spark_computed, "ROWS_BROUGHT", -1)
            if self.how.endswith("large"):
                patch.setattr(spark_source, "_KEYS_COLLECTED", 0)
            return super().run(name, source, strategy, spark=self.session, **options)


class LongSparkModel(SparkModel):
    most = 25
    fewest_rows = 0


def play_on_spark(model: type[SparkModel], session: Any, **options: Any) -> int:
    MergeModel.merges = 0
    SparkModel.session = session
    play(model, phases=(Phase.generate,), **options)
    return MergeModel.merges


def test_spark_agrees_with_the_oracle(spark: Any) -> None:
    assert play_on_spark(SparkModel, spark, max_examples=8, steps=6) >= 8


@pytest.mark.slow
def test_spark_agrees_with_the_oracle_for_long(spark: Any) -> None:
    assert play_on_spark(LongSparkModel, spark, max_examples=40) >= 400
