"""Ops of the kernel IR that read containers and objects of tvm-ffi; host functions alone have them.

What an op of these gets from tvm-ffi the function owns: until the call ends, or until the same op
gets the next one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from ferrule.language.ir.operation import Operation, Result
from ferrule.language.ir.values import Value

if TYPE_CHECKING:
    from ferrule.compiler.artefacts import Location

PeekPart = Literal[
    "type_index",
    "int",
    "float",
    "dtype",
    "device",
    "text",
    "text_size",
    "object",
    "tensor",
    "size",
]


@dataclass(frozen=True, slots=True)
class Method:
    """A method of a registered type, by the type's key and its own name.

    It is found when the op first runs; a type without it is an AttributeError.
    """

    type_key: str
    name: str

    def __str__(self) -> str:
        return f"{self.type_key}.{self.name}"


@dataclass(frozen=True, slots=True)
class Setter:
    """What gives a reflected field a value, as a function of an object and the value.

    It is found when the op first runs; a type without the field, and a field that is read-only, are
    an AttributeError.  A number that the field cannot hold is an OverflowError, another value that
    it cannot hold an error of its own.  A trial has the value alone, and changes nothing.
    """

    type_key: str
    name: str
    is_trial: bool = False

    def __str__(self) -> str:
        return f"{self.type_key}.{self.name}" + ("?" if self.is_trial else "")


@dataclass(frozen=True, slots=True)
class Keep:
    """What gives back its one argument, as a value that the function owns."""


@dataclass(frozen=True, slots=True)
class DTypeText:
    """What gives the name of its one argument, a dtype, as a string."""


Member = Method | Setter
"""What of a registered type can be called."""


@dataclass(frozen=True, slots=True, eq=False)
class Item(Operation, text="item {container}[{index}]", effects=("reads", "makes"), place="host"):
    """The element of an Array or List at a position (host only).

    The position is an Int64 that is known to be in it.  The result is a handle of any value.
    """

    result: Result
    container: Value
    index: Value


@dataclass(frozen=True, slots=True, eq=False)
class Field(
    Operation,
    text="field {object}, {type_key}.{name}",
    effects=("reads", "makes", "asks"),
    place="host",
):
    """A reflected field of an object, which is of the type or derived from it (host only).

    Where the field lies is found by the type's key and the field's name when the op first runs; a
    type without the field is an AttributeError.  The result is a handle of any value.
    """

    result: Result
    object: Value
    type_key: str
    name: str
    location: Location | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Peek(Operation, text="peek {part} {source}", effects=("reads",), place="host"):
    """A part of any value, or the `size` of a container (host only).

    `type_index`: an Int32.  The others mean something for values of a fitting type, and are some
    number for others: `int` and `device` an Int64, `float` a Float64, of an int too, `dtype` an
    Int32, `text` the handle of the bytes of a string or bytes, `text_size` their length, `object`
    the handle of an object, `tensor` the elements of a tensor that is an object, which is known as
    that.  A `size` is an Int64.
    """

    result: Result
    source: Value
    part: PeekPart


@dataclass(frozen=True, slots=True, eq=False)
class IsInstance(
    Operation, text="is_instance {source}, {type_key}", effects=("reads",), place="host"
):
    """Whether any value is an object of the type with this key, or of one derived from it."""

    result: Result
    source: Value
    type_key: str


ObjectOp = Item | Field | Peek | IsInstance
"""Those with one result."""

Owner = Item | Field
"""Those whose result the function owns."""
