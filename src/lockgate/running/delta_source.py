"""SOURCE … TYPE DELTA: a table of the profile's log, as it is or as it was."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lockgate.config import Project
from lockgate.engines.spark_snapshot import snapshot_frame
from lockgate.errors import LockgateError, SourceError
from lockgate.language.diagnostics import Diagnostic
from lockgate.language.statements import SourceStep
from lockgate.tables.entry import open_table
from lockgate.tables.opening import opened_log
from lockgate.tables.places import log_address

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lockgate.tables.table import Table


def _changes(session: SparkSession, step: SourceStep, table: Table) -> DataFrame:
    """The change data of some versions, from the driver's memory."""
    wanted = step.params
    rows = table.changes(wanted["changes_from"], wanted.get("changes_to"), wanted.get("changes_key"))
    return session.createDataFrame(rows)


def read_delta(session: SparkSession, step: SourceStep, project: Project) -> DataFrame:
    """One snapshot, chosen now: what others commit during the run is not seen by it."""
    try:
        with opened_log(log_address(project)) as txn_log:
            table = open_table(step.params["table"], log=txn_log)
            if "changes_from" in step.params:
                return _changes(session, step, table)
            version, timestamp = step.params.get("version"), step.params.get("timestamp")
            if version is not None or timestamp is not None:
                table = table.at(version=version, timestamp=timestamp)
            snapshot = table.snapshot()
        return snapshot_frame(session, snapshot)
    except LockgateError as error:
        place = step.param_places.get("table", step.params_place)
        told = Diagnostic(place, "source", f"the source {step.name}: {error.message}", error.hint)
        raise SourceError(told.render(), in_place="nothing was published; every destination is as it was") from error
