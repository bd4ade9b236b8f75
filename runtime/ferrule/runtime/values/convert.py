"""Converts a call's values on the slow path, with one handler for each kind of parameter.

A handler converts the values that its kind accepts (a NumPy number, a dataclass, a read-only array,
a torch.device, …) to values that tvm-ffi's generic call passes on correctly. It returns `OTHER` for
each other value, which then goes on unchanged, and the wrapper refuses it. A handler itself refuses
a value if tvm-ffi would convert it to one that the wrapper accepts, or if only Python knows what is
wrong.
"""

from __future__ import annotations

import ctypes
import dataclasses
import numbers
from _ctypes import CFuncPtr
from collections.abc import Iterable, Sequence
from functools import cache
from types import ModuleType
from typing import Any, Final, NamedTuple, NoReturn

import numpy as np
import tvm_ffi
from typing_extensions import assert_never

from ferrule import specs
from ferrule.runtime.entry.readers import learned_key
from ferrule.runtime.values import foreign
from ferrule.runtime.values.capsules import exported, is_unknown
from ferrule.runtime.values.dlpack import DLPackTensor
from ferrule.runtime.values.foreign import OTHER
from ferrule.runtime.values.storages import alias
from ferrule.runtime.values.views import (
    has_dlpack_dtype,
    has_own_dtype,
    typed_tensor,
    writable_alias,
)
from ferrule.specs.params import WithTraits
from ferrule.specs.text import kind_text


class Refusal(Exception):
    """Carries a call's error to the place that raises it, so that its traceback is short."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


class Place(NamedTuple):
    """The position of a value in a call: the argument, then positions of items inside it."""

    signature: specs.Signature
    argument: int
    path: tuple[int, ...] = ()

    def item(self, position: int) -> Place:
        """The place of an item of this value."""
        return Place(self.signature, self.argument, (*self.path, position))

    @property
    def name(self) -> str:
        """The name of the value in messages, `t[1]`."""
        items = "".join(f"[{position}]" for position in self.path)
        return self.signature.arguments[self.argument].name + items

    def refuse(self, kind: type[Exception], what: str, expected: str, actual: str) -> NoReturn:
        """Raise Refusal with a message in the same form as the wrapper's."""
        raise Refusal(kind(self._wrong(what, expected) + actual))

    def _wrong(self, what: str, expected: str) -> str:
        where = f"{self.name} in argument" if self.path else "argument"
        return (
            f"{what} on {where} #{self.argument} when calling: `{self.signature}`, "
            f"expected {expected}, but got "
        )

    def mismatch(self, param: specs.Param) -> str:
        """The text of `refuse_type` as a template: `str.format` fills in the actual type."""
        said = self._wrong("Mismatched type", self._expected(param))
        return said.replace("{", "{{").replace("}", "}}") + "{}"

    def refuse_type(self, param: specs.Param, actual: str) -> NoReturn:
        """Raise Refusal: the value has another kind than the parameter."""
        self.refuse(TypeError, "Mismatched type", self._expected(param), actual)

    def _expected(self, param: specs.Param) -> str:
        match param:
            case specs.Tensor():
                return "Tensor"
            case specs.Scalar(dtype=dtype):
                return "int" if dtype.is_integer else dtype.kind
        return kind_text(param, self.signature.symbols, full=False)


_ANYTHING: Final = specs.AnyValue("0")
_ANY_MAP: Final = specs.Map("0")


@cache
def _no_structs() -> tuple[type, ...]:
    """Types that may be dataclasses, but are not treated as tuples of their fields."""
    fakes = (specs.FakeTensor, specs.FakePointer, specs.FakeStream)
    return *fakes, DLPackTensor, foreign.DataTypeValue, tvm_ffi.Object


