"""One Parquet file. A single staged part becomes the file as it is; several are streamed into one, in order."""

from __future__ import annotations

from pathlib import Path

from lockgate.destinations.one_file import OneFileDestination
from lockgate.destinations.options import Option
from lockgate.destinations.protocol import ExportRequest, Layout, StagedRows
from lockgate.storage.local import LocalStorage

COMPRESSION = Option(str, choices=("none", "snappy", "gzip", "zstd", "lz4"))
ROW_GROUP_ROWS = 500_000


class ParquetFileDestination(OneFileDestination):
    type = "PARQUET"
    options = {"compression": COMPRESSION}

    def layout(self, request: ExportRequest) -> Layout:
        return Layout(compression=request.options.get("compression", "snappy").lower(), max_rows_per_file=0)

    def write(self, request: ExportRequest, rows: StagedRows, file: Path, storage: LocalStorage) -> int:
        import pyarrow.parquet as pq

        if len(rows.parts) == 1:
            storage.replace(rows.parts[0], file)
            storage.fsync_file(file)
            return int(pq.read_metadata(file).num_rows)

        count = 0
        with pq.ParquetFile(rows.parts[0]) as first:
            schema = first.schema_arrow
        with storage.create(file) as raw:
            with pq.ParquetWriter(raw, schema, compression=self.layout(request).compression) as writer:
                for part in rows.parts:
                    with pq.ParquetFile(part) as source:
                        for batch in source.iter_batches(batch_size=ROW_GROUP_ROWS):
                            writer.write_batch(batch, row_group_size=ROW_GROUP_ROWS)
                            count += batch.num_rows
        return count
