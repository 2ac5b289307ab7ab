"""The same for a Delta table: files are added to its log by hand, and deltalake reads what a merge has made of it."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
import pyarrow.parquet as pq

from contracts.engine.dataset import Dataset, Row
from lockgate import MergeResult, TxnLogWriter
from lockgate.storage.local import LocalStorage
from lockgate.tables.merging import merge_table
from lockgate.tables.writable import Writable
from lockgate.targets.delta_actions import first_actions
from lockgate.txlog.actions import Add
from lockgate.txlog.paths import as_uri, from_uri

NAME = "contract"


class DeltaDataset(Dataset):
    @cached_property
    def log(self) -> TxnLogWriter:
        opened = TxnLogWriter.open(f"sqlite:///{self.root.parent}/log.db", publish=False)
        opened.create_table(NAME, str(self.root))
        return opened

    @property
    def version(self) -> int:
        return self.log.current_version(NAME)

    def add(self, name: str, table: pa.Table, **options: Any) -> Path:
        """A file as somebody else wrote it, of which the log knows no statistics."""
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(table, path, **options)
        schema = [] if self.version >= 0 else first_actions(table.schema, ())
        self.log.commit(NAME, None, [*schema, Add(as_uri(name), {}, path.stat().st_size, 0)])
        return path

    def merge(self, source: Any, strategy: str = "upsert", key: Any = "id", **options: Any) -> MergeResult:
        source = self.prepared(source) if self.prepared else source
        table = Writable(NAME, self.root, self.log, LocalStorage())
        return merge_table(table, source, strategy=strategy, key_columns=key, **{**self.implementation, **options})

    def files(self) -> list[Path]:
        if self.version < 0:
            return []
        paths = self.log.snapshot(NAME).files.column("path").to_pylist()
        return sorted(self.root / from_uri(path) for path in paths)

    def rows(self) -> list[Row]:
        if self.version < 0:
            return []
        self.log.publish(NAME)
        read = deltalake.DeltaTable(str(self.root))
        assert read.version() == self.version
        return read.to_pyarrow_table().to_pylist()

    def contents(self) -> dict[str, Any]:
        """What the table has; a merge that fails may leave nothing else either."""
        data = {str(p) for p in self.root.rglob("*.parquet") if "_delta_log" not in p.parts}
        live = {str(p) for p in self.files()}
        return {"version": self.version, "files": live, "others": data - live}

    def state(self) -> dict[str, Any]:
        return self.contents()