def convert(place: Place, param: specs.Param, value: Any) -> Any:
    """The value, converted for tvm-ffi's generic call. Raises Refusal."""
    found = _convert(place, param, value)
    if found is not OTHER:
        return found
    if isinstance(value, (specs.FakeTensor, specs.FakeStream)):
        what = "tensor" if isinstance(value, specs.FakeTensor) else "stream"
        place.refuse_type(param, f"a fake {what}, which stands for a {what} while compiling")
    if isinstance(value, numbers.Real) and foreign.number(value) is OTHER:
        # Such as a Fraction or a NumPy timedelta: tvm-ffi would convert it to a plain number.
        place.refuse_type(param, type(value).__qualname__)
    if _takes_objects(param):
        _must_end(value)
        return value
    # Not sooner: another member of a union may take a number of NumPy, which has an array.
    if _is_tensor(param) and not hasattr(value, "__dlpack__"):
        _refuse_array_inside(place, param, value)
    return _for_refusal(value)


def _is_tensor(param: specs.Param) -> bool:
    return isinstance(param.item if isinstance(param, specs.Optional) else param, specs.Tensor)


def _refuse_array_inside(place: Place, param: specs.Param, value: Any) -> None:
    if (found := foreign.array_inside(value)) is not None:
        place.refuse_type(param, found)


def _takes_objects(param: specs.Param) -> bool:
    """Whether the parameter accepts a list as an object of tvm-ffi, with its items converted."""
    match param:
        case specs.Optional(item=item):
            return _takes_objects(item)
        case specs.Union(members=members):
            return any(map(_takes_objects, members))
    return isinstance(param, (specs.Object, specs.Module, specs.AnyValue))


def _must_end(value: Any) -> None:
    """RecursionError for a list that contains itself: tvm-ffi would overflow the stack."""
    if isinstance(value, (tuple, list)):
        for item in value:
            _must_end(item)
    elif isinstance(value, dict):
        for pair in value.items():
            _must_end(pair)


def _for_refusal(value: Any) -> Any:
    """A value without a handler, changed so that the wrapper can refuse it.

    tvm-ffi cannot pass on some tensors. An empty tensor replaces each of them, so that the wrapper
    reports a Tensor, and reports the first one if several arguments are wrong.
    """
    if isinstance(value, (tuple, list)):
        items = [_for_refusal(item) for item in value]
        same = all(new is old for new, old in zip(items, value, strict=True))
        return value if same else tuple(items)
    if isinstance(value, dict):
        pairs = [(_for_refusal(key), _for_refusal(item)) for key, item in value.items()]
        same = all(new[1] is old for new, old in zip(pairs, value.values(), strict=True))
        return value if same else dict(pairs)
    return np.empty(0, np.uint8) if _is_unfit_tensor(value) else value


def _is_unfit_tensor(value: Any) -> bool:
    """Whether tvm-ffi's call fails for this tensor without naming the argument."""
    if isinstance(value, np.ndarray):
        return not (value.flags.writeable and has_dlpack_dtype(value))
    return foreign.hidden_elements(value) is not None


def _convert(place: Place, param: specs.Param, value: Any) -> Any:
    match param:
        case specs.Tensor():
            return _tensor(place, param, value)
        case specs.Scalar(dtype=dtype) if dtype.kind == "float":
            return _float(place, value)
        case specs.Constant(value=str()) if _field_names(value) == ():
            return type(value).__qualname__  # a tag: a dataclass that tells nothing but its class
        case specs.Scalar() | specs.Constant():
            return _number(place, value)
        case specs.Pointer():
            return _pointer(place, param, value)
        case specs.Stream():
            return _stream(param, value)
        case specs.Shape():
            return _shape(place, value)
        case specs.Tuple():
            return _tuple(place, param, value)
        case specs.Optional(item=item):
            return None if value is None else _convert(place, item, value)
        case specs.Union(members=members):
            return _first(place, members, value)
        case specs.DataType():
            return _data_type(place, param, value)
        case specs.Device():
            return foreign.device(value)
        case specs.Array() | specs.List() | specs.Map() | specs.Dict():
            return _container(place, param, value)
        case specs.Function():
            from ferrule.runtime.values.callbacks import keeping  # few functions need it

            return keeping(value)
        case specs.AnyValue():
            return _anything(place, param, value)
        case WithTraits():
            return OTHER
        case _:
            assert_never(param)


