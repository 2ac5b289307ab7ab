"""merge-layer.md: "Convert `key_columns` to a normalized list of strings." """

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from lockgate.errors import LockgateError
from lockgate.merging.keys import normalize_keys


@pytest.mark.parametrize(
    ("given", "keys"),
    [("id", ["id"]), (["id"], ["id"]), (("id", "ID"), ["id", "ID"]), (['a "b"', "x__src"], ['a "b"', "x__src"])],
)
def test_convert_key_columns_to_a_normalized_list_of_strings(given: Any, keys: list[str]) -> None:
    assert normalize_keys(given) == keys


@pytest.mark.parametrize("given", [[], (), "", [""], ["id", "id"], ["id", 1], [None], None, 7, b"id", {"id"}])
def test_nonsense_is_refused(given: Any) -> None:
    with pytest.raises(ValueError) as caught:
        normalize_keys(given)
    assert isinstance(caught.value, LockgateError)
    assert caught.value.hint


def test_the_core_imports_no_engine() -> None:
    """SPEC §3: the core imports no engine; keys, strategies and counts not even Arrow."""
    modules = "lockgate.merging.keys, lockgate.merging.counts, lockgate.merging.strategy"
    script = f"import sys, {modules}; print([m for m in ('pyarrow', 'duckdb', 'pyspark') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
