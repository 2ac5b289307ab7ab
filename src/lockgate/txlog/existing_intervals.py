"""From which version until which each file of an existing table is live: for all files at once."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from lockgate.errors import DamagedLog

LIVE = 2**63 - 1  # what the log stores for a file that nothing has removed
_REMOVE, _ADD = 0, 1


def with_removed_version(adds: pa.Table, removes: pa.Table, where: str) -> pa.Table:
    """The adds with two more columns. `removed_version` is that which removed the file or added it anew, else LIVE;
    `ordinal` is the file's place among those of its version.

    A file is told by its path and its deletion vector. One path is live once at most.
    """
    adds = adds.append_column("ordinal", _ordinals(adds.column("version")))
    if not adds.num_rows:
        return adds.append_column("removed_version", pa.array([], pa.int64()))
    events = _events(adds, removes)
    _refuse_repeats(events, where)
    order = pc.sort_indices(events, [("file", "ascending"), ("version", "ascending"), ("kind", "ascending")])
    events = events.take(order)
    ends = _next_of_same(events, "file", "version")
    is_add = pc.equal(events.column("kind"), _ADD)
    rows = events.filter(is_add).column("row").combine_chunks()
    ends = pc.filter(ends, is_add.combine_chunks())
    back = pc.sort_indices(rows)
    result = adds.append_column("removed_version", ends.take(back))
    _refuse_overlaps(events.filter(is_add), ends, adds, where)
    return result


def _ordinals(versions: pa.ChunkedArray) -> pa.Array:
    """0, 1, 2, … within each version; equal versions stand together."""
    counts = versions.value_counts() if len(versions) else None
    lengths = counts.field("counts").to_pylist() if counts is not None else []
    return pa.array([n for length in lengths for n in range(length)], pa.int64())


def _events(adds: pa.Table, removes: pa.Table) -> pa.Table:
    paths = pa.chunked_array([*adds.column("path").chunks, *removes.column("path").chunks], pa.string())
    vectors = pa.chunked_array(
        [*adds.column("deletion_vector_id").chunks, *removes.column("deletion_vector_id").chunks], pa.string()
    )
    path = _codes(paths)
    if vectors.null_count == len(vectors):
        file = path
    else:
        vector = _codes(pc.fill_null(vectors, ""))
        file = pc.add(pc.multiply(path, pc.add(pc.max(vector), 1)), vector)
    kinds = [_ADD] * adds.num_rows, [_REMOVE] * removes.num_rows
    return pa.table(
        {
            "file": file,
            "path": path,
            "version": pa.chunked_array(
                [*adds.column("version").chunks, *removes.column("version").chunks], pa.int64()
            ).combine_chunks(),
            "kind": pa.array([*kinds[0], *kinds[1]], pa.int8()),
            "row": pa.array([*range(adds.num_rows), *range(removes.num_rows)], pa.int64()),
        }
    )


def _codes(texts: pa.ChunkedArray) -> pa.Array:
    """A number for each distinct text; numbers sort many times faster."""
    return texts.combine_chunks().dictionary_encode().indices.cast(pa.int64())


def _next_of_same(events: pa.Table, key: str, value: str) -> pa.Array:
    """For each row the next row's value where that is of the same key, else LIVE. The rows are sorted by key."""
    keys, values = events.column(key).combine_chunks(), events.column(value).combine_chunks()
    same = pc.equal(keys.slice(1), keys.slice(0, len(keys) - 1))
    after = pc.if_else(same, values.slice(1), pa.scalar(LIVE, pa.int64()))
    return pa.concat_arrays([after, pa.array([LIVE], pa.int64())])


def _refuse_repeats(events: pa.Table, where: str) -> None:
    """One commit may add a path once and remove it once, and may not do both to one file."""
    for keys in (["path", "version", "kind"], ["file", "version"]):
        counts = events.group_by(keys).aggregate([("row", "count")])
        repeated = counts.filter(pc.greater(counts.column("row_count"), 1))
        if repeated.num_rows:
            version = repeated.column("version")[0].as_py()
            raise DamagedLog(f"{where}: version {version} says two things of one file")


def _refuse_overlaps(found: pa.Table, ends: pa.Array, adds: pa.Table, where: str) -> None:
    """Two rows of one path that live at once would show rows twice."""
    lives = pa.table({"path": found.column("path"), "start": found.column("version"), "row": found.column("row")})
    lives = lives.append_column("end", ends)
    lives = lives.take(pc.sort_indices(lives, [("path", "ascending"), ("start", "ascending")]))
    later = _next_of_same(lives, "path", "start")
    overlaps = lives.filter(pc.less(later, lives.column("end").combine_chunks()))
    if overlaps.num_rows:
        path = adds.column("path")[overlaps.column("row")[0].as_py()].as_py()
        raise DamagedLog(f"{where} adds the file {path!r} with another deletion vector and does not remove it before")
