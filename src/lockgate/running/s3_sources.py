"""Sources on S3: their objects are brought to this machine before Spark starts, for the time of the run.

Spark has no filesystem for S3 without jars that are not on PyPI. So what a path names is downloaded, under the names
that it has there, and Spark reads the copies as it reads any local files: patterns, partition folders and all.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from lockgate.config import Project
from lockgate.errors import LockgateError, SourceError
from lockgate.language.diagnostics import Diagnostic
from lockgate.language.statements import SourceStep
from lockgate.plan.source_types import format_of_source
from lockgate.plan.steps import Plan, Step
from lockgate.running.progress import Progress
from lockgate.storage.local import LocalStorage
from lockgate.storage.s3 import S3Object, S3Storage
from lockgate.storage.s3_address import S3Address, is_s3, parse_address
from lockgate.storage.s3_settings import chosen_settings
from lockgate.storage.staging import StagingArea
from lockgate.targets.folder import is_hidden, sweep_dead_staging
from lockgate.targets.s3_folder import S3Folder

_PATTERN = re.compile(r"[*?\[{]")
_AT_ONCE = 8


@contextmanager
def local_sources(
    plan: Plan,
    project: Project,
    run: str,
    storage: LocalStorage,
    progress: Progress,
    *,
    local: bool,
    looking: bool = False,
) -> Iterator[Plan]:
    """The plan with its sources on S3 replaced by copies, which are gone when the block ends. `looking`: an interrupted
    write to one of them is refused and not finished."""
    if not any(_is_on_s3(step) for step in plan.steps):
        yield plan
        return
    if not local and not project.profile.staging:
        raise SourceError(
            "sources on S3 are brought to this machine, whose files a Spark elsewhere does not see",
            in_place="nothing was run",
            hint="set the profile's `staging` to a folder that Spark's workers see too",
        )
    folder = project.root / project.profile.staging if project.profile.staging else project.state / "sources"
    sweep_dead_staging(storage, folder)
    area = StagingArea.create(storage, folder.resolve(), f"{run}-sources")
    try:
        found = {n: _find(s, project, storage, looking) for n, s in enumerate(plan.steps) if _is_on_s3(s)}  # all first
        steps = list(plan.steps)
        for number, (s3, objects) in found.items():
            step = steps[number]
            size = sum(each.size for each in objects)
            with progress.working(
                f"downloading {step.name}: {len(objects):,} objects, {size:,} bytes", watch=area.path
            ):
                _download(s3, objects, area.path / f"{number}")
            progress.done(step.name, f"{len(objects):,} objects, {size:,} bytes downloaded")
            steps[number] = _reading_from(step, area.path / f"{number}")
        yield replace(plan, steps=tuple(steps))
    finally:
        area.discard()


def _is_on_s3(step: Step) -> bool:
    return isinstance(step.statement, SourceStep) and any(is_s3(p) for p in _paths(step.statement))


def _paths(source: SourceStep) -> list[str]:
    path = source.params.get("path")
    return [p for p in (path if isinstance(path, list) else [path]) if isinstance(p, str)]


def _kind(source: SourceStep) -> str:
    kind = str(source.connector_type).upper()
    return format_of_source(source.params) or kind if kind == "S3" else kind


def _find(step: Step, project: Project, storage: LocalStorage, looking: bool) -> tuple[S3Storage, list[S3Object]]:
    """The objects that a source names. Raised now, before Spark is started: a path that names none."""
    source = step.statement
    assert isinstance(source, SourceStep)
    s3 = S3Storage(chosen_settings(project.profile.connections, source.params.get("connection")), storage)
    found: dict[S3Address, S3Object] = {}
    for path in _paths(source):
        address = parse_address(path)
        try:
            if _kind(source) == "PARQUET":
                _finish(S3Folder(_literal(address), s3), f"{step.name}-{project.profile.name}", looking)
            here = [each for each in s3.objects(_literal(address)) if _matches(each.address, address)]
        except LockgateError as error:
            message = f"the source {source.name} cannot be read: {error.message}"
            raise SourceError(
                Diagnostic(source.params_place, "source", message, error.hint).render(), in_place="nothing was run"
            ) from error
        if not here:
            message = f"the source {source.name} reads {path}, and there is no such object"
            missing = Diagnostic(source.params_place, "missing-file", message)
            raise SourceError(missing.render(), in_place="nothing was run")
        found |= {each.address: each for each in here}
    return s3, list(found.values())


def _finish(folder: S3Folder, identity: str, looking: bool) -> None:
    """So that a source reads all old or all new, an interrupted write to its dataset is finished first."""
    if folder.is_unfinished():
        with folder.opened(f"reader-{identity}", dry_run=looking):
            pass


def _literal(address: S3Address) -> S3Address:
    """What stands before the first pattern, up to a slash."""
    pattern = _PATTERN.search(address.key)
    if pattern is None:
        return S3Address(address.bucket, address.key.rstrip("/"))
    return S3Address(address.bucket, address.key[: pattern.start()].rpartition("/")[0])


def _matches(found: S3Address, asked: S3Address) -> bool:
    """Whether Spark, were these files, would read this one: it is named itself, or lies below what is named."""
    named = asked.key.rstrip("/")
    have, want = found.key.split("/"), named.split("/") if named else []
    if len(have) < len(want) or found.key.endswith("/") or "" in have:
        return False
    if any(is_hidden(part) for part in have[len(want) :]):
        return False
    return all(re.fullmatch(_expression(w), h) for h, w in zip(have, want, strict=False))


def _expression(pattern: str) -> str:
    """Spark's pattern of one part of a path as a regular expression.

    >>> bool(re.fullmatch(_expression("day_{1,2}*.csv"), "day_2b.csv"))
    True
    """
    out, depth, at = "", 0, 0
    while at < len(pattern):
        sign = pattern[at]
        closing = pattern.find("]", at + 2) if sign == "[" else -1
        if sign == "[" and closing > 0:
            inner = pattern[at + 1 : closing].replace("\\", "\\\\")
            out += "[^" + inner[1:] + "]" if inner[0] in "!^" else f"[{inner}]"
            at = closing
        elif sign == "{":
            out, depth = out + "(?:", depth + 1
        elif sign == "}" and depth:
            out, depth = out + ")", depth - 1
        elif sign == "," and depth:
            out += "|"
        else:
            out += {"*": ".*", "?": "."}.get(sign, re.escape(sign))
        at += 1
    return out + ")" * depth


def _download(s3: S3Storage, objects: list[S3Object], folder: Path) -> None:
    def bring(each: S3Object) -> None:
        copy = folder / each.address.bucket / each.address.key
        copy.parent.mkdir(parents=True, exist_ok=True)
        with copy.open("xb") as file:
            s3.download(each.address, each.etag, file.write)

    with ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="download") as pool:
        try:
            for _ in pool.map(bring, objects):
                pass
        except BaseException as error:
            pool.shutdown(wait=True, cancel_futures=True)
            if isinstance(error, OSError):
                raise SourceError(
                    f"objects of S3 could not be copied to {folder}: {error.strerror or error}",
                    in_place="nothing was published; every destination is as it was",
                    hint="free some space there, or set the profile's `staging` to a folder with more",
                ) from error
            raise


def _reading_from(step: Step, folder: Path) -> Step:
    """The same step, as one that reads the copies."""
    source = step.statement
    assert isinstance(source, SourceStep)
    params = {name: value for name, value in source.params.items() if name not in ("connection", "format")}
    paths = [folder / a.bucket / a.key.rstrip("/") for a in map(parse_address, _paths(source))]
    local = replace(source, connector_type=_kind(source), params={**params, "path": [str(p) for p in paths]})
    return replace(step, statement=local)