def _pointer(place: Place, param: specs.Pointer, value: Any) -> Any:
    """An address; a ctypes function is refused: tvm-ffi would convert it to its own object."""
    found = foreign.pointer(value)
    if found is not OTHER:
        if hasattr(type(value), "__tvm_ffi_opaque_ptr__"):
            _learn(param, type(value), "OPAQUE")
        return found
    if isinstance(value, CFuncPtr):
        where = "ctypes.cast(callback, ctypes.c_void_p)"
        place.refuse_type(param, f"a function of ctypes, whose address is {where}")
    from ferrule.runtime.values import cpointers

    if (target := cpointers.target(value)) is None:
        return OTHER
    if (actual := cpointers.other_element(target, param.dtype)) is not None:
        place.refuse_type(param, actual)
    if isinstance(value, ctypes._Pointer):
        _learn(param, type(value), "ADDRESS")
    return ctypes.cast(value, ctypes.c_void_p)


def _stream(param: specs.Stream, value: Any) -> Any:
    found, kind = foreign.stream(value), type(value)
    if found is not OTHER:
        if hasattr(kind, "__cuda_stream__"):
            _learn(param, kind, "STREAM")
        elif hasattr(kind, "__tvm_ffi_opaque_ptr__"):
            _learn(param, kind, "OPAQUE")
    return found


def _tensor(place: Place, param: specs.Tensor | specs.AnyValue, value: Any) -> Any:
    if isinstance(value, DLPackTensor):
        found = _tensor(place, param, value.tensor)
        _learned().learn_adapter(value)
        return value.tensor if found is OTHER else found
    if foreign.is_jax_array(value):
        return _jax_array(place, param, value)
    if foreign.is_read_only(value) and not (isinstance(param, specs.Tensor) and param.read_only):
        _refuse_unwritable(place, "a read-only one")
    if not isinstance(value, np.ndarray):
        refuse_hidden(place, param, value)
        if (found := foreign.lazy_change(value)) is not None:
            place.refuse_type(param, found)
        if isinstance(value, specs.FakeTensor) or not is_unknown(value):
            return OTHER
        return _exported(place, param, value)
    if (found := foreign.hidden_mask(value)) is not None:
        place.refuse_type(param, found)
    if has_own_dtype(value):
        return _typed_tensor(place, param, value)
    if not has_dlpack_dtype(value):
        place.refuse_type(param, f"an array of {value.dtype}, which DLPack does not have")
    return OTHER if value.flags.writeable else writable_alias(value)


def _jax_array(place: Place, param: specs.Tensor | specs.AnyValue, value: Any) -> Any:
    """An array of JAX, which is only read; machine code reads the next one of its class."""
    from ferrule.runtime.values import jaxarrays

    if (found := jaxarrays.unfit_type(value)) is not None:
        place.refuse_type(param, found)
    if not (isinstance(param, specs.Tensor) and param.read_only):
        _refuse_unwritable(place, jaxarrays.UNWRITABLE)
    if (found := jaxarrays.unfit(value)) is not None:
        place.refuse(BufferError, f"Mismatched {place.name}", "an array in memory", found)
    jaxarrays.learn(value)
    return OTHER


def _refuse_unwritable(place: Place, actual: str) -> NoReturn:
    what = f"Mismatched {place.name}"
    place.refuse(BufferError, what, "an array that can be written", actual)


def _exported(place: Place, param: specs.Tensor | specs.AnyValue, value: Any) -> Any:
    """The exported tensor of an object of an unknown class; refuses one that is not writable."""
    found = exported(value, place.mismatch(param))
    if found.unwritable is not None and not (isinstance(param, specs.Tensor) and param.read_only):
        _refuse_unwritable(place, found.unwritable)
    return found.tensor


