"""Ops of the kernel IR that read containers and objects of tvm-ffi; only host functions have them.

The function owns each reference that such an op gets from tvm-ffi: until the call ends, or until
the same op gets the next one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from ferrule.language.ir.operation import Operation, Result
from ferrule.language.ir.values import Value
from ferrule.specs.deferred import dataclass

__all__ = [  # names of `ops`
    "DTypeText",
    "Field",
    "IsInstance",
    "Item",
    "Keep",
    "Member",
    "Method",
    "ObjectOp",
    "Peek",
    "PeekPart",
    "Setter",
]

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

    It is looked up when the op first runs; a type without it is an AttributeError.
    """

    type_key: str
    name: str

    def __str__(self) -> str:
        return f"{self.type_key}.{self.name}"


@dataclass(frozen=True, slots=True)
class Setter:
    """The setter of a reflected field, as a function of an object and the value.

    It is looked up when the op first runs; a type without the field, and a read-only field, are an
    AttributeError.  A number that the field cannot hold is an OverflowError, another unsuitable
    value an error of the setter.  A trial has only the value as its argument, and changes nothing.
    """

    type_key: str
    name: str
    is_trial: bool = False

    def __str__(self) -> str:
        return f"{self.type_key}.{self.name}" + ("?" if self.is_trial else "")


@dataclass(frozen=True, slots=True)
class Keep:
    """The function that returns its only argument, as a value that the calling function owns."""


@dataclass(frozen=True, slots=True)
class DTypeText:
    """The function that returns the name of its only argument, a dtype, as a string."""


Member = Method | Setter
"""Callable members of a registered type."""


@dataclass(frozen=True, slots=True, eq=False)
class Item(Operation, text="item {container}[{index}]", effects=("reads", "makes"), place="host"):
    """The element of an Array or List at a position (host only).

    The position is an Int64 that is known to be in range.  The result is a handle of any value.
    """

    result: Result
    container: Value
    index: Value

    @property
    def kept(self) -> int:
        """See `Operation`."""
        return 1


@dataclass(frozen=True, slots=True, eq=False)
class Field(
    Operation,
    text="field {object}, {type_key}.{name}",
    effects=("reads", "makes", "asks"),
    place="host",
):
    """A reflected field of an object, which is of the type or a derived one (host only).

    The field's offset is looked up by the type's key and the field's name when the op first runs; a
    type without the field is an AttributeError.  The result is a handle of any value.
    """

    result: Result
    object: Value
    type_key: str
    name: str
    location: Location | None = None

    @property
    def kept(self) -> int:
        """See `Operation`."""
        return 1


@dataclass(frozen=True, slots=True, eq=False)
class Peek(Operation, text="peek {part} {source}", effects=("reads",), place="host"):
    """A part of any value, or the `size` of a container (host only).

    `type_index`: an Int32.  The others are meaningful for values of a fitting type, and arbitrary
    for others: `int` and `device` an Int64, `float` a Float64, also of an int, `dtype` an Int32,
    `text` the handle of the bytes of a string or bytes, `text_size` their length, `object` the
    handle of an object, `tensor` the elements of a tensor object, which is known as one.  A `size`
    is an Int64.
    """

    result: Result
    source: Value
    part: PeekPart


@dataclass(frozen=True, slots=True, eq=False)
class IsInstance(
    Operation, text="is_instance {source}, {type_key}", effects=("reads",), place="host"
):
    """Whether any value is an object of the type with this key, or of a derived type."""

    result: Result
    source: Value
    type_key: str


ObjectOp = Item | Field | Peek | IsInstance
"""Ops with one result."""

Owner = Item | Field
"""Ops whose result the function owns."""
