"""What a keyed export puts on record: what is wanted, what was decided, and what was done."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from lockgate.destinations.keyed_engine import asked_engine
from lockgate.destinations.protocol import DEFAULT_MAX_ROWS_PER_FILE, ExportRequest, Outcome
from lockgate.errors import StorageError
from lockgate.storage.local import LocalStorage, explained
from lockgate.targets.folder import FolderTarget

_DONE = "merged"  # in the staging area: the outcome of the merge that is in place
_DRAFT = "merged.draft"


@dataclass(frozen=True)
class Wanted:
    """The merge that an export asks for."""

    strategy: str
    key_columns: tuple[str, ...]
    order_by: tuple[str, ...] = ()
    partition_by: tuple[str, ...] | None = None  # None: as the dataset is
    engine: str = "auto"
    schema: Literal["strict", "evolve"] = "strict"
    skip_unchanged: bool = False
    allow_partition_moves: bool = False
    compression: str | None = None  # None: as the dataset's files are
    max_rows_per_file: int = DEFAULT_MAX_ROWS_PER_FILE

    @classmethod
    def by(cls, request: ExportRequest) -> Wanted:
        options = request.options
        return cls(
            strategy=request.mode.lower(),
            key_columns=request.keys,
            order_by=request.order_by,
            partition_by=tuple(options["partition_by"]) if "partition_by" in options else None,
            engine=asked_engine(options),
            schema=options.get("schema", "strict").lower(),
            skip_unchanged=options.get("skip_unchanged", False),
            allow_partition_moves=options.get("allow_partition_moves", False),
            compression=options["compression"].lower() if "compression" in options else None,
            max_rows_per_file=options.get("max_rows_per_file", DEFAULT_MAX_ROWS_PER_FILE),
        )

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Wanted:
        lists = {name: tuple(value) for name, value in record.items() if isinstance(value, list)}
        return cls(**{**record, **lists})


@dataclass(frozen=True)
class Decision:
    """A merge that is staged. It holds as long as the dataset is the one that it was made for."""

    dataset: str  # its fingerprint
    moves: Mapping[str, str]  # names in the dataset -> staged files, both relative to the dataset
    removes: tuple[str, ...]
    outcome: Outcome

    @property
    def changes_nothing(self) -> bool:
        return not self.moves and not self.removes

    def is_staged(self, root: Path) -> bool:
        return all((root / staged).exists() for staged in self.moves.values())

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> Decision:
        return cls(record["dataset"], record["moves"], tuple(record["removes"]), _outcome(record["outcome"]))


def fingerprint(target: FolderTarget) -> str:
    """What tells this state of the dataset from every other: a writer replaces files, and never brings one back."""
    digest = hashlib.sha256()
    for name in target.files():
        path = target.root / name
        with explained("look at", path):
            found = os.stat(path)
        stamp = [name, found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino]
        digest.update(json.dumps(stamp).encode() + b"\n")
    return digest.hexdigest()


class DoneMark:
    """The file in a staging area that says that its merge is in place, and what that did.

    The journal of the dataset moves it there together with the data files. So it is there if and only if they are,
    whoever carries the journal out, and also where no file moves.
    """

    def __init__(self, area: Path) -> None:
        self.path = area / _DONE
        self.draft = area / _DRAFT

    def read(self) -> Outcome | None:
        with explained("read", self.path):
            try:
                raw = self.path.read_bytes()
            except FileNotFoundError:
                return None
        try:
            return _outcome(json.loads(raw))
        except (ValueError, KeyError, TypeError) as error:
            raise StorageError(
                f"{self.path} cannot be used: {error}",
                in_place="the merge is in place, and its counts are not known",
                hint="bring the file back from a copy, then resume; or give the run up with `lockgate run --supersede`",
            ) from error

    def write_draft(self, storage: LocalStorage, outcome: Outcome) -> None:
        """Durable but for its name, which the commit syncs."""
        storage.remove(self.draft)  # a crash may have left it
        storage.write(self.draft, json.dumps(asdict(outcome)).encode())

    def set(self, storage: LocalStorage, outcome: Outcome) -> None:
        """For a merge that changes nothing, and so has no journal."""
        self.write_draft(storage, outcome)
        storage.replace(self.draft, self.path)
        storage.fsync_folder(self.path.parent)


def _outcome(record: Mapping[str, Any]) -> Outcome:
    return Outcome(**{**record, "paths": tuple(record["paths"])})
