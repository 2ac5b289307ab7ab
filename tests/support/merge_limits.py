"""Work under a limit on the size of files: writes fail in the middle, wherever that is, in our code or below it."""

from __future__ import annotations

import resource
import signal
from pathlib import Path

from lockgate.datasets.entry import merge, write_dataset
from support.merge_sizes import large_rows


def write_under_limit(folder: str, what: str, most_bytes: int) -> None:
    # Without a handler the signal would end the process; ignored, the write fails with EFBIG as a full disk does.
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, resource.RLIM_INFINITY))
    write(folder, what)


def write(folder: str, what: str) -> None:
    if what in ("append", "overwrite"):
        write_dataset(large_rows("new"), Path(folder), mode=what)  # type: ignore[arg-type]
    else:
        merge(large_rows("new"), Path(folder), strategy="upsert", key_columns="id", engine=what)
