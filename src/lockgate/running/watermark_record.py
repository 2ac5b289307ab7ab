"""The watermarks in the record of runs. Each function is a part of the caller's transaction."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from typing import Any

from lockgate.errors import WatermarkMoved
from lockgate.sources.watermark import PendingWatermark, StoredWatermark, Watermark

_MINE = (
    "pipeline = (SELECT pipeline FROM runs WHERE id = :run) AND profile = (SELECT profile FROM runs WHERE id = :run)"
)


def stored(db: sqlite3.Connection, pipeline: str, profile: str) -> dict[str, StoredWatermark]:
    """The current watermarks of a pipeline, by source."""
    rows = db.execute(
        "SELECT source, version, watermark FROM watermarks WHERE pipeline = ? AND profile = ?", (pipeline, profile)
    )
    return {
        row["source"]: StoredWatermark(row["version"], Watermark.from_json(json.loads(row["watermark"])))
        for row in rows
    }


def require_unmoved(db: sqlite3.Connection, run: str, pending: Mapping[str, PendingWatermark]) -> None:
    """Refuse a run whose watermarks began at versions that are not the current ones, or that another run is about to
    replace: its rows would be published twice."""
    for source, mine in pending.items():
        row = db.execute(
            f"SELECT version, run FROM watermarks WHERE {_MINE} AND source = :source", {"run": run, "source": source}
        ).fetchone()
        if (row["version"] if row else 0) != mine.base:
            raise _moved(source, row["run"] if row else "another one", "has moved")
        other = db.execute(
            f"SELECT id FROM runs WHERE {_MINE} AND id <> :run AND status IN ('publishing', 'partial') AND EXISTS "
            "(SELECT 1 FROM json_each(runs.watermarks) WHERE key = :source)",
            {"run": run, "source": source},
        ).fetchone()
        if other:
            raise _moved(source, other["id"], "is about to move")


def move(db: sqlite3.Connection, run: str) -> None:
    """Make the watermarks that a run brings the current ones. Done again, it changes nothing."""
    row = db.execute("SELECT pipeline, profile, status, watermarks FROM runs WHERE id = ?", (run,)).fetchone()
    if row is None or row["status"] == "published" or not row["watermarks"]:
        return
    for source, told in json.loads(row["watermarks"]).items():
        _set(db, row["pipeline"], row["profile"], source, told["base"] + 1, run, told["watermark"])


def adopt(db: sqlite3.Connection, pipeline: str, profile: str, newest: Mapping[str, StoredWatermark]) -> None:
    """Take over watermarks that another record has further on."""
    for source, mark in newest.items():
        if mark.watermark is not None:
            _set(db, pipeline, profile, source, mark.version, "", mark.watermark.to_json())


def _set(
    db: sqlite3.Connection, pipeline: str, profile: str, source: str, version: int, run: str, mark: Mapping[str, Any]
) -> None:
    db.execute(
        "INSERT INTO watermarks (pipeline, profile, source, version, run, watermark) VALUES (?, ?, ?, ?, ?, ?) "
        "ON CONFLICT (pipeline, profile, source) DO UPDATE SET version = excluded.version, run = excluded.run, "
        "watermark = excluded.watermark WHERE excluded.version > watermarks.version",
        (pipeline, profile, source, version, run, json.dumps(mark)),
    )


def _moved(source: str, run: str, how: str) -> WatermarkMoved:
    return WatermarkMoved(
        f"run {run} {how} the watermark of the source {source}, and this run has read the same rows",
        in_place="this run published nothing; every destination is as that run leaves it",
        hint="run again: it takes what is new since then",
    )
