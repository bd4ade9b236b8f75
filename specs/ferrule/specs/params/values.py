"""Text, dtypes, devices, None, and objects of tvm-ffi."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from ferrule.specs.params.base import DYNAMIC, REQUIRED, STRINGS, Plain, check_name


@dataclass(frozen=True, slots=True)
class String(Plain):
    """Text: raw, small or heap string at the call."""

    word: ClassVar[str] = "str"
    indices: ClassVar[frozenset[int]] = STRINGS


@dataclass(frozen=True, slots=True)
class Bytes(Plain):
    """Bytes: a byte array, small or heap bytes at the call."""

    word: ClassVar[str] = "bytes"
    indices: ClassVar[frozenset[int]] = frozenset({9, 12, 66})


@dataclass(frozen=True, slots=True)
class DataType(Plain):
    """A dtype as a value: a DLDataType, or its name."""

    word: ClassVar[str] = "dtype"
    indices: ClassVar[frozenset[int]] = STRINGS | {5}


@dataclass(frozen=True, slots=True)
class Device(Plain):
    """A device as a value: a DLDevice, or its name."""

    word: ClassVar[str] = "Device"
    indices: ClassVar[frozenset[int]] = STRINGS | {6}


@dataclass(frozen=True, slots=True)
class NoneValue(Plain):
    """None, and nothing else."""

    word: ClassVar[str] = "None"
    indices: ClassVar[frozenset[int]] = frozenset({0})


@dataclass(frozen=True, slots=True)
class Function(Plain):
    """A callback: a function that tvm-ffi can call."""

    word: ClassVar[str] = "Function"
    indices: ClassVar[frozenset[int]] = frozenset({68})


@dataclass(frozen=True, slots=True)
class Module(Plain):
    """A tvm-ffi module."""

    word: ClassVar[str] = "Module"
    indices: ClassVar[frozenset[int]] = frozenset({73})


@dataclass(frozen=True, slots=True)
class AnyValue(Plain):
    """Any value."""

    word: ClassVar[str] = "Any"
    indices: ClassVar[frozenset[int]] = frozenset({*range(80), DYNAMIC})


@dataclass(frozen=True, slots=True)
class AnyOrTuple(AnyValue):
    """Any value as a result; each Array in it is a tuple that the function built."""

    word: ClassVar[str] = "AnyOrTuple"


@dataclass(frozen=True, slots=True)
class Object:
    """An object of the registered type with this type key, or of a type derived from it."""

    name: str
    type_key: str
    default: Any = REQUIRED
    indices: ClassVar[frozenset[int]] = frozenset({DYNAMIC})

    def __post_init__(self) -> None:
        check_name(self.name)
        if not isinstance(self.type_key, str) or not self.type_key:
            raise ValueError(f"{self.name}: the type key must be a text, but got {self.type_key!r}")
