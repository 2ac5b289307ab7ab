"""Damaged Parquet files among the data: named, nothing written, and never a wrong row."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lockgate.datasets.entry import merge, write_dataset
from lockgate.errors import LockgateError
from support.leftovers import leftovers
from support.merge_outcomes import refusal_of

ROWS = 400


def rows(first: int, value: str = "old") -> pa.Table:
    ids = list(range(first, first + ROWS))
    return pa.table({"id": ids, "v": [f"{value} {i * 7919}" for i in ids], "n": [i * 31 for i in ids]})


@pytest.fixture
def dataset(place: Path) -> Path:
    folder = place / "data"
    folder.mkdir()
    for number in range(3):
        pq.write_table(rows(number * ROWS), folder / f"{number}.parquet")
    return folder


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {f.name: f.read_bytes() for f in folder.iterdir() if f.is_file() and f.name != ".lockgate_lock"}


def _lying_footer(good: bytes) -> bytes:
    return good[:-8] + (2**31 - 1).to_bytes(4, "little") + b"PAR1"


DAMAGES = {
    "zero bytes": lambda _: b"",
    "one byte": lambda good: good[:1],
    "cut in the middle": lambda good: good[: len(good) // 2],
    "cut in the footer": lambda good: good[:-6],
    "no footer": lambda good: good[:4] + good[-8:],
    "wrong magic": lambda good: good[:-4] + b"PARX",
    "encrypted magic": lambda good: good[:-4] + b"PARE",
    "not Parquet at all": lambda _: b"<html>404 not found</html>" * 50,
    "magic alone": lambda _: b"PAR1PAR1",
    "footer that lies about its length": _lying_footer,
    "footer of noise": lambda good: good[:-208] + bytes(range(200)) + good[-8:],
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES.keys())
@pytest.mark.parametrize("touched", [0, 1], ids=["another file is touched", "it is touched"])
def test_it_is_named_and_nothing_is_written(
    dataset: Path, damage: Callable[[bytes], bytes], touched: int, engine: str
) -> None:
    bad = dataset / "1.parquet"
    bad.write_bytes(damage(bad.read_bytes()))
    before = bytes_of(dataset)
    source = rows(touched * ROWS, "new").slice(3, 2)
    for strategy in ("upsert", "full_merge"):
        with pytest.raises(LockgateError, match=r"1\.parquet") as refused:
            merge(source, dataset, strategy=strategy, key_columns="id", engine=engine)
        assert "nothing was written" in refused.value.render()
        assert refused.value.hint
        assert bytes_of(dataset) == before
        assert leftovers(dataset) == []


def test_an_append_beside_it_is_refused_and_an_overwrite_gets_rid_of_it(dataset: Path) -> None:
    (dataset / "1.parquet").write_bytes(b"")
    before = bytes_of(dataset)
    with pytest.raises(LockgateError, match=r"1\.parquet"):
        write_dataset(rows(5_000), dataset)
    assert bytes_of(dataset) == before
    write_dataset(rows(5_000), dataset, mode="overwrite")
    assert sum(pq.read_metadata(f).num_rows for f in dataset.glob("*.parquet")) == ROWS


def flipped(good: bytes, at: int) -> bytes:
    return good[:at] + bytes([good[at] ^ 0xFF]) + good[at + 1 :]


def data_bytes(file: Path) -> range:
    """Where the pages of the file are; what follows is its footer, which stays fine."""
    footer = pq.read_metadata(file)
    chunks = [footer.row_group(0).column(i) for i in range(footer.num_columns)]
    begin = min(c.dictionary_page_offset or c.data_page_offset for c in chunks)
    return range(begin, max((c.dictionary_page_offset or c.data_page_offset) + c.total_compressed_size for c in chunks))


@pytest.mark.parametrize("compression", ["none", "snappy", "zstd"])
def test_a_page_with_a_checksum_that_does_not_match_is_never_copied(
    dataset: Path, compression: str, engine: str
) -> None:
    """The rows that are kept come from damaged pages: the merge fails, or they are as they were."""
    file = dataset / "1.parquet"
    pq.write_table(rows(ROWS), file, compression=compression, write_page_checksum=True)
    good = file.read_bytes()
    true = pq.read_table(file)
    pages = data_bytes(file)
    refused = 0
    wrong = []
    for at in range(pages.start, pages.stop, max(1, len(pages) // 12)):
        file.write_bytes(flipped(good, at))
        changed = rows(ROWS, "new").slice(3, 1)
        error = refusal_of(
            partial(merge, changed, dataset, strategy="update", key_columns="id", engine=engine)
        )  # fmt: skip
        if error:
            assert "1.parquet" in error.render()
            assert "nothing was written" in error.render()
            assert file.read_bytes() == flipped(good, at)
            refused += 1
        else:
            found = pq.read_table(file)  # compared as Arrow: damaged texts may not even be UTF-8
            if not (found.slice(0, 3).equals(true.slice(0, 3)) and found.slice(4).equals(true.slice(4))):
                wrong.append(at)
        assert leftovers(dataset) == []
    assert wrong == [], "damaged rows were copied into a file that is whole"
    assert refused > 3


@pytest.mark.parametrize("strategy", ["upsert", "update", "full_merge", "deduplicate"])
def test_keys_that_cannot_be_read_are_not_taken_for_absent(dataset: Path, strategy: str, engine: str) -> None:
    file = dataset / "1.parquet"
    chunk = pq.read_metadata(file).row_group(0).column(0)
    begin = chunk.dictionary_page_offset or chunk.data_page_offset
    good = file.read_bytes()
    file.write_bytes(good[:begin] + b"\xff" * chunk.total_compressed_size + good[begin + chunk.total_compressed_size :])
    before = bytes_of(dataset)
    with pytest.raises(LockgateError, match=r"1\.parquet") as refused:
        merge(rows(ROWS, "new").slice(3, 2), dataset, strategy=strategy, key_columns="id", engine=engine)
    assert "nothing was written" in refused.value.render()
    assert bytes_of(dataset) == before


def test_files_that_do_not_fit_each_other_are_named(dataset: Path, engine: str) -> None:
    pq.write_table(pa.table({"id": [[1]], "v": ["x"], "n": [1]}), dataset / "other.parquet")
    before = bytes_of(dataset)
    with pytest.raises(LockgateError, match="other") as refused:
        merge(rows(0, "new"), dataset, strategy="upsert", key_columns="id", engine=engine)
    assert "nothing was written" in refused.value.render()
    assert bytes_of(dataset) == before
