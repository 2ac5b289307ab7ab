"""Reading PostgreSQL into Spark: every source of a run that has the same connection sees the same snapshot."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from lockgate.config import Connection
from lockgate.engines.spark_package import give_package
from lockgate.language.statements import SourceStep
from lockgate.postgres.address import is_postgres as is_postgres_connection
from lockgate.running.session import quietly
from lockgate.sources.conditions import Condition
from lockgate.sources.postgres_partitions import partitions
from lockgate.sources.postgres_read import PostgresRead
from lockgate.sources.postgres_session import SnapshotSession
from lockgate.sources.postgres_table import Relation, look_at

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class PostgresSources:
    """The databases that one run reads. Each has a session of this process until the run needs no source any more."""

    def __init__(self, session: SparkSession, connections: Mapping[str, Connection], run: str) -> None:
        self._spark = session
        self._connections = connections
        self._run = run
        self._sessions: dict[str, SnapshotSession] = {}
        self._names: list[str] = []

    def look_at(self, step: SourceStep) -> Relation:
        """Its columns, in the snapshot."""
        return look_at(self._session(step), step.name, step.params)

    def frame(self, step: SourceStep, relation: Relation, conditions: tuple[Condition, ...] = ()) -> DataFrame:
        """The rows that meet the conditions."""
        from lockgate.running.postgres_reader import data_source

        session = self._session(step)
        read = PostgresRead(
            source=step.name,
            access=session.access,
            relation=relation.sql,
            columns=relation.wanted,
            partitions=partitions(session, step.name, relation, step.params, conditions),
            conditions=conditions,
            **_batches(step.params),
        )
        give_package(self._spark)
        name = f"lockgate_postgres_{self._run}_{len(self._names)}"
        self._names.append(name)
        self._spark.dataSource.register(data_source(name, read))
        return self._spark.read.format(name).load()

    def close(self) -> None:
        from lockgate.running.postgres_reader import forget

        for name in self._names:
            quietly(forget, self._spark, name)
        for session in self._sessions.values():
            quietly(session.close)

    def _session(self, step: SourceStep) -> SnapshotSession:
        name = connection_name(step)
        if name not in self._sessions:
            self._sessions[name] = SnapshotSession(self._connections[name], step.name)
        return self._sessions[name]


def connection_name(step: SourceStep) -> str:
    """The connection of the profile that a POSTGRES source reads from."""
    return step.connection or str(step.params["connection"])


def is_postgres(step: SourceStep, connections: Mapping[str, Connection]) -> bool:
    if step.connection is not None:
        return is_postgres_connection(connections[step.connection])
    return str(step.connector_type).upper() == "POSTGRES"


def _batches(params: Mapping[str, Any]) -> dict[str, int]:
    return {"batch_bytes": params["batch_bytes"]} if "batch_bytes" in params else {}
