from __future__ import annotations

from typing import Any

import pytest

from lockgate.errors import LockgateError
from lockgate.merging.order import parse_order_by


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("id", ("id", False, True)),
        ("id ASC", ("id", False, True)),
        ("updated_at DESC", ("updated_at", True, False)),
        ("  updated_at   dEsC  ", ("updated_at", True, False)),
        ("a nulls last", ("a", False, False)),
        ("a asc nulls last", ("a", False, False)),
        ("a desc nulls first", ("a", True, True)),
        ("a DESC NULLS  LAST", ("a", True, False)),
        ('"odd name" desc nulls last', ("odd name", True, False)),
        ('"odd name"desc', ("odd name", True, False)),
        ('"say ""hi"""', ('say "hi"', False, True)),
        ("`back tick` DESC", ("back tick", True, False)),
        ("`a``b`", ("a`b", False, True)),
        ('"a, b" DESC', ("a, b", True, False)),
        ("desc", ("desc", False, True)),
        ("desc desc", ("desc", True, False)),
        ("nulls nulls last", ("nulls", False, False)),
        ("größe DESC", ("größe", True, False)),
        ("2024_sales", ("2024_sales", False, True)),
        ("description", ("description", False, True)),
    ],
)
def test_an_item_as_sql_spells_it_with_the_defaults_of_spark(text: str, key: tuple[str, bool, bool]) -> None:
    assert parse_order_by(text) == [key]
    assert parse_order_by([text]) == [key]


def test_several_items_in_one_string_or_many() -> None:
    expected = [("updated_at", True, False), ("id", False, True)]
    assert parse_order_by("updated_at DESC, id") == expected
    assert parse_order_by(["updated_at DESC", "id"]) == expected
    assert parse_order_by(()) == []


@pytest.mark.parametrize(
    "order_by",
    [
        "", " ", ",", "id,", ",id", "id DOWN", "id desc desc", "odd name", "a-b", "a.b", "1", '"id', '""',
        "id; DROP TABLE x", "id nulls", "id nulls middle",
        "lower(id)", ["id", ""], ["id", 1], [None], 7, b"id", "id, id DESC",
    ],
)  # fmt: skip
def test_nonsense_is_refused(order_by: Any) -> None:
    with pytest.raises(ValueError) as caught:
        parse_order_by(order_by)
    assert isinstance(caught.value, LockgateError)
    assert "order_by" in caught.value.message
    assert caught.value.hint
