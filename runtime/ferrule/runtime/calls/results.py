"""Converts results to Python: a tuple in the function's result is a Python tuple, at any depth.

In tvm-ffi, a tuple and a container are both an Array, so the signature says which Arrays are
tuples; all other containers stay unchanged. A Tensor inside a tuple is converted like a Tensor that
a call returns: to a tensor of the caller's framework, if an argument was a tensor of a framework.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import tvm_ffi

from ferrule import specs
from ferrule.specs import params

Form: TypeAlias = "tuple[Form, ...] | dict[int, tuple[Form, ...]] | str | None"
"""The positions of tuples in a result: for a tuple, the forms of its items; for one of several
tuples, a dict from length to forms; `EVERY` if each Array is a tuple; None if there is no tuple."""

EVERY: Final = "every Array is a tuple"

ARRAY: Final[type[Any]] = tvm_ffi.Array
"""The class that represents a tuple in tvm-ffi."""

_WORD: Final = 8

_array_size: Final = tvm_ffi.get_global_func("ffi.ArraySize")
_array_item: Final = tvm_ffi.get_global_func("ffi.ArrayGetItem")


def form_of(signature: specs.Signature) -> Form:
    """The form of a function's result; for an overload, the common form of its candidates."""
    if isinstance(signature, specs.Overloads):
        return _form([each.result for each in signature.candidates])
    return _form([signature.result])


def _form(results: Sequence[specs.Param | None]) -> Form:
    """The common form; an Array that is a tuple in one result and a container in another stays an
    Array."""
    tuples = [each for each in results if isinstance(each, params.Tuple)]
    others = [each for each in results if not isinstance(each, params.Tuple)]
    if any(isinstance(each, params.AnyOrTuple) for each in others):
        mixed = tuples or any(_can_be_array(each) for each in others)
        return None if mixed else EVERY
    if not tuples or any(map(_can_be_array, others)):
        return None
    lengths = dict.fromkeys(len(each.items) for each in tuples)
    forms = {length: _items_form(tuples, length) for length in lengths}
    return forms if len(forms) > 1 else forms.popitem()[1]


def _items_form(tuples: Sequence[params.Tuple], length: int) -> tuple[Form, ...]:
    alike = [each.items for each in tuples if len(each.items) == length]
    return tuple(_form(column) for column in zip(*alike, strict=True))


def _can_be_array(result: specs.Param | None) -> bool:
    match result:
        case params.AnyOrTuple():
            return False
        case params.Object(type_key=key):
            return key in ("ffi.Object", "ffi.Array")
    return isinstance(result, (params.Array, params.AnyValue))


def unpack(value: Any, form: Form) -> Any:
    """Convert Arrays to tuples where the form has tuples, at any depth; other values stay."""
    if form is None or type(value) is not ARRAY:
        return value
    size = _array_size(value)
    if isinstance(form, dict) and size not in form:
        return value
    items = form[size] if isinstance(form, dict) else form
    return tuple([item_of(value, i, items) for i in range(size)])


def item_of(array: Any, index: int, form: tuple[Form, ...] | str) -> Any:
    """An item of an Array that represents a tuple of this form."""
    return unpack(_array_item(array, index), form if isinstance(form, str) else form[index])


def array_handle_offset() -> int | None:
    """The offset of the object's handle in an Array, found by a search; None if not found."""
    probe = ARRAY([])
    handle = probe.__chandle__()
    for offset in range(2 * _WORD, ARRAY.__basicsize__ - _WORD + 1, _WORD):
        if ctypes.c_uint64.from_address(id(probe) + offset).value == handle:
            return offset
    return None
