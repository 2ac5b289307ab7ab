"""The engine's own database in memory. It is opened and closed beside other work: to open it takes as long as reading
the footers of a dataset does, and to close it as long as a commit."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import duckdb

from lockgate.engines.duckdb_version import duckdb_version


class OwnDatabase:
    """Use it in a `with` block. `begin` begins to open it; `connection` waits until it is there."""

    def __init__(self, spill: Path) -> None:
        self._spill = spill  # a folder that DuckDB makes when it needs it
        self._beside = ThreadPoolExecutor(1, thread_name_prefix="lockgate-duckdb")
        self._opening: Future[Any] | None = None

    def __enter__(self) -> OwnDatabase:
        return self

    def __exit__(self, *_: object) -> None:
        self.let_go()
        self._beside.shutdown(wait=True)

    def begin(self) -> None:
        """Open it, and wait for nothing. One that was let go is opened anew."""
        if self._opening is None:
            self._opening = self._beside.submit(self._open)

    def connection(self) -> Any:
        self.begin()
        assert self._opening is not None
        return self._opening.result()

    def let_go(self) -> None:
        """Close the database, and wait for nothing."""
        opening, self._opening = self._opening, None
        if opening is not None:
            self._beside.submit(lambda: opening.result().close())

    def _open(self) -> Any:
        connection = duckdb.connect(config={"temp_directory": str(self._spill)})
        duckdb_version(connection)  # asked now, so that nobody waits for the answer
        return connection
