"""The merge of a keyed export: done while staging, and once more if the dataset has changed by the time it counts.

Imported when a run gets here, not by `lockgate check`: it brings Arrow.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lockgate.datasets.by_spark import active_session, spark_rows
from lockgate.datasets.choice import chosen_engine
from lockgate.destinations import keyed_engine
from lockgate.destinations.keyed_records import Decision, Wanted, fingerprint
from lockgate.destinations.protocol import Outcome
from lockgate.errors import DuplicateKeyError, LockgateError, PartitionMoveError
from lockgate.merging.driver import MergeRequest, StagedMerge, checked_source, stage_merge
from lockgate.merging.protocol import OpenTarget
from lockgate.merging.source import load_source
from lockgate.merging.strategy import MergeStrategy
from lockgate.merging.table_source import TableSource
from lockgate.storage.local import LocalStorage
from lockgate.targets import journal
from lockgate.targets.open_folder import DatasetFolder, OpenFolder

log = logging.getLogger("lockgate.merge")


@dataclass(frozen=True)
class KeyedMerge:
    """One export's merge into one folder, as often as it takes. It writes into `folder` and shows nothing."""

    target: DatasetFolder
    identity: str
    wanted: Wanted
    rows: Path  # what Spark staged
    folder: Path

    def ahead(self) -> Decision:
        """Merge without holding the dataset. Whoever publishes compares fingerprints, so a writer that comes between
        costs a second merge, and nobody waits for this one."""
        if journal.read(self.target.root) is not None:
            with self.target.locked():
                pass  # opening the folder finishes what was decided
        before = fingerprint(self.target)
        try:
            return self._merge(OpenFolder(self.target, self.identity, self.folder), before)
        except Exception:
            if self._is_still(before):
                raise
        # What was read may never have been the dataset: some files old, some new. That is no fault of the rows.
        with self.target.opened(self.identity, staging=self.folder) as opened:
            return self.held(opened)

    def held(self, opened: OpenTarget) -> Decision:
        """Merge into a dataset that nobody else can change meanwhile."""
        self.target.storage.remove_tree(self.folder)  # what an earlier try left
        return self._merge(opened, fingerprint(self.target))

    def _is_still(self, before: str) -> bool:
        try:
            return fingerprint(self.target) == before
        except LockgateError:  # a file went away while we looked
            return False

    def _merge(self, opened: OpenTarget, dataset: str) -> Decision:
        staged, engine = merge_staged_rows(
            self.wanted, self.rows, opened, self.identity, self.target.storage, self.target.root, self._dataset_size
        )
        if staged.moves:
            self.target.storage.fsync_folder(self.folder)
        root = self.target.root
        return Decision(
            dataset=dataset,
            moves={final: path.relative_to(root).as_posix() for final, path in staged.moves.items()},
            removes=tuple(staged.removes),
            outcome=outcome_of(staged, engine, root),
        )

    def _dataset_size(self) -> int:
        return sum((self.target.root / name).stat().st_size for name in self.target.files())


def merge_staged_rows(
    wanted: Wanted,
    rows: Path,
    opened: OpenTarget,
    identity: str,
    storage: LocalStorage,
    root: Path,
    dataset_size: Callable[[], int],
) -> tuple[StagedMerge, str]:
    """By the engine that is asked for, with the rows in the folder `rows` as that engine takes them; and the engine's
    name. Nothing is shown."""
    request = _request(wanted, identity, root)
    name, session = _engine(wanted.engine, rows, dataset_size)
    with advice_for_pipelines():
        if session is not None:
            with spark_rows(session, rows, storage) as (given, spark):
                source, nothing = checked_source(given, request)
                return stage_merge(source, opened, spark, request, nothing), spark.name
        # Not with what Spark says of the schema of its rows: that would not be true of the files that they go to.
        table = load_source(rows).replace_schema_metadata(None)
        with chosen_engine(name, storage, use_merge=None, connection=None) as engine:
            held, nothing = checked_source(TableSource(table), request)
            return stage_merge(held, opened, engine, request, nothing), engine.name


def _engine(wanted: str, staged: Path, dataset_size: Callable[[], int]) -> tuple[str, Any]:
    """The engine's name, and the session if it is Spark. A `resume` has none: then one machine does the work."""
    if wanted in ("arrow", "duckdb"):
        return wanted, None
    session = active_session()
    if session is None:
        log.info("the Arrow engine, because there is no Spark session here")
        return "arrow", None
    if wanted == "spark":
        return "spark", session
    from lockgate.engines.spark_session import is_local

    rows = sum(part.stat().st_size for part in staged.glob("part-*.parquet"))
    name, reason = keyed_engine.chosen_engine(rows, dataset_size, spark_is_here=is_local(session))
    log.info("auto: the %s engine, because %s", name.capitalize(), reason)
    return name, session if name == "spark" else None


def _request(wanted: Wanted, identity: str, root: Path) -> MergeRequest:
    return MergeRequest(
        strategy=MergeStrategy(wanted.strategy),
        key_columns=wanted.key_columns,
        identity=identity,
        partition_by=wanted.partition_by,
        schema=wanted.schema,
        order_by=wanted.order_by,
        skip_unchanged=wanted.skip_unchanged,
        allow_partition_moves=wanted.allow_partition_moves,
        compression=wanted.compression,
        max_rows_per_file=wanted.max_rows_per_file,
        shown_root=str(root),
    )


def outcome_of(staged: StagedMerge, engine: str, root: Path) -> Outcome:
    done = staged.result
    return Outcome(
        inserted=done.inserted,
        updated=done.updated,
        deleted=done.deleted,
        files={
            "rewritten": len(done.rewritten_files),
            "added": len(done.inserted_files),
            "preserved": len(done.preserved_files),
        },
        paths=tuple(str(root / name) for name in staged.moves),
        engine=engine,
    )


@contextmanager
def advice_for_pipelines() -> Iterator[None]:
    """What a merge advises to a caller in Python, in the words of a pipeline."""
    try:
        yield
    except DuplicateKeyError as error:
        error.hint = "leave one row a key, or use MODE DEDUPLICATE, with ORDER BY to say which row stays"
        raise
    except PartitionMoveError as error:
        error.hint = 'give the rows their old partition values, or set OPTIONS {"allow_partition_moves": true}'
        raise
