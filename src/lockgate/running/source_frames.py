"""The sources of one run as DataFrames: of files and of databases, whole or from their watermarks on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lockgate.config import Project
from lockgate.language.statements import SourceStep
from lockgate.running.incremental import IncrementalSources, Reading
from lockgate.running.incremental_files import FileCursor
from lockgate.running.postgres_source import PostgresSources, is_postgres
from lockgate.running.sources import locations, read_source
from lockgate.sources.files import list_files
from lockgate.sources.lookback import FILE_CURSOR
from lockgate.sources.watermark import PendingWatermark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class SourceFrames:
    """`keep` computes a frame once, when it is first read."""

    def __init__(
        self,
        session: SparkSession,
        project: Project,
        run: str,
        reading: Reading,
        keep: Callable[[DataFrame], DataFrame],
    ) -> None:
        self._session = session
        self._project = project
        self._root: Path = project.root
        self._connections = project.profile.connections
        self._databases = PostgresSources(session, self._connections, run)
        self._incremental = IncrementalSources(reading, keep)

    def read(self, step: SourceStep, *, loaded: bool) -> DataFrame:
        """A source. One that no LOAD reads has no rows to remember."""
        cursor = step.params.get("cursor") if loaded else None
        if is_postgres(step, self._connections):
            return self._database(step, cursor is not None)
        if cursor == FILE_CURSOR:
            files = FileCursor(
                self._session,
                step,
                self._root,
                lambda some, base: read_source(self._session, step, self._project, some, base),
                self._incremental.watched,
            )
            return self._incremental.read_files(step, files)
        frame = read_source(self._session, step, self._project)
        if cursor is None:
            return frame
        self._watch(step)
        return self._incremental.read(step, frame.schema, lambda _: frame)

    def watermarks(self, working: Callable[[str, Callable[[], Any]], Any]) -> dict[str, PendingWatermark]:
        """The watermarks that the run brings; `working` does a piece of work for the source that it is told."""
        return self._incremental.pending(working)

    def require_unchanged(self) -> None:
        """After the last row is read: files of incremental sources are as they were before the first."""
        self._incremental.watched.require_unchanged()

    def close(self) -> None:
        self._databases.close()

    def _database(self, step: SourceStep, incremental: bool) -> DataFrame:
        relation = self._databases.look_at(step)
        if not incremental:
            return self._databases.frame(step, relation)
        from lockgate.running.postgres_reader import spark_schema

        return self._incremental.read(
            step,
            spark_schema(relation.wanted),
            lambda conditions: self._databases.frame(step, relation, conditions),
            relation.column(step.params["cursor"]),
        )

    def _watch(self, step: SourceStep) -> None:
        here = [location for location in locations(step.params["path"], self._root) if "://" not in location]
        files = {path: look for location in here for path, look in list_files(location).items()}
        self._incremental.watched.watch(step.name, files)
