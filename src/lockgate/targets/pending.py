"""What `recover` would do to a path. Looks only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lockgate.storage import staging
from lockgate.storage.local import LocalStorage, explained
from lockgate.storage.locks import is_held
from lockgate.targets import journal
from lockgate.targets.folder import LOCK_NAME, RecoveryReport


@dataclass(frozen=True)
class Pending(RecoveryReport):
    """The report that `recover` would give, had it been let."""

    dry_run: bool = True
    writer_at_work: bool = False  # what is found may be its own; `recover` would wait for it

    def __str__(self) -> str:
        said = []
        if self.writer_at_work:
            said.append("a writer is at work, `recover` would wait for it")
        if self.finished:
            said.append(
                f"would finish the interrupted change {self.finished}: "
                f"{self.files_moved} files to move in, {self.files_removed} to remove"
            )
        if self.staging_swept:
            said.append(f"would sweep {len(self.staging_swept)} staging folder(s) of dead writers")
        if self.staging_kept:
            said.append(
                f"would keep {len(self.staging_kept)} staged result(s) of an unfinished run; `lockgate runs` shows it"
            )
        return f"{self.path}: " + ("; ".join(said) if said else "nothing to recover")


def pending(path: str | Path) -> Pending:
    """What `recover` would do now to the dataset at `path`, or beside a file.

    >>> import tempfile
    >>> print(pending(tempfile.mkdtemp()))  # doctest: +ELLIPSIS
    /...: nothing to recover
    """
    target = Path(path).resolve()
    folder = target if target.is_dir() else target.parent
    with explained("look at", folder):
        # The same code that sweeps says what it would sweep, with a storage that does nothing.
        waiting = folder != target and (folder / journal.JOURNAL_NAME).exists()  # of a dataset that was not asked about
        swept = [] if waiting else staging.sweep(_LookingStorage(), folder)
        kept = [str(p) for p in staging.areas(folder) if staging.is_sealed(p)]
        at_work = folder == target and is_held(folder / LOCK_NAME)
    change = journal.read(folder) if folder == target else None
    return Pending(
        path=str(target),
        finished=change.identity if change else None,
        files_moved=len(change.moves) if change else 0,
        files_removed=len(change.removes) if change else 0,
        staging_swept=[str(p) for p in swept],
        staging_kept=kept,
        writer_at_work=at_work,
    )


class _LookingStorage(LocalStorage):
    def _do(self, step: str, path: Path, action: Callable[[], Any]) -> Any:
        del step, path, action
