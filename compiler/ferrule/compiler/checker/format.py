"""What a check program is made of: rows of 8, 12 or 16 bytes, little-endian.

A row is an operation with its operands `kind`, `axis`, `a` and `b`.  `a` is a number of a path, a
row to go to (how many bytes it is behind the first), the offset of a text, or the number of a
symbol; `b` a number or bits.  `b` takes no bytes where it is 0, and 4 where it fits them: the two
upper bits of the operation say how many.  Rows work on a
few registers: the value at the path that `AT` chose, the number that was loaded last, and a stack
for expressions.  Every operation has one handler in the interpreter.
"""

from __future__ import annotations

import struct
from enum import IntEnum, auto
from typing import Final

from ferrule.runtime.llvm.layouts import I8, I16, I32, Field, Layout

ROW: Final = Layout(
    "Row",
    [Field("op", I8), Field("kind", I8), Field("axis", I16), Field("a", I32)],
)
"""A row without `b`, which stands behind it."""
_ROW: Final = struct.Struct("<BBHI")
FORM_BITS: Final = 6
"""Where the form of a row is in its first byte: `b` takes four times as many bytes."""
assert ROW.size == _ROW.size


class Op(IntEnum):
    """What a row does.  `number` is the number that was loaded last, `value` the one at the path.

    Masks of type indices are `b` for 0 … 63, `axis` for 64 … 79 and `kind` for all others.
    """

    END = 0
    """All is well."""
    COUNT = auto()
    """There are `b` arguments; `a` is how the message says that."""
    AT = auto()
    """Choose the path `a`."""
    JUMP = auto()
    """Go to row `a`."""
    UNLESS = auto()
    """Go to row `a` unless the value's type index is in the mask."""
    TYPE = auto()
    """The value's type index is in the mask; `a` is what the message expects."""
    FIELD = auto()
    """Put `b` in the leaf `a`."""
    CLEAR = auto()
    """Put 0 in `b` leaves from `a` on."""
    STORE = auto()
    """Put the number in the leaf `a`."""
    EACH = auto()
    """The value is a container: go to row `a` if the index of loop `kind` is past its end."""
    RESET = auto()
    """Begin loop `kind` at 0."""
    NEXT = auto()
    """Advance loop `kind` and go to row `a`."""
    # Tensors.
    DLTENSOR = auto()
    """The value is no null DLTensor pointer; `a` is what the message expects."""
    NDIM = auto()
    """The tensor has `b` dims, and sizes if it has any."""
    DTYPE = auto()
    """The tensor's dtype is `b`, its name `a`; with `kind` 1 its lowest bit does not matter."""
    DEVICE = auto()
    """The tensor's device type is `b`, its name `a`."""
    DEVICE_ID = auto()
    """The tensor's device index is `b`."""
    SAME_DEVICE = auto()
    """The tensor's device index is that of the first; `a` is what to call this one's."""
    HINT = auto()
    """Messages about strides show the text `a` if they look like those of the order `kind`."""
    DATA = auto()
    """The number is the address of the first element."""
    ALIGNED_DATA = auto()
    """The number is a multiple of `b`."""
    ELEMENTS = auto()
    """The tensor has an address or no elements."""
    # Numbers.
    LOAD = auto()
    """The number is that of place `kind` at `axis`, twice as large if `b` is 1; a stride that means
    nothing goes to row `a`."""
    EXACT = auto()
    """The number is `b`."""
    MATCH = auto()
    """The number is that of symbol `a`."""
    RELATED = auto()
    """The number is that on the stack; `a` is the formula."""
    RANGE = auto()
    """The number is at most `b` and at least 0, with `kind` 1 at least -b - 1; `a` names it."""
    DIVISIBLE = auto()
    """The number is a multiple of `b`."""
    BIND = auto()
    """Symbol `a`, if it has no value yet, gets the number; `b` is what to call the place."""
    SOLVE = auto()
    """Symbol `a` gets what is on the stack, 0 if that is undefined; `b` as for BIND."""
    SYMBOL = auto()
    """The number is that of symbol `a`; `b` is its name."""
    # Expressions.
    FORMULA = auto()
    """Begin with an empty stack."""
    PUSH = auto()
    """Push `b`."""
    PUSH_SYMBOL = auto()
    """Push the value of symbol `a`."""
    PUSH_NUMBER = auto()
    """Push the number."""
    PUSH_UNDEFINED = auto()
    """Push what has no value."""
    BINARY = auto()
    """Replace the two on top by the result of operation `kind`."""
    RELATION = auto()
    """The two on the stack are equal, else message `a` of the table; `b` if they are undefined."""
    # Scalars.
    INTEGER = auto()
    """The number is the value, an int or bool, at most `b` and at least 0, with `kind` 1 at least
    -b - 1; `a` names the range."""
    BOOLEAN = auto()
    """The value is a bool, or an int that is 0 or 1; the number is it."""
    UNSIGNED = auto()
    """The number is the value, an int of 0 … 2**64 - 1; `a` names the range."""
    FLOAT = auto()
    """The number is the bits of the value in the float type `kind`.

    Where `axis` is 1, an int has 64 bits at most: `a` names that range.
    """
    # Other kinds.
    PAYLOAD = auto()
    """The number is the value's payload, of which `b` are the bits that count."""
    ADDRESS = auto()
    """The number is an address: the payload, 0 for None; `a` names the range of an int."""
    NOT_NULL = auto()
    """The number is not 0; `a` is what the message expects."""
    ALIGNED = auto()
    """The number is a multiple of `b`."""
    SEQUENCE = auto()
    """The value, an Array or List, has `b` items."""
    SHAPE = auto()
    """The value, a Shape or an Array or List of ints, has `b` elements."""
    TEXT = auto()
    """The value, a string or bytes, is readable; its address and length go to the leaves from `a`
    on unless `kind` is 1."""
    DATA_TYPE = auto()
    """The number is the dtype that the value is or names."""
    DEVICE_VALUE = auto()
    """The number is the device that the value is or names."""
    CONSTANT = auto()
    """The value, an int, bool or float, has the payload `b`; `a` is what the message expects."""
    CONSTANT_TEXT = auto()
    """The value, a string, is the text `b`; `a` is what the message expects."""
    OBJECT = auto()
    """The value is an object of the type with the key `b` or of one derived from it; `a` is what
    the message expects."""
    ANY = auto()
    """The number is the address of the value."""
    PAIRS = auto()
    """Begin the loop `kind` over the keys and values of a Map, with `axis` 1 of a Dict."""
    PAIR = auto()
    """Take the next key and value of loop `kind`; go to row `a` if there is none."""


class Float(IntEnum):
    """Float types of `Op.FLOAT`."""

    F64 = 0
    F32 = 1
    F16 = 2
    BF16 = 3
    TF32 = 4


class Binary(IntEnum):
    """Operations of `Op.BINARY`."""

    ADD = 0
    SUB = 1
    MUL = 2
    FLOORDIV = 3
    MOD = 4
    MIN = 5
    MAX = 6
    CEILDIV = 7


GOING: Final = frozenset({Op.JUMP, Op.UNLESS, Op.EACH, Op.NEXT, Op.PAIR, Op.LOAD})
"""Rows whose `a` is a row to go to."""

assert max(Op) < 1 << FORM_BITS


def row_size(b: int) -> int:
    """The bytes of a row with this `b`."""
    return _ROW.size + 4 * _form(b)


def pack_row(op: Op, kind: int, axis: int, a: int, b: int) -> bytes:
    """A row."""
    form = _form(b)
    number = b.to_bytes(4 * form, "little", signed=True)
    return _ROW.pack(op | form << FORM_BITS, kind, axis, a) + number


def _form(b: int) -> int:
    return 0 if b == 0 else 1 if -(1 << 31) <= b < 1 << 31 else 2
