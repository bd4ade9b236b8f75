"""Values of C in memory, to which an object of a program points.

An object with `__c_pointers__` and `__get_mlir_types__`, as programs for CuTe DSL write them, has
its values in memory of C: one address for each type.  A call reads them there, as the compiler of
C has laid them out.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Final

from ferrule import specs

_CLASSES: Final[dict[str, type[ctypes._SimpleCData[Any]]]] = {
    "bool": ctypes.c_bool,
    "float32": ctypes.c_float,
    "float64": ctypes.c_double,
    **{f"int{bits}": getattr(ctypes, f"c_int{bits}") for bits in (8, 16, 32, 64)},
    **{f"uint{bits}": getattr(ctypes, f"c_uint{bits}") for bits in (8, 16, 32, 64)},
}
Wrong = Callable[[type[Exception], str, str], Any]
"""Refuses a value: the class of the error, what is wanted, and what came."""


def points_to_values(value: object) -> bool:
    """Whether this is an object that says where its values are in memory of C."""
    kind = type(value)
    return hasattr(kind, "__c_pointers__") and hasattr(kind, "__get_mlir_types__")


def items_of(value: Any) -> tuple[specs.Param, ...]:
    """The specs of the values, in order.

    Raises TypeError for what is no type of C: it has to be a dtype of ferrule or to have a spec.
    """
    types = value.__get_mlir_types__()
    if not isinstance(types, (list, tuple)):
        raise TypeError(f"__get_mlir_types__ gives {types!r}, which is no list of types")
    found = tuple(_item(str(place), each) for place, each in enumerate(types))
    for each in found:
        class_of(each)
    return found


def _item(name: str, given: Any) -> specs.Param:
    if isinstance(given, specs.DType):
        return specs.Scalar(name, given)
    if isinstance(given, specs.SupportsSpec):
        return given.__ferrule_spec__(name)
    raise TypeError(
        f"__get_mlir_types__ gives {given!r}, which is no type of C: a dtype such as fe.Int32, "
        "llvm.PointerType.get(), or llvm.StructType.get_literal([...]) of such types"
    )


@cache
def class_of(item: specs.Param) -> type[Any]:
    """The class of ctypes with the layout of a value.  Raises TypeError where there is none."""
    match item:
        case specs.Scalar(dtype=dtype) if dtype.name in _CLASSES:
            return _CLASSES[dtype.name]
        case specs.Pointer():
            return ctypes.c_void_p
        case specs.Tuple(items=items):
            fields = [(f"_{place}", class_of(each)) for place, each in enumerate(items)]
            return type("Values", (ctypes.Structure,), {"_fields_": fields})
    kind = item.dtype.name if isinstance(item, specs.Scalar) else type(item).__name__
    raise TypeError(
        f"no value of type {kind} is read from memory of C: bool, ints, float32, float64, pointers "
        "and structs of these are"
    )


def values_of(items: Sequence[specs.Param], value: Any, wrong: Wrong) -> tuple[Any, ...]:
    """The values of an object, read where it points to.

    `wrong` refuses other types than those that the function was compiled for, and addresses where
    no such value can be.
    """
    try:
        given = items_of(value)
    except TypeError as error:
        return tuple(wrong(TypeError, f"values of the types {_shown(items)}", str(error)))
    if given != tuple(items):
        wrong(TypeError, f"values of the types {_shown(items)}", _shown(given))
    pointers = value.__c_pointers__()
    if len(pointers) != len(items):
        wrong(ValueError, f"{len(items)} addresses of __c_pointers__", str(len(pointers)))
    return tuple(_read(each, at, wrong) for each, at in zip(items, pointers, strict=True))


def _read(item: specs.Param, pointer: Any, wrong: Wrong) -> Any:
    kind = class_of(item)
    address = _address(pointer)
    if not address:
        wrong(
            TypeError, "an address of __c_pointers__: an int or a pointer of ctypes", repr(pointer)
        )
    if address % ctypes.alignment(kind):
        wanted = f"an address that is a multiple of {ctypes.alignment(kind)}"
        wrong(ValueError, f"{wanted} from __c_pointers__", hex(address))
    return _python(kind.from_address(address))


def _address(pointer: Any) -> int:
    if isinstance(pointer, int) and not isinstance(pointer, bool):
        return pointer
    if isinstance(pointer, (ctypes.c_void_p, ctypes._Pointer)):
        return ctypes.cast(pointer, ctypes.c_void_p).value or 0
    return 0


def _python(value: Any) -> Any:
    """A value of ctypes as numbers, addresses and tuples of these."""
    if isinstance(value, ctypes.Structure):
        names = (name for name, *_ in value._fields_)
        return tuple(_python(getattr(value, name)) for name in names)
    return value if isinstance(value, (bool, int, float)) or value is None else value.value


def _shown(items: Sequence[specs.Param]) -> str:
    return ", ".join(_name(each) for each in items)


def _name(item: specs.Param) -> str:
    match item:
        case specs.Scalar(dtype=dtype):
            return dtype.name
        case specs.Tuple(items=items):
            return f"{{{_shown(items)}}}"
    return "pointer"
