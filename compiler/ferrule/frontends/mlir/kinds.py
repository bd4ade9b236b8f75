"""The type of an MLIR function, as data: what the child process tells of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias

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
"""The dtypes of MLIR's element types; others have no whole bytes, or no array has them."""


@dataclass(frozen=True, slots=True)
class Number:
    """A scalar; `kind` is MLIR's name of its type."""

    kind: str


@dataclass(frozen=True, slots=True)
class Buffer:
    """A ranked memref, or the one that a tensor becomes: None in `shape` and `strides` is dynamic.

    Without `strides` it is compact and row-major.  `is_value`: a tensor that the function may not
    write to.
    """

    text: str
    element: str
    shape: tuple[int | None, ...]
    strides: tuple[int | None, ...] | None
    offset: int | None = 0
    is_value: bool = False


@dataclass(frozen=True, slots=True)
class Unsupported:
    """A type that no argument of a call has, and why."""

    text: str
    reason: str


Kind: TypeAlias = "Number | Buffer | Unsupported"


Place: TypeAlias = "tuple[int, int]"
"""A size: the position of an argument, and the axis."""


@dataclass(frozen=True, slots=True)
class FunctionType:
    """A function: its symbol, the names and types of its arguments, the types of its results.

    `ties`: sizes of arguments that are the same, or that number.  `written`: what writes to the
    arguments at these positions, or may.
    """

    symbol: str
    names: tuple[str, ...]
    arguments: tuple[Kind, ...]
    results: tuple[Kind, ...]
    ties: tuple[tuple[Place | int, ...], ...] = ()
    written: Mapping[int, str] = field(default_factory=dict)
