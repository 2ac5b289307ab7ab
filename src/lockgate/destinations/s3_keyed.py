"""UPSERT, INSERT, UPDATE, FULL_MERGE and DEDUPLICATE into Parquet objects below a prefix.

While staging, the merge is decided on the staged rows and on the dataset as it is, so that rows that cannot be merged
are refused before anything is published. It is done while publishing, when the dataset is held.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from lockgate.destinations.keyed_records import Wanted
from lockgate.destinations.parquet_keyed import ParquetKeyedDestination
from lockgate.destinations.protocol import Complaint, ExportRequest, Layout, Outcome, Prepared, StagedRows, Surroundings
from lockgate.destinations.s3_append import discard, done_before, is_decided, target_of
from lockgate.destinations.s3_place import connection_of, inner_request, staging_folder, storage_for
from lockgate.errors import PublishError
from lockgate.storage.s3_address import parse_address
from lockgate.storage.staging import StagingArea
from lockgate.targets.s3_folder import OpenS3Folder, S3Folder


class S3KeyedDestination:
    type = "PARQUET"

    def __init__(self) -> None:
        self._local = ParquetKeyedDestination()

    def problems(self, request: ExportRequest) -> list[Complaint]:
        found = self._local.problems(inner_request(request, self.type))
        if str(request.options.get("engine", "")).lower() == "spark":
            message = "option 'engine' cannot be spark on S3, where Spark's workers cannot open the files"
            found.append(Complaint("options", "bad-option", message, "arrow, duckdb or auto"))
        return found

    def layout(self, request: ExportRequest) -> Layout:
        return self._local.layout(inner_request(request, self.type))

    def staging_place(self, request: ExportRequest) -> Path:
        return staging_folder(request.project)

    def stage(self, request: ExportRequest, area: StagingArea, rows: StagedRows) -> Prepared:
        import pyarrow.parquet as pq

        for part in rows.parts:
            area.storage.fsync_file(part)
        area.storage.fsync_folder(rows.root)
        connection = connection_of(request)
        prepared = Prepared(
            destination=request.destination,
            type=request.type,
            mode=request.mode,
            staging=str(area.path),
            rows=sum(pq.read_metadata(part).num_rows for part in rows.parts),
            bytes=sum(part.stat().st_size for part in rows.parts),
            instructions={
                "format": self.type,
                "connection": connection,
                "id": f"{request.run}-{request.number}",
                "rows": rows.root.name,
                "merge": asdict(Wanted.by(inner_request(request, self.type))),
            },
        )
        s3 = storage_for(request.profile.connections, connection, area.storage)
        target = S3Folder(parse_address(request.destination), s3)
        if target.is_unfinished():
            with target.opened(prepared.instructions["id"]):
                pass  # opening it finishes what was decided
        with target.opened(prepared.instructions["id"], dry_run=True) as opened:
            _merge(prepared, opened, dry_run=True)
        return prepared

    def publish(self, prepared: Prepared, around: Surroundings) -> Outcome:
        with target_of(prepared, around).opened(prepared.instructions["id"]) as opened:
            if (done := done_before(prepared, opened)) is not None:
                return done
            if not Path(prepared.staging).is_dir():
                raise PublishError(
                    f"what was staged for {prepared.destination} is gone: {prepared.staging}",
                    hint="run the pipeline again",
                )
            outcome, moves, removes = _merge(prepared, opened, dry_run=False)
            opened.commit(
                moves, removes, note=asdict(outcome)
            )  # also where nothing changes: the journal says it was done
            return outcome

    def is_decided(self, prepared: Prepared, around: Surroundings) -> bool:
        return is_decided(prepared, around)

    def discard(self, prepared: Prepared, around: Surroundings) -> None:
        discard(prepared, around)


def _merge(
    prepared: Prepared, opened: OpenS3Folder, *, dry_run: bool
) -> tuple[Outcome, Mapping[str, Path], tuple[str, ...]]:
    """The merge of the staged rows, as far as staging its files."""
    from lockgate.datasets.on_s3 import staged_on_s3
    from lockgate.destinations.keyed_merge import advice_for_pipelines
    from lockgate.merging.driver import MergeRequest
    from lockgate.merging.source import load_source
    from lockgate.merging.strategy import MergeStrategy
    from lockgate.merging.table_source import TableSource

    wanted = Wanted.from_json(_as_read(prepared.instructions["merge"]))
    request = MergeRequest(
        strategy=MergeStrategy(wanted.strategy),
        key_columns=wanted.key_columns,
        identity=prepared.instructions["id"],
        partition_by=wanted.partition_by,
        schema=wanted.schema,
        order_by=wanted.order_by,
        skip_unchanged=wanted.skip_unchanged,
        allow_partition_moves=wanted.allow_partition_moves,
        dry_run=dry_run,
        compression=wanted.compression,
        max_rows_per_file=wanted.max_rows_per_file,
        shown_root=str(opened.address),
    )
    # Not with what Spark says of the schema of its rows: that would not be true of the files that they go to.
    rows = load_source(Path(prepared.staging) / prepared.instructions["rows"]).replace_schema_metadata(None)
    with advice_for_pipelines():
        staged, engine = staged_on_s3(TableSource(rows), opened, wanted.engine, request)
    done = staged.result
    outcome = Outcome(
        inserted=done.inserted,
        updated=done.updated,
        deleted=done.deleted,
        files={
            "rewritten": len(done.rewritten_files),
            "added": len(done.inserted_files),
            "preserved": len(done.preserved_files),
        },
        paths=tuple(str(opened.address.inside(name)) for name in staged.moves),
        engine=engine,
    )
    return outcome, staged.moves, tuple(staged.removes)


def _as_read(record: Mapping[str, Any]) -> dict[str, Any]:
    """As it comes back from the record of the run, where a tuple is a list."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in record.items()}
