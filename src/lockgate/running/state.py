"""The project's record of runs, in SQLite. What is written here is on disk before the next step begins."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import Any

from lockgate.destinations.protocol import Outcome, Prepared
from lockgate.errors import LockgateError, StateError
from lockgate.running.watermark_record import adopt, move, require_unmoved, stored
from lockgate.sources.watermark import PendingWatermark, StoredWatermark
from lockgate.storage.local import LocalStorage
from lockgate.storage.locks import FileLock, is_held

SCHEMA_VERSION = 2
_SCRIPTS = ("state.sql", "state_2.sql")  # each brings the schema to the next version
_NONE: Mapping[str, PendingWatermark] = {}
_WAIT = 30.0  # seconds for another process that is writing its record


@dataclass(frozen=True)
class RunRecord:
    id: str
    pipeline: str
    profile: str
    started: str
    finished: str | None
    status: str
    exit_code: int | None
    error: str | None
    superseded_by: str | None
    result: dict[str, Any] | None
    watermarks: dict[str, PendingWatermark] = field(default_factory=dict)  # that it brings, by source


@dataclass(frozen=True)
class ExportRecord:
    run: str
    number: int
    name: str
    status: str
    staging: Path
    prepared: Prepared | None
    outcome: Outcome | None


class RunState:
    """Runs and their exports. One short transaction a change."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._path = folder / "state.db"

    @contextmanager
    def _open(self) -> Iterator[sqlite3.Connection]:
        try:
            LocalStorage().make_folders(self.folder)
            connection = sqlite3.connect(self._path, timeout=_WAIT)
        except (LockgateError, sqlite3.Error) as error:
            raise StateError(
                f"cannot open the record of runs {self._path}: {error}",
                in_place="nothing was run",
                hint="give this user write permission on the project folder",
            ) from error
        connection.row_factory = sqlite3.Row
        try:
            # EXTRA also syncs the folder after the rollback journal is removed, else a power cut could bring it back.
            connection.execute("PRAGMA synchronous = EXTRA")
            self._migrate(connection)
            with connection:
                yield connection
        except sqlite3.Error as error:
            raise StateError(f"the record of runs {self._path} cannot be used: {error}") from error
        finally:
            connection.close()

    def _migrate(self, connection: sqlite3.Connection) -> None:
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        if version > SCHEMA_VERSION:
            raise StateError(
                f"{self._path} was written by a newer Lockgate (schema {version}, this one knows {SCHEMA_VERSION})",
                hint="upgrade lockgate",
            )
        if version == SCHEMA_VERSION:
            return
        connection.execute("BEGIN IMMEDIATE")
        for script in _SCRIPTS[connection.execute("PRAGMA user_version").fetchone()[0] :]:
            for statement in _statements(files(__package__).joinpath(script).read_text()):
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION:d}")
        connection.commit()

    # A run is alive while its process holds this lock; the kernel drops it when the process dies.
    def run_lock(self, run: str) -> FileLock:
        folder = self.folder / "locks"
        LocalStorage().make_folders(folder)
        return FileLock(folder / f"{run}.lock")

    def is_alive(self, run: str) -> bool:
        return is_held(self.folder / "locks" / f"{run}.lock")

    def begin(self, run: str, pipeline: str, profile: str, started: str) -> None:
        with self._open() as db:
            db.execute(
                "INSERT INTO runs (id, pipeline, profile, started, status) VALUES (?, ?, ?, ?, 'running')",
                (run, pipeline, profile, started),
            )

    def publishing(
        self,
        run: str,
        result: dict[str, Any],
        prepared: Mapping[int, Prepared],
        watermarks: Mapping[str, PendingWatermark] = _NONE,
    ) -> None:
        """The point of no return: from here the run is finished by publishing, by whomever. Not reached, with a
        WatermarkMoved, if another run has published rows since that this one has too."""
        with self._open() as db:
            db.execute("BEGIN IMMEDIATE")
            require_unmoved(db, run, watermarks)
            told = {source: pending.to_json() for source, pending in watermarks.items()}
            db.execute("UPDATE runs SET watermarks = ? WHERE id = ?", (json.dumps(told) if told else None, run))
            db.executemany(
                "UPDATE exports SET status = 'staged', prepared = ? WHERE run = ? AND number = ?",
                [(json.dumps(asdict(p)), run, number) for number, p in prepared.items()],
            )
            db.execute("UPDATE runs SET status = 'publishing', result = ? WHERE id = ?", (json.dumps(result), run))

    def finish(
        self, run: str, status: str, *, finished: str, exit_code: int, error: str | None, result: dict[str, Any] | None
    ) -> None:
        with self._open() as db:
            if status == "published":  # in one transaction with the record that all of it is
                move(db, run)
            db.execute(
                "UPDATE runs SET status = ?, finished = ?, exit_code = ?, error = ?, "
                "result = coalesce(?, result) WHERE id = ?",
                (status, finished, exit_code, error, json.dumps(result) if result else None, run),
            )

    def supersede(self, run: str, by: str) -> None:
        with self._open() as db:
            db.execute("UPDATE runs SET status = 'superseded', superseded_by = ? WHERE id = ?", (by, run))

    def staging(self, run: str, areas: Mapping[int, tuple[str, Path]]) -> None:
        """Where each export, by its number, will be staged under its name: on record before anything is there."""
        with self._open() as db:
            db.executemany(
                "INSERT INTO exports (run, number, name, status, staging) VALUES (?, ?, ?, 'staging', ?)",
                [(run, number, name, str(path)) for number, (name, path) in areas.items()],
            )

    def watermarks(self, pipeline: str, profile: str) -> dict[str, StoredWatermark]:
        """How far the sources of a pipeline have been read, by their names in lower case."""
        if not self._path.exists():
            return {}
        with self._open() as db:
            return stored(db, pipeline, profile)

    def adopt_watermarks(self, pipeline: str, profile: str, newest: Mapping[str, StoredWatermark]) -> None:
        """Take over those that the log of Delta tables has further on than this record."""
        with self._open() as db:
            adopt(db, pipeline, profile, newest)

    def pending_watermarks(self, run: str) -> dict[str, PendingWatermark]:
        """The watermarks that a run brings, from the moment at which it has promised to publish: plain values, which a
        destination with transactions of its own can commit along with the run's rows."""
        record = self.run(run)
        return dict(record.watermarks) if record else {}

    def export_published(self, run: str, number: int, outcome: Outcome) -> None:
        with self._open() as db:
            db.execute(
                "UPDATE exports SET status = 'published', outcome = ? WHERE run = ? AND number = ?",
                (json.dumps(asdict(outcome)), run, number),
            )

    def export_discarded(self, run: str, number: int) -> None:
        with self._open() as db:
            db.execute("UPDATE exports SET status = 'discarded' WHERE run = ? AND number = ?", (run, number))

    def run(self, run: str) -> RunRecord | None:
        with self._open() as db:
            row = db.execute("SELECT * FROM runs WHERE id = ?", (run,)).fetchone()
        return _run_record(row) if row else None

    def runs(self, *, limit: int = 50) -> list[RunRecord]:
        """The newest runs, newest first."""
        if not self._path.exists():
            return []
        with self._open() as db:
            rows = db.execute("SELECT * FROM runs ORDER BY started DESC, rowid DESC LIMIT ?", (limit,)).fetchall()
        return [_run_record(row) for row in rows]

    def unsettled(self) -> list[RunRecord]:
        """Runs that were not brought to an end, or ended without removing what they had staged; oldest first."""
        if not self._path.exists():
            return []
        with self._open() as db:
            rows = db.execute(
                "SELECT * FROM runs WHERE status IN ('running', 'publishing', 'partial') OR (status <> 'published' "
                "AND EXISTS (SELECT 1 FROM exports WHERE run = runs.id AND exports.status IN ('staging', 'staged'))) "
                "ORDER BY started, rowid"
            ).fetchall()
        return [_run_record(row) for row in rows]

    def exports(self, run: str) -> list[ExportRecord]:
        with self._open() as db:
            rows = db.execute("SELECT * FROM exports WHERE run = ? ORDER BY number", (run,)).fetchall()
        return [_export_record(row) for row in rows]


def _statements(script: str) -> list[str]:
    lines = [line.partition("--")[0].rstrip() for line in script.splitlines()]
    return [statement for statement in "\n".join(lines).split(";") if statement.strip()]


def _run_record(row: sqlite3.Row) -> RunRecord:
    values = dict(row)
    told = json.loads(values["watermarks"]) if values["watermarks"] else {}
    values["watermarks"] = {source: PendingWatermark.from_json(each) for source, each in told.items()}
    values["result"] = json.loads(values["result"]) if values["result"] else None
    return RunRecord(**values)


def _export_record(row: sqlite3.Row) -> ExportRecord:
    prepared = json.loads(row["prepared"]) if row["prepared"] else None
    outcome = json.loads(row["outcome"]) if row["outcome"] else None
    return ExportRecord(
        run=row["run"],
        number=row["number"],
        name=row["name"],
        status=row["status"],
        staging=Path(row["staging"]),
        prepared=Prepared(**prepared) if prepared else None,
        outcome=Outcome(**{**outcome, "paths": tuple(outcome["paths"])}) if outcome else None,
    )
