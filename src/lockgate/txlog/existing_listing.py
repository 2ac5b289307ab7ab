"""What a `_delta_log` folder holds, told by the names of its files, and which versions can be read from it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from lockgate.errors import DamagedLog

_COMMIT = re.compile(r"([0-9]{20})\.json")
_MISNAMED_COMMIT = re.compile(r"[0-9]+\.json")  # some readers take any number of digits for a version
_CLASSIC = re.compile(r"([0-9]{20})\.checkpoint\.parquet")
_PART = re.compile(r"([0-9]{20})\.checkpoint\.([0-9]{10})\.([0-9]{10})\.parquet")
_NAMED = re.compile(r"([0-9]{20})\.checkpoint\.([0-9a-fA-F-]{36})\.(json|parquet)")
_CHECKSUM = re.compile(r"([0-9]{20})\.crc")
_LARGEST_VERSION = 2**63 - 1


@dataclass(frozen=True, slots=True)
class LogFile:
    """One file of the folder."""

    name: str
    size: int
    modified: int  # milliseconds since the epoch


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A whole checkpoint: one file, or all of its parts."""

    version: int
    files: tuple[LogFile, ...]


@dataclass(frozen=True, slots=True)
class LogListing:
    """The folder's commits and whole checkpoints, by version."""

    commits: Mapping[int, LogFile]
    checkpoints: Mapping[int, tuple[Checkpoint, ...]] = field(default_factory=dict)
    checksums: Mapping[int, LogFile] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReadableVersions:
    """The unbroken run of versions up to the newest one. `base` is the checkpoint it starts from; None: version 0."""

    first: int
    last: int
    base: Checkpoint | None


def sorted_out(files: Iterable[LogFile], where: str) -> LogListing:
    """The files by what their names say they are. Names that mean nothing to a Delta reader are passed over.

    >>> listing = sorted_out([LogFile("00000000000000000007.json", 1, 0), LogFile("notes.txt", 1, 0)], "t")
    >>> list(listing.commits)
    [7]
    """
    commits: dict[int, LogFile] = {}
    checksums: dict[int, LogFile] = {}
    checkpoints: dict[int, list[Checkpoint]] = {}
    parts: dict[tuple[int, int], dict[int, LogFile]] = {}
    for file in files:
        if match := _COMMIT.fullmatch(file.name):
            commits[_version(match[1], file, where)] = file
        elif _MISNAMED_COMMIT.fullmatch(file.name):
            raise DamagedLog(
                f"{where}/{file.name} is named like a commit without 20 digits; readers disagree about it",
                hint="remove it from the log's folder if it does not belong there",
            )
        elif match := _CLASSIC.fullmatch(file.name) or _NAMED.fullmatch(file.name):
            version = _version(match[1], file, where)
            checkpoints.setdefault(version, []).append(Checkpoint(version, (file,)))
        elif match := _PART.fullmatch(file.name):
            version, part, of = _version(match[1], file, where), int(match[2]), int(match[3])
            if 1 <= part <= of:
                parts.setdefault((version, of), {})[part] = file
        elif match := _CHECKSUM.fullmatch(file.name):
            checksums[_version(match[1], file, where)] = file
    for (version, of), found in parts.items():
        if len(found) == of:  # a checkpoint with parts missing is no checkpoint, says the protocol
            checkpoints.setdefault(version, []).append(Checkpoint(version, tuple(found[n] for n in range(1, of + 1))))
    return LogListing(
        commits,
        {version: tuple(sorted(each, key=_preference)) for version, each in checkpoints.items()},
        checksums,
    )


def readable_versions(listing: LogListing, where: str) -> ReadableVersions:
    """All versions that can be read without a gap up to the newest; older ones that nothing leads to are left out."""
    if not listing.commits and not listing.checkpoints:
        raise DamagedLog(
            f"{where} holds no commit and no checkpoint, so there is no Delta table",
            hint="give the folder of the table, the one that has _delta_log in it",
        )
    last = max([*listing.commits, *listing.checkpoints])
    first = last + 1
    while first - 1 in listing.commits:
        first -= 1
    if first == 0:
        return ReadableVersions(0, last, None)
    # The state of a version comes from a checkpoint of that version or from the commits since one before it.
    usable = [version for version in listing.checkpoints if first - 1 <= version <= last]
    if usable:
        base = listing.checkpoints[min(usable)][0]
        return ReadableVersions(base.version, last, base)
    raise DamagedLog(
        f"{where} has a gap: the commit of version {first - 1} is missing, and no whole checkpoint of version "
        f"{first - 1} or later stands in for it",
        hint="restore the missing file from a copy of the table",
    )


def _version(digits: str, file: LogFile, where: str) -> int:
    version = int(digits)
    if version > _LARGEST_VERSION:
        raise DamagedLog(f"{where}/{file.name} names a version that no Delta table can have")
    return version


def _preference(checkpoint: Checkpoint) -> tuple[bool, str]:
    """One file before many: it was written at once."""
    return len(checkpoint.files) > 1, checkpoint.files[0].name
