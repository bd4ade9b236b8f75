"""The forms of values that a direct entry can read, for each kind of parameter.

A `Reader` is a set of forms. A value of another form goes to the gate, so a missing form costs time
only. A value that the entry reads must reach the wrapper exactly as tvm-ffi's generic call passes
it. There is one exception: a NumPy array or torch tensor arrives as a borrowed `DLTensor*`, not as
a Tensor object. Therefore parameters that may keep their argument do not have these forms.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TypeAlias

from typing_extensions import assert_never

from ferrule import specs
from ferrule.specs.deferred import dataclass
from ferrule.specs.params import WithTraits

Key: TypeAlias = tuple[str, ...]
"""What a table of `values.learned` is for: `("fields", *names)`, `("pointer", dtype)`,
`("stream",)`, the adapters of tensors: `("tensor",)`, or arrays that give buffers:
`("buffers",)`."""


class Form(Enum):
    """The Python type of a value; subclasses do not count, except some of torch's."""

    NONE = "none"
    BOOL = "bool"
    INT = "int"
    FLOAT = "float"
    TEXT = "str"
    BYTES = "bytes"
    ADDRESS = "c_void_p"
    FUNCTION = "function"
    ARRAY = "array"
    FROZEN_ARRAY = "array that may be read-only"
    TORCH = "torch"
    TENSOR = "tvm_ffi_Tensor"
    TUPLE = "tuple"
    NUMBER = "a number of NumPy"
    RECORD = "a record of somebody's class"
    HANDLE = "an object with an address"


BORROWED = frozenset({Form.ARRAY, Form.FROZEN_ARRAY, Form.TORCH})
"""The forms of tensors whose memory the call borrows; a reader with them also has `TENSOR`."""


@dataclass(frozen=True, slots=True)
class Reader:
    """The forms to try, in this order; `items` are the readers of a tuple's items.

    `learned` is the key of the table of classes, for records and for objects with an address.
    """

    forms: tuple[Form, ...]
    items: tuple[Reader, ...] = ()
    learned: Key = ()

    @property
    def borrows(self) -> bool:
        """Whether it reads tensors whose memory the call borrows."""
        return not BORROWED.isdisjoint(self.forms)

    @property
    def borrows_only(self) -> bool:
        """Whether it reads nothing but tensors, borrowed ones among them."""
        return self.borrows and (BORROWED | {Form.TENSOR}).issuperset(self.forms)


def readers_of(params: Sequence[specs.Param]) -> tuple[Reader, ...] | None:
    """A reader for each parameter; None if some parameter has no form that an entry can read."""
    found = [reader_of(param) for param in params]
    readers = tuple(reader for reader in found if reader is not None)
    return readers if len(readers) == len(found) else None


def reader_of(param: specs.Param) -> Reader | None:
    """The reader for this parameter; None if an entry can read none of its forms."""
    match param:
        case specs.Tensor(owning=True):
            return Reader((Form.TENSOR,))
        case specs.Tensor(read_only=read_only):
            array = Form.FROZEN_ARRAY if read_only else Form.ARRAY
            return Reader((array, Form.TORCH, Form.TENSOR))
        case specs.Scalar(dtype=dtype):
            numbers = (Form.INT, Form.BOOL, Form.NUMBER)
            return Reader((Form.FLOAT, *numbers) if dtype.kind == "float" else numbers)
        case specs.Optional(item=item):
            return _joined([reader_of(item), Reader((Form.NONE,))])
        case specs.Union(members=members):
            return _joined([reader_of(member) for member in members])
        case specs.Tuple(items=items):
            inner = readers_of(items)
            tuples = (Form.TUPLE, Form.RECORD)
            return None if inner is None else Reader(tuples, inner, learned_key(param))
        case specs.Constant():
            return Reader((Form.INT, Form.BOOL, Form.FLOAT, Form.TEXT))
        case specs.Shape(dims=dims):
            # A tuple is an Array, as in tvm-ffi's own call; its ints are checked like a shape's.
            return Reader((Form.TUPLE,), (Reader((Form.INT,)),) * len(dims))
        case WithTraits():
            forms = tuple(Form[name] for name in param.traits.forms)
            return Reader(forms, (), learned_key(param)) if forms else None
        case _:
            assert_never(param)


def learned_key(param: specs.Param) -> Key:
    """The table of classes for this parameter; nothing where no class is learned."""
    match param:
        case specs.Tuple(items=items, fields=fields):
            return ("fields", *(item.name for item in items if fields))
        case specs.Pointer(dtype=dtype):
            return ("pointer", "" if dtype is None else dtype.name)
        case specs.Stream():
            return ("stream",)
    return ()


def _joined(readers: Sequence[Reader | None]) -> Reader | None:
    """A reader for the forms of all these; the gate handles members without a reader.

    A member without a reader may be a container, which also accepts tuples. So if there is one,
    tuples are left to the gate.
    """
    found = [reader for reader in readers if reader is not None]
    forms = dict.fromkeys(form for reader in found for form in reader.forms)
    tuples = [reader for reader in found if Form.TUPLE in reader.forms]
    if len(tuples) != 1 or len(found) < len(readers):
        forms.pop(Form.TUPLE, None)
    others = [reader for reader in found if reader.forms != (Form.NONE,)]
    if len(others) != 1 or len(found) < len(readers):
        # Which member takes an object of somebody's class depends on their order.
        for form in (Form.RECORD, Form.HANDLE):
            forms.pop(form, None)
    if not forms:
        return None
    learned = others[0].learned if {Form.RECORD, Form.HANDLE} & forms.keys() else ()
    return Reader(tuple(forms), tuples[0].items if Form.TUPLE in forms else (), learned)