def refuse_hidden(place: Place, param: specs.Param, value: Any) -> None:
    """Raises Refusal for a tensor of torch without elements in memory."""
    actual = foreign.hidden_elements(value)
    if actual is not None:
        place.refuse_type(param, actual)


def _typed_tensor(
    place: Place, param: specs.Tensor | specs.AnyValue, array: np.ndarray[Any, Any]
) -> Any:
    try:
        return typed_tensor(array)
    except TypeError as error:
        actual = str(error)
    place.refuse_type(param, actual)


def _number(place: Place, value: Any) -> Any:
    found = foreign.number(value)
    if type(found) is int and not -(1 << 63) <= found < 1 << 63 and not foreign.has_big_ints():
        expected = "a 64-bit integer, as this version of tvm-ffi passes no other (0.1.14 does)"
        place.refuse(ValueError, "Out of bound value", expected, str(found))
    return found


def _float(place: Place, value: Any) -> Any:
    """A number for a float parameter; an int of more than 64 bits becomes a float here.

    The wrapper refuses an int beyond the range of float64, if tvm-ffi can pass it on.
    """
    found = foreign.number(value)
    if type(found) is not int or -(1 << 63) <= found < 1 << 63:
        return found
    try:
        return float(found)
    except OverflowError:
        if foreign.has_big_ints():
            return found
    actual = "an int above 1.8e308" if found > 0 else "an int below -1.8e308"
    expected = "to be in float64 range [-1.8e308, 1.8e308]"
    place.refuse(ValueError, "Out of bound value", expected, actual)


def _shape(place: Place, value: Any) -> Any:
    if isinstance(value, tvm_ffi.Shape):
        return value
    if not isinstance(value, (tuple, list)):
        return OTHER
    return tuple(_element(place.item(i), size) for i, size in enumerate(value))


def _element(place: Place, value: Any) -> Any:
    found = _number(place, value)
    return _for_refusal(value) if found is OTHER else found


def _tuple(place: Place, param: specs.Tuple, value: Any) -> Any:
    values = _items(value)
    if values is None:
        values = _attributes(param, value)
    if values is None:
        values = _pointed_to(place, param, value)
    if values is None:
        return OTHER
    if param.fields:
        _check_fields(place, param, value)
    if len(values) != len(param.items):
        return tuple(_for_refusal(each) for each in values)
    _learn_record(param, value)
    if all(type(each) is float for each in values):
        return tuple(values)  # a float needs no conversion, whatever the item's kind is
    pairs = enumerate(zip(param.items, values, strict=True))
    return tuple([convert(place.item(i), item, inner) for i, (item, inner) in pairs])


def _learned() -> ModuleType:
    """Imported where a value teaches something: a loaded function may never see one."""
    from ferrule.runtime.values import learned

    return learned


def _learn(param: specs.Param, kind: type[Any], way: str) -> None:
    """Let machine code read the values of this class for such a parameter."""
    learned = _learned()
    learned.table(learned_key(param)).learn(kind, learned.Way[way])


def _learn_record(param: specs.Tuple, value: Any) -> None:
    """Let machine code read the next record of this class as the items were found here."""
    kind = type(value)
    if issubclass(kind, tuple):
        plain = kind.__iter__ is tuple.__iter__ and kind.__len__ is tuple.__len__
        if kind is not tuple and plain:
            _learn(param, kind, "ITEMS")
    elif param.fields and not isinstance(value, (list, ctypes.Array)):
        _learn(param, kind, "ATTRIBUTES")


def _check_fields(place: Place, param: specs.Tuple, value: Any) -> None:
    """Refuse a named tuple or dataclass unless it has the expected fields in the same order."""
    names = _field_names(value)
    wanted = tuple(item.name for item in param.items)
    if names is not None and names != wanted:
        kind = type(value).__qualname__
        fields = f"a tuple with the fields {', '.join(wanted)}"
        place.refuse(TypeError, "Mismatched type", fields, f"{kind}({', '.join(names)})")


