"""Families of Arrow types whose values are the same, however they are laid out."""

from __future__ import annotations

import pyarrow as pa


def is_list(kind: pa.DataType) -> bool:
    kinds = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list, is_list_view)
    return any(is_kind(kind) for is_kind in kinds)


def is_text(kind: pa.DataType) -> bool:
    """
    >>> is_text(pa.large_string()), is_text(pa.binary())
    (True, False)
    """
    kinds = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
    return any(is_kind(kind) for is_kind in kinds)


def is_bytes(kind: pa.DataType) -> bool:
    """
    >>> is_bytes(pa.binary(3)), is_bytes(pa.string())
    (True, False)
    """
    kinds = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view, pa.types.is_fixed_size_binary)
    return any(is_kind(kind) for is_kind in kinds)


def is_list_view(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind))
