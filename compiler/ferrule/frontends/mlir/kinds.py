"""The type of an MLIR function as data, which the child process returns."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field
from typing import Any, Final, TypeAlias

from ferrule.specs.deferred import dataclass

DTYPES: Final = {
    "index": "int64",
    "i1": "bool",
    **{f"{kind}{bits}": f"int{bits}" for kind in ("i", "si") for bits in (8, 16, 32, 64)},
    **{f"ui{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "f64": "float64",
    "complex<f32>": "complex64",
    "complex<f64>": "complex128",
    "f8E4M3FN": "float8_e4m3fn",
    "f8E4M3FNUZ": "float8_e4m3fnuz",
    "f8E4M3B11FNUZ": "float8_e4m3b11fnuz",
    "f8E4M3": "float8_e4m3",
    "f8E3M4": "float8_e3m4",
    "f8E5M2": "float8_e5m2",
    "f8E5M2FNUZ": "float8_e5m2fnuz",
    "f8E8M0FNU": "float8_e8m0fnu",
}
"""The dtypes for MLIR's element types; other types have no whole bytes, or no array has them."""


@dataclass(frozen=True, slots=True)
class Number:
    """A scalar; `kind` is the MLIR name of its type."""

    kind: str


@dataclass(frozen=True, slots=True)
class Buffer:
    """A ranked memref, or the one that a tensor becomes: None in `shape` and `strides` is dynamic.

    Without `strides` it is compact and row-major.  `is_value`: it is a tensor to which the function
    must not write.  `inner`: so many of the last dims are those of vectors, which are its elements
    in MLIR.  `align`: the alignment in bytes that the code needs, None for that of the element.
    """

    text: str
    element: str
    shape: tuple[int | None, ...]
    strides: tuple[int | None, ...] | None
    offset: int | None = 0
    is_value: bool = False
    inner: int = 0
    align: int | None = None


@dataclass(frozen=True, slots=True)
class Unsupported:
    """A type that no argument of a call can have, and the reason."""

    text: str
    reason: str


_VECTOR: Final = re.compile(r"vector<((?:\d+x)+)(f16|bf16|f32|f64|index|i8|i16|i32|i64)>")


def vector(element: str) -> tuple[tuple[int, ...], str] | None:
    """The shape and the type of the elements of a vector whose rows are in memory as those of a
    tensor, without gaps; None for another type."""
    found = _VECTOR.fullmatch(element)
    if found is None:
        return None
    sizes = tuple(int(each) for each in found[1].split("x")[:-1])
    return (sizes, found[2]) if sizes[-1].bit_count() == 1 else None


Kind: TypeAlias = "Number | Buffer | Unsupported"


Place: TypeAlias = "tuple[int, int]"
"""A size: the position of an argument, and the axis."""


@dataclass(frozen=True, slots=True)
class Tie:
    """Sizes of arguments that are equal, or equal to a number; they are multiples of a number, and
    fit into 32 bits if `is_small`."""

    places: tuple[Place | int, ...]
    multiple: int = 1
    is_small: bool = False


Ties: TypeAlias = "tuple[Tie, ...]"


@dataclass(frozen=True, slots=True)
class FunctionType:
    """A function: its symbol, the names and types of its arguments, the types of its results.

    `ties`: what the function requires of sizes of arguments; `relations`: sizes that equal an
    `expressions.Expression`.  With `relies` only the call checks them.
    `written`: for the
    arguments at these positions, the operation that writes to them, or may.
    """

    symbol: str
    names: tuple[str, ...]
    arguments: tuple[Kind, ...]
    results: tuple[Kind, ...]
    ties: Ties = ()
    relations: tuple[tuple[Place, Any], ...] = ()
    relies: bool = False
    written: Mapping[int, str] = field(default_factory=dict)