def _items(value: Any) -> Sequence[Any] | None:
    """The items of a tuple, list or C array, or a dataclass's fields; None for anything else."""
    if isinstance(value, (tuple, list)):
        return value
    if isinstance(value, ctypes.Array):
        return list(value)
    names = _field_names(value)
    return None if names is None else [getattr(value, name) for name in names]


def _attributes(param: specs.Tuple, value: Any) -> Sequence[Any] | None:
    """The values of an object's attributes, if it has one for each field of the parameter."""
    if not param.fields or not param.items or isinstance(value, (type, *_no_structs())):
        return None
    try:
        return [getattr(value, item.name) for item in param.items]
    except AttributeError:
        return None


def _pointed_to(place: Place, param: specs.Tuple, value: Any) -> Sequence[Any] | None:
    """The values in memory of C that an object points to, if it says where they are."""
    if not hasattr(type(value), "__c_pointers__"):
        return None
    from ferrule.runtime.values import cvalues  # few programs have such objects

    if not cvalues.points_to_values(value):
        return None

    def wrong(kind: type[Exception], expected: str, actual: str) -> NoReturn:
        place.refuse(kind, f"Mismatched {type(value).__name__}", expected, actual)

    return cvalues.values_of(param.items, value, wrong)


def _field_names(value: Any) -> tuple[str, ...] | None:
    """The fields of a named tuple or a dataclass."""
    if isinstance(value, tuple):
        names: tuple[str, ...] | None = getattr(type(value), "_fields", None)
        return names
    if not dataclasses.is_dataclass(value) or isinstance(value, (type, *_no_structs())):
        return None
    return tuple(field.name for field in dataclasses.fields(value))


def _first(place: Place, members: Iterable[specs.Param], value: Any) -> Any:
    """Convert with the first member whose handler accepts the value."""
    for member in members:
        found = _convert(place, member, value)
        if found is not OTHER:
            return found
    return OTHER


def _data_type(place: Place, param: specs.Param, value: Any) -> Any:
    found = foreign.data_type(value)
    if found is OTHER and foreign.is_dtype(value):
        place.refuse_type(param, f"{value!r}, which DLPack does not have")
    return found


def _container(
    place: Place, param: specs.Array | specs.List | specs.Map | specs.Dict, value: Any
) -> Any:
    """A container of exactly this kind, made from a Python container or from its sibling kind."""
    match param, value:
        case specs.Array(item=item), tuple() | list() | tvm_ffi.List():
            return tuple(_elements(place, item, value))
        case specs.List(item=item), tuple() | list() | tvm_ffi.Array():
            return tvm_ffi.List(_elements(place, item, value))
        case specs.Map(), dict():
            return _entries(place, param, value)
        case specs.Dict(), dict():
            return tvm_ffi.Dict(_entries(place, param, value))
    return OTHER


def _elements(place: Place, item: specs.Param | None, values: Iterable[Any]) -> list[Any]:
    kind = item or _ANYTHING
    found = [convert(place.item(i), kind, value) for i, value in enumerate(values)]
    # A container can outlive the call. An alias keeps its tensors valid if the caller's torch
    # tensors change their storage later.
    return found if isinstance(kind, (specs.Scalar, specs.String, specs.Bytes)) else alias(found)


def _entries(place: Place, param: specs.Map | specs.Dict, values: dict[Any, Any]) -> dict[Any, Any]:
    keys = _elements(place, param.key, values.keys())
    return dict(zip(keys, _elements(place, param.value, values.values()), strict=True))


def _anything(place: Place, param: specs.AnyValue, value: Any) -> Any:
    """Convert values that tvm-ffi itself would pass on as an opaque object or as another kind."""
    for found in (_number(place, value), foreign.data_type(value), foreign.device(value)):
        if found is not OTHER:
            return found
    if isinstance(value, dict):
        return _entries(place, _ANY_MAP, value)
    if isinstance(value, tvm_ffi.Shape):
        return OTHER
    values = _items(value)
    if values is None:
        return _tensor(place, param, value)
    return tuple(_elements(place, param, values))
