"""Whether the pages of a Parquet file carry checksums. The footer does not say; the first page's header does."""

from __future__ import annotations

import pyarrow.parquet as pq

_HEADER_BYTES = 32  # more than the fields before the checksum can take
_I32 = 5  # in Thrift's compact protocol, in the low half of a field's first byte


def has_page_checksums(path: str, footer: pq.FileMetaData) -> bool:
    """A header starts with three numbers (type, two sizes); the checksum, where there is one, is the fourth."""
    if footer.num_row_groups == 0 or footer.num_columns == 0:
        return False
    chunk = footer.row_group(0).column(0)
    starts = [chunk.data_page_offset]
    if chunk.has_dictionary_page and chunk.dictionary_page_offset:
        starts.append(chunk.dictionary_page_offset)
    with open(path, "rb") as file:
        file.seek(min(starts))
        header = file.read(_HEADER_BYTES)
    at = 0
    for _ in range(3):
        at = _after_number(header, at + 1)
    return at < len(header) and header[at] == (1 << 4) | _I32


def _after_number(header: bytes, at: int) -> int:
    """Where the number that starts here ends: every byte but its last has the high bit set."""
    while at < len(header) and header[at] & 0x80:
        at += 1
    return at + 1
