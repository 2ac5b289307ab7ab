"""Merges and writes below a prefix of S3: by the same driver and engines, on local copies of what they need."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from lockgate.config import load_project
from lockgate.datasets.choice import chosen_engine
from lockgate.errors import ArgumentError
from lockgate.merging.driver import MergeRequest, StagedMerge, checked_source, merge_rows, stage_merge
from lockgate.merging.protocol import Added, DataFile, Engine, Found, NewFiles, Rewrite, Source, Written
from lockgate.merging.result import MergeResult
from lockgate.merging.strategy import MergeStrategy
from lockgate.merging.table_source import SourceRows
from lockgate.storage.local import LocalStorage
from lockgate.storage.s3 import S3Storage
from lockgate.storage.s3_address import S3Address
from lockgate.storage.s3_settings import chosen_settings
from lockgate.targets.folder import DEFAULT_LOCK_TIMEOUT
from lockgate.targets.s3_folder import OpenS3Folder, S3Folder
from lockgate.targets.s3_mirror import Mirror


def s3_folder(
    root: S3Address,
    storage: LocalStorage,
    *,
    connection: str | None = None,
    lock_timeout: float = DEFAULT_LOCK_TIMEOUT,
) -> S3Folder:
    """The dataset below a prefix, by a connection of the profile of the current folder's project."""
    settings = chosen_settings(load_project().profile.connections, connection)
    return S3Folder(root, S3Storage(settings, storage), lock_timeout=lock_timeout)


def refuse_spark(engine: str) -> None:
    if engine == "spark":
        raise ArgumentError(
            "the Spark engine cannot merge into a dataset on S3, which its workers cannot open",
            in_place="nothing was written",
            hint="use engine='auto'; a Spark DataFrame may be the source",
        )


def refuse_overwrite(mode: str, root: S3Address) -> None:
    if mode == "overwrite":
        raise ArgumentError(
            f"{root} cannot be overwritten as a whole: S3 swaps in one object at a time, and readers would see a mix",
            in_place="nothing was written",
            hint="use mode='append', a merge with strategy='full_merge', or a table of TYPE DELTA",
        )


def merge_on_s3(
    source: Source[SourceRows], target: S3Folder, engine: Engine[SourceRows], request: MergeRequest
) -> MergeResult:
    bringing = Bringing(engine)
    return merge_rows(source, _Opening(target, bringing), bringing, request)


def staged_on_s3(
    source: Source[SourceRows], opened: OpenS3Folder, engine: str, request: MergeRequest
) -> tuple[StagedMerge, str]:
    """A merge into a dataset that somebody has opened, not committed; and the engine that did it."""
    with chosen_engine(engine, LocalStorage(), use_merge=None, connection=None) as chosen:
        bringing = Bringing(chosen)
        bringing.mirror = opened.mirror
        checked, nothing = checked_source(source, request)
        return stage_merge(checked, opened, bringing, request, nothing), chosen.name


class Bringing:
    """An engine that is given files whose content is on S3: it has them downloaded before it opens them."""

    def __init__(self, engine: Engine[SourceRows]) -> None:
        self.name = engine.name
        self._engine = engine
        self.mirror: Mirror | None = None

    def _bring(self, files: Sequence[DataFile]) -> None:
        assert self.mirror is not None, "set when the dataset is opened"
        self.mirror.bring(file.path for file in files)

    def read_footers(self, paths: Sequence[str]) -> list[Any]:
        return self._engine.read_footers(paths)

    def find(self, files: Sequence[DataFile], source: SourceRows, strategy: MergeStrategy, *, compare: bool) -> Found:
        self._bring(files)
        return self._engine.find(files, source, strategy, compare=compare)

    def rewrite(self, jobs: Sequence[Rewrite], source: SourceRows) -> list[Written]:
        self._bring([job.file for job in jobs])
        return self._engine.rewrite(jobs, source)

    def add(self, found: Found, source: SourceRows, new: NewFiles) -> list[Added]:
        self._bring([new.like] if new.like is not None else [])
        return self._engine.add(found, source, new)


class _Opening:
    """The target, which shows the engine where its files are."""

    def __init__(self, target: S3Folder, bringing: Bringing) -> None:
        self.root = target.root
        self._target = target
        self._bringing = bringing

    def exists(self) -> bool:
        return self._target.exists()

    @contextmanager
    def opened(self, identity: str, *, dry_run: bool = False) -> Iterator[OpenS3Folder]:
        with self._target.opened(identity, dry_run=dry_run) as folder:
            self._bringing.mirror = folder.mirror
            yield folder
