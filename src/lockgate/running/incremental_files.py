"""The cursor `_file`: every file of a source is read once, by the run that finds it first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from lockgate.language.statements import SourceStep
from lockgate.running.sources import locations
from lockgate.sources.files import changed, list_files
from lockgate.sources.lookback import FILE_CURSOR
from lockgate.sources.postgres_problems import problem
from lockgate.sources.watermark import Watermark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_MOST_FILES = 1_000_000


@dataclass
class WatchedFiles:
    """Files that a run reads, as they looked when it began to: one that changes meanwhile makes two truths."""

    looks: dict[str, dict[str, str]] = field(default_factory=dict)  # by source

    def watch(self, source: str, files: dict[str, str]) -> None:
        self.looks[source] = files

    def require_unchanged(self) -> None:
        for source, files in self.looks.items():
            if different := changed(files.items()):
                raise problem(
                    source,
                    f"{different[0]} has changed while it was read",
                    "run again; let files be written under another name, and renamed when they are whole",
                )


class FileCursor:
    """The files of one source."""

    def __init__(
        self,
        session: SparkSession,
        step: SourceStep,
        project: Path,
        read: Callable[[Sequence[str], str | None], DataFrame],
        watched: WatchedFiles,
    ) -> None:
        self._session = session
        self._step = step
        self._project = project
        self._read = read
        self._watched = watched
        self._folders = {
            location: list_files(location) for location in locations(step.params["path"], project) if location
        }
        self._files = {path: look for files in self._folders.values() for path, look in files.items()}

    def unseen(self, before: Watermark | None) -> tuple[DataFrame, Watermark]:
        """The rows of the files that are not remembered, and what is to be remembered after them."""
        known = dict(before.seen) if before else {}
        names = {self._name(path): path for path in self._files}
        different = [name for name, path in names.items() if known.get(name, self._files[path]) != self._files[path]]
        if different:
            raise problem(
                self._step.name,
                f"{different[0]} has changed since a run read it; with the cursor {FILE_CURSOR} a file is read once",
                "give new rows a file of their own, or read all files again: lockgate run --full-refresh",
            )
        frame = self._rows({path for name, path in names.items() if name not in known}, before)
        seen = {**known, **{name: self._files[path] for name, path in names.items()}}
        if len(seen) > _MOST_FILES:
            raise problem(
                self._step.name, f"more than {_MOST_FILES:,} files, too many to remember", "use a cursor column"
            )
        from lockgate.running.cursors import described

        return frame, Watermark(FILE_CURSOR, "file", columns=described(frame), seen=dict(sorted(seen.items())))

    def between(self, start: str | None, end: str | None) -> DataFrame:
        """The rows of files by their names."""
        chosen = {
            path
            for path in self._files
            if (start is None or self._name(path) >= start) and (end is None or self._name(path) < end)
        }
        return self._rows(chosen, None)

    def _name(self, path: str) -> str:
        return path.removeprefix(f"{self._project}/")

    def _rows(self, wanted: set[str], before: Watermark | None) -> DataFrame:
        self._watched.watch(self._step.name, {path: self._files[path] for path in wanted})
        frames = []
        for location, files in self._folders.items():
            some = [path for path in files if path in wanted]
            wanted -= {*some}  # two paths may overlap
            if some:
                frames.append(self._read(some, location if Path(location).is_dir() else None))
        if frames:
            whole = frames[0]
            for frame in frames[1:]:
                whole = whole.unionByName(frame)
            return whole
        if before is not None and before.columns:
            from lockgate.running.cursors import schema_of

            return self._session.createDataFrame([], schema_of(before.columns))
        if not self._files:
            raise problem(
                self._step.name, f"there is no file at {self._step.params['path']} that can be seen from here"
            )
        location, files = next((at, found) for at, found in self._folders.items() if found)
        return self._read([next(iter(files))], location if Path(location).is_dir() else None).limit(0)
