"""A PostgreSQL table as a destination: rows by binary COPY into a staging table, then one transaction."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from lockgate.config import STATE_FOLDER
from lockgate.destinations import postgres_options
from lockgate.destinations.options import Option
from lockgate.destinations.postgres_options import Wanted
from lockgate.destinations.protocol import Complaint, ExportRequest, Layout, Outcome, Prepared, StagedRows, Surroundings
from lockgate.errors import PublishError, StageError
from lockgate.storage.staging import StagingArea

if TYPE_CHECKING:
    from lockgate.destinations.postgres_publish import Publication

_NOTHING = "nothing was written"


class PostgresDestination:
    type = "POSTGRES"
    options: Mapping[str, Option] = postgres_options.OPTIONS

    def problems(self, request: ExportRequest) -> list[Complaint]:
        return postgres_options.problems(request)

    def layout(self, request: ExportRequest) -> Layout:
        del request
        return Layout()

    def staging_place(self, request: ExportRequest) -> Path:
        return Path(request.project, STATE_FOLDER, "staging").resolve()

    def stage(self, request: ExportRequest, area: StagingArea, rows: StagedRows) -> Prepared:
        import pyarrow.parquet as pq

        from lockgate.destinations.postgres_inspection import examine, labels_of
        from lockgate.destinations.postgres_parsing import parsed, refuse_unreadable
        from lockgate.destinations.postgres_rows import check_rows, staged_schema
        from lockgate.destinations.postgres_session import session

        for part in rows.parts:
            area.storage.fsync_file(part)
        area.storage.fsync_folder(rows.root)
        wanted = Wanted.by(request)
        with _explained(wanted), session(request.profile, wanted.connection) as opened:
            columns, table = examine(opened, wanted, staged_schema(rows.parts))
            labels = labels_of(opened, columns)
        check_rows(
            rows.parts,
            columns,
            labels,
            unique_keys=wanted.keyed and wanted.mode != "DEDUPLICATE",
            lenient_nulls=table is not None and table.fills_rows,
        )
        if doubtful := parsed(columns):
            with _explained(wanted), session(request.profile, wanted.connection) as opened:
                refuse_unreadable(opened, rows.parts, doubtful)
        return Prepared(
            destination=request.destination,
            type=request.type,
            mode=request.mode,
            staging=str(area.path),
            rows=sum(pq.read_metadata(part).num_rows for part in rows.parts),
            bytes=sum(part.stat().st_size for part in rows.parts),
            instructions={
                "wanted": asdict(wanted),
                "parts": [part.relative_to(area.path).as_posix() for part in rows.parts],
            },
        )

    def publish(self, prepared: Prepared, around: Surroundings) -> Outcome:
        if not Path(prepared.staging).is_dir():
            raise PublishError(
                f"what was staged for {prepared.destination} is gone: {prepared.staging}", hint="run the pipeline again"
            )
        return _publication(prepared, around).publish()

    def is_decided(self, prepared: Prepared, around: Surroundings) -> bool:
        return _publication(prepared, around).settled() is not None

    def discard(self, prepared: Prepared, around: Surroundings) -> None:
        from lockgate.destinations.postgres_commit import Forgotten
        from lockgate.destinations.postgres_session import session
        from lockgate.destinations.postgres_staging import StagingTable

        area = StagingArea.reopen(around.storage, Path(prepared.staging))
        if area.exists:
            publication = _publication(prepared, around)
            try:
                done = publication.settled()
            except Forgotten:  # never to be known: who gives the run up has looked at the table
                done = None
            table = StagingTable.of(publication.wanted)
            if table.schema is not None and done is None:
                with _explained(publication.wanted), session(around.profile, publication.wanted.connection) as opened:
                    table.drop(opened)
        area.discard()


def _publication(prepared: Prepared, around: Surroundings) -> Publication:
    from lockgate.destinations.postgres_publish import Publication

    area = Path(prepared.staging)
    return Publication(
        wanted=Wanted.from_json(prepared.instructions["wanted"]),
        profile=around.profile,
        storage=around.storage,
        area=area,
        parts=[area / part for part in prepared.instructions["parts"]],
    )


@contextmanager
def _explained(wanted: Wanted) -> Iterator[None]:
    from lockgate.destinations.postgres_errors import advice, told
    from lockgate.destinations.postgres_session import ServerError

    try:
        yield
    except ServerError as error:
        raise StageError(
            f"{wanted.connection}: {wanted.shown}: {told(error)}", in_place=_NOTHING, hint=advice(error)
        ) from error
