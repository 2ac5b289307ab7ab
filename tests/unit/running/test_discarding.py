"""What was staged is removed by its destination, which alone knows where it is, wherever a run comes to its end."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from lockgate.destinations import registry
from lockgate.destinations.csv import CsvDestination
from lockgate.destinations.protocol import Prepared, Surroundings
from lockgate.errors import PartialPublish, PublishError, StageError, StorageError
from lockgate.running.progress import Silent
from lockgate.running.settle import resume
from lockgate.running.state import RunState
from lockgate.storage.local import LocalStorage
from support.arrow_run import arrow_run, export
from support.leftovers import leftovers

RUN = "2026-01-01T00-00-00-aaaa"
ONE = pa.table({"id": [1]})


class Elsewhere(CsvDestination):
    """A destination that stages something outside of its area too, as one on a server would."""

    type = "ELSEWHERE"

    def stage(self, request, area, rows):
        if request.destination.endswith("refused.csv"):
            raise StageError("refused")
        prepared = super().stage(request, area, rows)
        self._upload(prepared).write_text("")
        return prepared

    def publish(self, prepared, around):
        if Path(prepared.instructions["final"]).name == "stuck.csv":
            raise StorageError("stuck")
        return super().publish(prepared, around)

    def discard(self, prepared, around):
        self._upload(prepared).unlink(missing_ok=True)
        super().discard(prepared, around)

    @staticmethod
    def _upload(prepared: Prepared) -> Path:
        final = Path(prepared.instructions["final"])
        return final.parent.parent / f"upload-{final.stem}"


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    found, there = registry.find, Elsewhere()
    monkeypatch.setattr(registry, "find", lambda name: there if name.upper() == "ELSEWHERE" else found(name))


def to(*names: str) -> list:
    return [(export(f"out/{name}.csv", "ELSEWHERE"), ONE) for name in names]


def uploads(project: Path) -> list[str]:
    return sorted(p.name for p in project.glob("upload-*"))


def test_after_publishing(tmp_path: Path) -> None:
    arrow_run(tmp_path, to("a", "b")).execute()
    assert uploads(tmp_path) == []
    assert leftovers(tmp_path) == []


def test_after_a_failure_while_staging(tmp_path: Path) -> None:
    """Nothing of it is on record yet: the run itself knows what it has prepared."""
    with pytest.raises(StageError):
        arrow_run(tmp_path, to("a", "refused")).execute()
    assert uploads(tmp_path) == []
    assert leftovers(tmp_path) == []


def test_after_the_first_export_could_not_be_published(tmp_path: Path) -> None:
    with pytest.raises(PublishError):
        arrow_run(tmp_path, to("stuck", "b")).execute()
    assert uploads(tmp_path) == []
    assert leftovers(tmp_path) == []


def test_kept_for_resume_and_given_up_by_a_superseding_run(tmp_path: Path) -> None:
    with pytest.raises(PartialPublish):
        arrow_run(tmp_path, to("a", "stuck"), run=RUN).execute()
    assert uploads(tmp_path) == ["upload-stuck"]
    with pytest.raises(PartialPublish):
        resume(
            RUN,
            RunState(tmp_path / ".lockgate"),
            Surroundings(LocalStorage()),
            Silent(),
            lambda: datetime(2026, 1, 1, tzinfo=UTC),
        )
    assert uploads(tmp_path) == ["upload-stuck"]
    arrow_run(tmp_path, to("a"), run="2026-01-02T00-00-00-bbbb", supersede=True).execute()
    assert uploads(tmp_path) == []
    assert leftovers(tmp_path) == []


def test_a_destination_that_is_not_installed_any_more_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(PartialPublish):
        arrow_run(tmp_path, to("a", "stuck"), run=RUN).execute()
    monkeypatch.setattr(registry, "find", lambda name: None if name == "ELSEWHERE" else CsvDestination())
    with pytest.raises(Exception, match="ELSEWHERE, which is not installed"):
        arrow_run(
            tmp_path, [(export("out/a.csv", "CSV"), ONE)], run="2026-01-02T00-00-00-bbbb", supersede=True
        ).execute()
    assert uploads(tmp_path) == ["upload-stuck"]
