"""Descriptions of values in messages, and hints for unsuitable ones."""

from __future__ import annotations

import types
from typing import Final

from ferrule.language.layouts import Layout, format_tuple
from ferrule.language.lowering.closures import Closure
from ferrule.language.values import (
    BoundMethod,
    ComplexNumber,
    ConstantTable,
    CoordinateView,
    Fielded,
    Handle,
    KernelCall,
    Maybe,
    Number,
    OneOf,
    Parts,
    PointerView,
    SwizzledPointer,
    SwizzledView,
    TensorMapView,
    TensorView,
    ThreadSlice,
    Undefined,
    Vector,
    Whole,
    is_record,
    is_run_time,
)
from ferrule.specs import params

_NAMED: Final[dict[type, str]] = {
    TensorView: "the tensor",
    CoordinateView: "the tensor of coordinates",
    SwizzledPointer: "the swizzled pointer",
    ConstantTable: "a part of the table",
    PointerView: "the pointer",
    TensorMapView: "the tensor map of",
    Maybe: "the optional parameter",
    OneOf: "the union parameter",
}
"""What stands before the name of a value of each class."""


def describe(value: object, *, plain: bool = False) -> str:
    """A description of a value; `plain`: a string is shown unchanged."""
    match value:
        case Closure():
            return value.words
        case str() if plain:
            return value
        case Parts(words=words):
            return words
        case tuple() | list() | dict() if is_run_time(value):
            return f"a {type(value).__name__} of {len(value)} values"
        case Undefined():
            return "undefined"
        case _ if is_record(value) and is_run_time(value):
            return f"a {type(value).__name__}"
        case (
            TensorView() | CoordinateView() | SwizzledPointer() | ConstantTable() | PointerView()
            | TensorMapView() | Maybe() | OneOf()
        ):  # fmt: skip
            return f"{_NAMED[type(value)]} {value.name}"
        case Number() | ComplexNumber():
            return f"a run-time {value.dtype.name}"
        case SwizzledView():
            swizzled = "swizzled " if getattr(value.inner, "num_bits", 1) else ""
            return f"the {swizzled}tensor {value.name}"
        case ThreadSlice():
            return f"a thread's part of a {type(value.of).__name__}"
        case Fielded():
            kind = "pointer" if isinstance(value.items[0], PointerView) else "tensor"
            return f"the {kind} {value.name} of several numbers"
        case BoundMethod(name=name):
            return f"the method {name}"
        case Layout():
            return f"the layout {value}"
        case Whole():
            return f"a whole-tensor expression of {value.dtype.name}"
        case Vector():
            shape = format_tuple(value.shape)
            return f"a vector of {value.dtype.name}, of shape {shape}"
        case KernelCall():
            return "a kernel call without .launch(...)"
        case Handle():
            return f"the {type(value.param).__name__.lower()} {value.name}"
        case None:
            return "None"
        case types.FunctionType() | types.BuiltinFunctionType():
            return f"the function {value.__name__!r}"
    return f"{value!r} ({type(value).__name__})"


def is_function(value: object) -> bool:
    """Whether a value is callable in a program: a Python function, or one that is defined in it."""
    return isinstance(value, (types.FunctionType, types.BuiltinFunctionType, Closure))


def usage_hint(value: object) -> str | None:
    """The hint for a value that cannot be used directly."""
    if isinstance(value, Maybe) and not value.name.isidentifier():
        return f"give it a name, x = {value.name}, and use that inside `if x is not None:`"
    if isinstance(value, Maybe):
        return f"use it inside `if {value.name} is not None:`"
    if isinstance(value, OneOf):
        return f"use it inside `if isinstance({value.name}, fe.Tensor):` or another kind"
    if isinstance(value, TensorView):
        name = value.name
        return f"read an element, {name}[i], or in a host function the whole tensor, {name}[:]"
    if isinstance(value, ComplexNumber):
        return "take its parts, z.real and z.imag, or abs(z)"
    if isinstance(value, (PointerView, Fielded)):
        return f"read an element, {value.name}[i]"
    if isinstance(value, Handle) and isinstance(value.param, (params.Array, params.List)):
        return f"its length is known at the call alone: take its elements, {value.name}[i]"
    if isinstance(value, Vector):
        return "take an element, v[0], or make one number of it, v.reduce(fe.ReductionOp.ADD, 0, 0)"
    if isinstance(value, (tuple, list)):
        return "take one of its items, such as x[0], or unpack it: x, y, z = ..."
    if isinstance(value, BoundMethod):
        return f"call it: .{value.name}()"
    if hasattr(type(value), "data_ptr"):
        return "a field of a struct in shared memory is read by its pointer: field.ptr.load()"
    if value is Ellipsis:
        return "write : for a whole tensor, a[:]"
    return None
