"""The arguments of a call as plain data, one class for each kind of value that tvm-ffi passes.

None, bool, int and float stand for themselves; an int that does not fit 64 bits is a `Big`.  What
no library would hand out can be written down too: null pointers, negative sizes, missing strides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias


@dataclass(frozen=True)
class View:
    """A tensor, of which nothing but the description exists.

    `shape` and `strides` are those of the DLTensor; without strides it has DLPack's null pointer.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...] | None
    dtype: int = 0x00012002
    device: tuple[int, int] = (1, 0)
    data: int = 4096
    byte_offset: int = 0
    owned: bool = False


@dataclass(frozen=True)
class NullView:
    """A DLTensor pointer that is null."""


@dataclass(frozen=True)
class Big:
    """An int that arrives as a BigInt: two words at least."""

    value: int


@dataclass(frozen=True)
class Opaque:
    """An opaque pointer."""

    address: int


@dataclass(frozen=True)
class Text:
    """A string in one of its three forms; a small one has at most 7 bytes, a raw one no NUL."""

    data: bytes
    form: Literal["raw", "small", "heap"]


@dataclass(frozen=True)
class Blob:
    """Bytes in one of their three forms."""

    data: bytes
    form: Literal["array", "small", "heap"]


@dataclass(frozen=True)
class Numbers:
    """An ffi.Shape."""

    values: tuple[int, ...]


@dataclass(frozen=True)
class Items:
    """An ffi.Array or ffi.List."""

    items: tuple[Argument, ...]
    form: Literal["array", "list"] = "array"


@dataclass(frozen=True)
class Pairs:
    """An ffi.Map or ffi.Dict of ints, floats, strings and the like."""

    pairs: tuple[tuple[Argument, Argument], ...]
    form: Literal["map", "dict"] = "map"


@dataclass(frozen=True)
class Dtype:
    """A DLDataType: its four bytes."""

    code: int


@dataclass(frozen=True)
class Dev:
    """A DLDevice."""

    type: int
    index: int


@dataclass(frozen=True)
class Handle:
    """An object of this type, with nothing in it."""

    type_key: str


@dataclass(frozen=True)
class Moved:
    """An object that the caller gives away: a reference to its handle."""

    item: View


Argument: TypeAlias = (
    View
    | NullView
    | Big
    | Opaque
    | Text
    | Blob
    | Numbers
    | Items
    | Pairs
    | Dtype
    | Dev
    | Handle
    | Moved
    | None
    | bool
    | int
    | float
)

STATIC: Final = {
    "ffi.Object": 64,
    "ffi.Error": 67,
    "ffi.Function": 68,
    "ffi.Module": 73,
    "ffi.OpaquePyObject": 74,
}
"""Type indices of the object types that a `Handle` can be of, but for those of the tests."""
BASE: Final = "ferrule_tests.Base"
DERIVED: Final = "ferrule_tests.Derived"
OTHER: Final = "ferrule_tests.Other"
PARENTS: Final = {BASE: "ffi.Object", DERIVED: BASE, OTHER: "ffi.Object"}
"""Object types that the tests register, each with its parent."""
UNREGISTERED: Final = "ferrule_tests.Unregistered"

INT64: Final = (-(1 << 63), (1 << 63) - 1)


def compact(shape: Sequence[int]) -> tuple[int, ...]:
    """Row-major strides."""
    strides, running = [], 1
    for size in reversed(shape):
        strides.append(running)
        running *= size
    return tuple(reversed(strides))


def fits(number: int) -> bool:
    """Whether a number is one of 64 bits."""
    return INT64[0] <= number <= INT64[1]


def derives(key: str, base: str) -> bool:
    """Whether objects of type `key` are objects of type `base`."""
    while key != base:
        if key == "ffi.Object":
            return False
        key = PARENTS.get(key, "ffi.Object")
    return True


def type_key_of(argument: Argument) -> str | None:
    """The type of an object, or None for what is none."""
    match argument:
        case Handle(type_key):
            return type_key
        case View(owned=True):
            return "ffi.Tensor"
        case Text(form="heap"):
            return "ffi.String"
        case Blob(form="heap"):
            return "ffi.Bytes"
        case Big():
            return "ffi.BigInt"
        case Numbers():
            return "ffi.Shape"
        case Items(form=form) | Pairs(form=form):
            return f"ffi.{form.capitalize()}"
    return None
