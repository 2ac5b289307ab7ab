"""Where merge tests put their datasets: in memory where the machine has such a folder, since syncing is their cost."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_MEMORY = Path("/dev/shm")


@contextmanager
def fast_folder() -> Iterator[Path]:
    """A new folder that is gone when the block ends."""
    beside = _MEMORY if _MEMORY.is_dir() and os.access(_MEMORY, os.W_OK | os.X_OK) else None
    with tempfile.TemporaryDirectory(prefix="lockgate-test-", dir=beside, ignore_cleanup_errors=True) as folder:
        yield Path(folder)
