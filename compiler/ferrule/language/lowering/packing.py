"""Dtypes whose elements share bytes; `tensors/packed` has the code for them."""

from __future__ import annotations

from typing import Final

from ferrule.specs import (
    DType,
    Float4E2M1FN,
    Float6E2M3FN,
    Float6E3M2FN,
    Float32,
    Int4,
    Int8,
    Uint4,
    Uint8,
)

PACKED: Final[dict[DType, DType]] = {
    Int4: Int8,
    Uint4: Uint8,
    **dict.fromkeys((Float4E2M1FN, Float6E2M3FN, Float6E3M2FN), Float32),
}
"""Elements that share bytes, and the dtype of one that is read."""


def in_groups(dtype: DType) -> str:
    """The hint for elements that share bytes: how they are written together."""
    count, word = (2, "two") if dtype.bits == 4 else (4, "four")
    return f"fe.zipped_divide(a, ({count},))[None, i].store(v), with a vector v of {word} numbers"


def sharing(dtype: DType) -> str:
    """How many elements share bytes, in words."""
    return "two share one" if dtype.bits == 4 else "four share three"
