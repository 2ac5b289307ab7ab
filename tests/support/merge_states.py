"""The two states between which an interrupted write must choose."""

from __future__ import annotations

import shutil
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from support.merge_faults import NumberedSteps
from support.merge_reading import Row, all_rows, by_file, data_files
from support.merge_scenarios import Scenario, checksum_file, digest


@dataclass(frozen=True)
class States:
    """A scenario's dataset before and after, and the steps between."""

    before: Path
    after: Path
    recorded: list[tuple[str, Path]]
    old: Counter[Row]
    new: Counter[Row]
    old_files: dict[str, list[Row]]
    new_files: dict[str, list[Row]]

    @classmethod
    def of(cls, scenario: Scenario, engine: str, place: Path) -> States:
        before, after = place / "before", place / "after"
        scenario.prepare(before)
        if before.exists():
            shutil.copytree(before, after)
        storage = NumberedSteps()
        scenario.act(after, engine, storage)
        states = cls(
            before, after, storage.steps, all_rows(before), all_rows(after), by_file(before), by_file(after)
        )  # fmt: skip
        assert states.old != states.new
        return states

    @property
    def steps(self) -> int:
        return len(self.recorded)

    def step_of(self, step: str, name: str) -> int:
        return next(i for i, (s, path) in enumerate(self.recorded) if s == step and path.name == name)

    def fresh(self, folder: Path) -> Path:
        """A dataset in the old state, in a folder of its own inside `folder`."""
        folder.mkdir(exist_ok=True)
        if self.before.exists():
            shutil.copytree(self.before, folder / "data")
        return folder / "data"

    def assert_files_whole(self, folder: Path, at: object) -> None:
        """What a reader sees before any recovery: every file as it was or as it will be, none in between."""
        old, new = self.old_files, self.new_files
        for file in data_files(folder):
            if checksum_file(file).exists():
                assert checksum_file(file).read_text() == digest(file), f"{file.name} has a stale checksum at step {at}"
        for name, rows in by_file(folder).items():
            if name in old:
                assert rows in (old[name], new.get(name)), f"{name} is torn at step {at}"
            else:
                fresh = [r for n, r in new.items() if n not in old and Path(n).parent == Path(name).parent]
                assert rows in fresh, f"{name} is torn at step {at}"
