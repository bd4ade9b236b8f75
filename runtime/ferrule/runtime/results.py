"""What a call gives back in Python: what the function wrote as a tuple is one, at any depth.

A tuple comes as an Array, as a container does that the function was given or has made, so the
signature says which Arrays are tuples; all other containers stay what they are. Tensors in tuples
are of the kind that tvm-ffi makes of a Tensor that a call returns: of the caller's framework where
an argument was.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import tvm_ffi

from ferrule import specs
from ferrule.specs import params

Form: TypeAlias = "tuple[Form, ...] | dict[int, tuple[Form, ...]] | str | None"
"""Where the tuples of a result are: the forms of a tuple's items; of one of several tuples, by
their lengths; `EVERY`; None where there is none."""

EVERY: Final = "every Array is a tuple"

ARRAY: Final[type[Any]] = tvm_ffi.Array
"""What a tuple is to tvm-ffi."""

_WORD: Final = 8

_array_size: Final = tvm_ffi.get_global_func("ffi.ArraySize")
_array_item: Final = tvm_ffi.get_global_func("ffi.ArrayGetItem")


def form_of(signature: specs.Signature) -> Form:
    """The form of what a function gives back; of an overload, of what its candidates do."""
    if isinstance(signature, specs.Overloads):
        return _form([each.result for each in signature.candidates])
    return _form([signature.result])


def _form(results: Sequence[specs.Param | None]) -> Form:
    """Of several that differ, an Array that could be either a tuple or a container stays one."""
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
    """An Array as a tuple where the form has one, with all in it; anything else as it is."""
    if form is None or type(value) is not ARRAY:
        return value
    size = _array_size(value)
    if isinstance(form, dict) and size not in form:
        return value
    items = form[size] if isinstance(form, dict) else form
    return tuple([item_of(value, i, items) for i in range(size)])


def item_of(array: Any, index: int, form: tuple[Form, ...] | str) -> Any:
    """An item of an Array that is a tuple of this form."""
    return unpack(_array_item(array, index), form if isinstance(form, str) else form[index])


def array_handle_offset() -> int | None:
    """Where an Array has the handle of its object: found by looking, None where it is not."""
    probe = ARRAY([])
    handle = probe.__chandle__()
    for offset in range(2 * _WORD, ARRAY.__basicsize__ - _WORD + 1, _WORD):
        if ctypes.c_uint64.from_address(id(probe) + offset).value == handle:
            return offset
    return None
