"""The format of check programs: rows of 8, 12 or 16 bytes, little-endian.

A row is an operation with its operands `kind`, `axis`, `a` and `b`.  `a` is the number of a path, a
target row (its distance in bytes from the first), the offset of a text, or the number of a symbol;
`b` is a number or bits.  `b` takes 0 bytes if it is 0, 4 if it fits, else 8: the two upper bits of
the operation encode this.  Rows work on a few registers: the value at the path that `AT` chose, the
number that was loaded last, and a stack for expressions.  Every operation has one handler in the
interpreter.
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
"""A row without `b`, which follows it."""
_ROW: Final = struct.Struct("<BBHI")
FORM_BITS: Final = 6
"""The position of the form of a row in its first byte: `b` takes four bytes times the form."""
assert ROW.size == _ROW.size


class Op(IntEnum):
    """The operation of a row.  `number` is the number that was loaded last, `value` the value at
    the path.

    Masks of type indices are `b` for 0 … 63, `axis` for 64 … 79 and `kind` for all others.
    """

    END = 0
    """End: the call is accepted."""
    COUNT = auto()
    """Check that there are `b` arguments; `a` is the phrase for this in the message."""
    AT = auto()
    """Choose the path `a`."""
    JUMP = auto()
    """Go to row `a`."""
    UNLESS = auto()
    """Go to row `a` unless the type index of the value is in the mask."""
    TYPE = auto()
    """Check that the type index of the value is in the mask; `a` names the expected types."""
    FIELD = auto()
    """Store `b` in the leaf `a`."""
    CLEAR = auto()
    """Store 0 in `b` leaves from `a` on."""
    STORE = auto()
    """Store the number in the leaf `a`."""
    EACH = auto()
    """The value is a container: go to row `a` if the index of loop `kind` is past its end."""
    RESET = auto()
    """Begin loop `kind` at 0."""
    NEXT = auto()
    """Advance loop `kind` and go to row `a`."""
    # Tensors.
    DLTENSOR = auto()
    """Check that the value is not a null DLTensor pointer; `a` names the expected types."""
    NDIM = auto()
    """Check that the tensor has `b` dims, and an array of sizes unless `b` is 0."""
    DTYPE = auto()
    """Check that the tensor's dtype is `b`, with the name `a`; with `kind` 1 its lowest bit is
    ignored."""
    DEVICE = auto()
    """Check that the tensor's device type is `b`, with the name `a`."""
    DEVICE_ID = auto()
    """Check that the tensor's device index is `b`."""
    SAME_DEVICE = auto()
    """Check that the tensor's device index is that of the first tensor; `a` is the tensor's
    name."""
    HINT = auto()
    """Messages about strides show the text `a` if the strides look like the order `kind`."""
    DATA = auto()
    """Load the address of the first element as the number."""
    ALIGNED_DATA = auto()
    """Check that the number, a data address, is a multiple of `b`."""
    ELEMENTS = auto()
    """Check that the tensor has an address or no elements."""
    # Numbers.
    LOAD = auto()
    """Load the number at `axis` of place `kind`, doubled if `b` is 1; go to row `a` if it is an
    arbitrary stride.  With 0 as `a` no stride is arbitrary."""
    EXACT = auto()
    """Check that the number is `b`."""
    MATCH = auto()
    """Check that the number equals symbol `a`."""
    RELATED = auto()
    """Check that the number equals the top of the stack; `a` is the formula."""
    RANGE = auto()
    """Check that the number is at most `b` and at least 0, or with `kind` 1 at least -b - 1; `a`
    names the range."""
    DIVISIBLE = auto()
    """Check that the number is a multiple of `b`."""
    BIND = auto()
    """Bind symbol `a` to the number if it is unbound; `b` is the name of the place."""
    SOLVE = auto()
    """Bind symbol `a` to the top of the stack, 0 if that is undefined; `b` as for BIND."""
    SYMBOL = auto()
    """Load symbol `a` as the number; `b` is its name."""
    # Expressions.
    FORMULA = auto()
    """Clear the stack."""
    PUSH = auto()
    """Push `b`."""
    PUSH_SYMBOL = auto()
    """Push the value of symbol `a`."""
    PUSH_NUMBER = auto()
    """Push the number."""
    PUSH_UNDEFINED = auto()
    """Push an undefined value."""
    BINARY = auto()
    """Replace the top two values by the result of operation `kind`."""
    RELATION = auto()
    """Check that the two values on the stack are equal, else show message `a` of the table; `b` if
    one is undefined."""
    LIMIT = auto()
    """Check that the number is at most `b`, or with `kind` 1 at least `b`."""
    REQUIRED = auto()
    """Check that the top of the stack is not 0, else show message `a` of the table; `b` if it is
    undefined."""
    # Scalars.
    INTEGER = auto()
    """Load an int or bool as the number: at most `b` and at least 0, or with `kind` 1 at least -b -
    1; `a` names the range."""
    BOOLEAN = auto()
    """Load a bool, or an int that is 0 or 1, as the number."""
    UNSIGNED = auto()
    """Load an int of 0 … 2**64 - 1 as the number; `a` names the range."""
    FLOAT = auto()
    """Load the bits of the value in the float type `kind` as the number.

    If `axis` is 1, an int must fit into 64 bits: `a` names that range.
    """
    # Other kinds.
    PAYLOAD = auto()
    """Load the value's payload as the number; `b` is the mask of its valid bits."""
    ADDRESS = auto()
    """Load an address as the number: the payload, 0 for None; `a` names the range of an int."""
    NOT_NULL = auto()
    """Check that the number is not 0; `a` names the expected values."""
    ALIGNED = auto()
    """Check that the number is a multiple of `b`."""
    SEQUENCE = auto()
    """Check that the value, an Array or List, has `b` items."""
    SHAPE = auto()
    """Check that the value, a Shape or an Array or List of ints, has `b` elements."""
    TEXT = auto()
    """Check that the value, a string or bytes, is readable; unless `kind` is 1, store its address
    and length in the leaves from `a` on."""
    DATA_TYPE = auto()
    """Load the dtype that the value is or names as the number."""
    DEVICE_VALUE = auto()
    """Load the device that the value is or names as the number."""
    CONSTANT = auto()
    """Check that the value, an int, bool or float, has the payload `b`; `a` names the expected
    value."""
    CONSTANT_TEXT = auto()
    """Check that the value, a string, is the text `b`; `a` names the expected value."""
    OBJECT = auto()
    """Check that the value is an object of the type with the key `b` or of a derived type; `a`
    names the expected type."""
    ANY = auto()
    """Load the address of the value as the number."""
    PAIRS = auto()
    """Begin the loop `kind` over the keys and values of a Map, or with `axis` 1 of a Dict."""
    PAIR = auto()
    """Take the next key and value of loop `kind`; go to row `a` if there are no more."""


