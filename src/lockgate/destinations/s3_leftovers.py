"""Ending the uploads that a staging area has begun. Light where there are none."""

from __future__ import annotations

from pathlib import Path

from lockgate.destinations.protocol import Surroundings
from lockgate.destinations.s3_place import storage_for
from lockgate.storage.s3_record import FOLDER, abort_uploads, uploads_of
from lockgate.storage.staging import areas


def abort_staged(area: Path, around: Surroundings) -> int:
    """Abort what the area has begun and not completed. An upload that is completed is none any more."""
    if not (area / FOLDER).is_dir():
        return 0
    claimed = frozenset(
        begun.upload for other in areas(area.parent) if other != area for begun in uploads_of(other) if begun.upload
    )
    ended = 0
    for begun in uploads_of(area):
        s3 = storage_for(around.profile.connections, begun.connection, around.storage)
        ended += abort_uploads(begun, s3, claimed)
    around.storage.remove_tree(area / FOLDER)
    return ended
