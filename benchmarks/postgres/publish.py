"""What an export into PostgreSQL does once Spark has written its rows; in a process of its own, for its memory."""

from __future__ import annotations

import json
import os
import resource
import shutil
import sys
import time
from pathlib import Path


def main() -> None:
    given = json.loads(sys.argv[1])
    import adbc_driver_postgresql.dbapi
    import pyarrow.compute
    import pyarrow.parquet

    from lockgate.config import Connection, Profile
    from lockgate.destinations import registry
    from lockgate.destinations.protocol import ExportRequest, StagedRows, Surroundings
    from lockgate.storage.local import LocalStorage
    from lockgate.storage.staging import StagingArea

    del adbc_driver_postgresql, pyarrow  # imports are nobody's time
    work = Path(given["work"])
    profile = Profile(connections={"pg": Connection("pg", "postgres", {"url": given["url"]})})
    request = ExportRequest(
        "public.target",
        "POSTGRES",
        given["mode"],
        {"connection": "pg"},
        keys=("id",) if given["mode"] == "UPSERT" else (),
        project=work,
        profile=profile,
        run="bench",
    )
    destination = registry.find("POSTGRES")
    assert destination is not None
    area = StagingArea.create(LocalStorage(), destination.staging_place(request), "bench-1")
    shutil.copytree(given["parts"], area.rows)
    parts = tuple(sorted(area.rows.glob("*.parquet")))
    os.sync()

    began, used = time.perf_counter(), time.process_time()
    prepared = destination.stage(request, area, StagedRows(area.rows, parts, ()))
    staged = time.perf_counter()
    outcome = destination.publish(prepared, Surroundings(LocalStorage(), work, profile))
    ended = time.perf_counter()
    result = {
        "stage": staged - began,
        "publish": ended - staged,
        "seconds": ended - began,
        "cpu": time.process_time() - used,
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "counts": [outcome.inserted, outcome.updated, outcome.deleted],
    }
    area.release()
    print(json.dumps(result))


if __name__ == "__main__":
    main()