class Float(IntEnum):
    """Float types of `Op.FLOAT`."""

    F64 = 0
    F32 = 1
    F16 = 2
    BF16 = 3
    TF32 = 4


class Binary(IntEnum):
    """Operations of `Op.BINARY`; comparisons give 1 or 0."""

    ADD = 0
    SUB = 1
    MUL = 2
    FLOORDIV = 3
    MOD = 4
    MIN = 5
    MAX = 6
    CEILDIV = 7
    LT = 8
    LE = 9
    EQ = 10


GOING: Final = frozenset({Op.JUMP, Op.UNLESS, Op.EACH, Op.NEXT, Op.PAIR, Op.LOAD})
"""Operations whose `a` is a target row."""

assert max(Op) < 1 << FORM_BITS


def row_size(b: int) -> int:
    """The size in bytes of a row with this `b`."""
    return _ROW.size + 4 * _form(b)


def pack_row(op: Op, kind: int, axis: int, a: int, b: int) -> bytes:
    """A row."""
    form = _form(b)
    number = b.to_bytes(4 * form, "little", signed=True)
    return _ROW.pack(op | form << FORM_BITS, kind, axis, a) + number


def _form(b: int) -> int:
    return 0 if b == 0 else 1 if -(1 << 31) <= b < 1 << 31 else 2


TABLE: Final = "ferrule_handlers"
"""The table of handlers in support code: their offsets from it, by operation."""

RARE: Final = tuple(op for op in Op if op >= Op.INTEGER)
"""Rows of kinds other than tensors and shapes."""
