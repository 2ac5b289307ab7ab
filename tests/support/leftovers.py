"""What a finished run must not leave behind."""

from __future__ import annotations

from pathlib import Path


def leftovers(folder: Path) -> list[str]:
    """Staging folders, journals and drafts below a folder."""
    return sorted(
        str(p.relative_to(folder))
        for p in folder.rglob("*")
        if p.name.startswith((".staging", ".lockgate_journal")) or p.name in ("_temporary", "_SUCCESS")
    )
