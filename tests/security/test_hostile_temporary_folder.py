"""The folder for temporary files has a name of somebody's choice, too, and DuckDB reads and spills through it."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from lockgate.datasets.entry import write_dataset
from support.merge_elsewhere import merge_with_temporary_files_in
from support.merge_hostile_names import FILE_NAMES
from support.merge_outcomes import outcome_of
from support.merge_reading import values

PATTERNS = ["star", "two stars", "question mark", "brackets", "not brackets", "braces"]
OTHERS = ["single quote", "double quote", "drop", "newline", "unicode", "backslash", "dollar", "encoded dots"]


@pytest.mark.parametrize("name", PATTERNS + OTHERS)
def test_a_merge_is_right_or_refused(place: Path, name: str) -> None:
    temporary = place / "tmp" / FILE_NAMES[name]
    temporary.mkdir(parents=True)
    folder = place / "data"
    write_dataset(pa.table({"id": [1, 2], "v": ["old", "old"]}), folder)
    outcome = outcome_of(merge_with_temporary_files_in, str(temporary), str(folder), "duckdb")
    if outcome.error is None:
        assert values(folder, "id", "v") == {1: "old", 2: "new", 3: "new"}
    else:
        assert outcome.is_refusal, outcome.said
        assert values(folder, "id", "v") == {1: "old", 2: "old"}
    assert list(temporary.iterdir()) == [], "temporary files stay behind"
    assert [p.name for p in (place / "tmp").iterdir()] == [FILE_NAMES[name]]
