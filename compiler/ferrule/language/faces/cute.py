"""Names that only programs for CuTe DSL use; ferrule's own programs write the Python that they are.

`SymInt`, `Integer` and `Float` answer `isinstance`; the functions work in ordinary Python and in
compiled functions.
"""

from __future__ import annotations

from typing import Any

from ferrule.language.faces.base import outside
from ferrule.language.faces.vectors import where
from ferrule.language.layouts import (
    ComposedLayout,
    Layout,
    ScaledBasis,
    Swizzle,
    get,
    make_swizzle,
)
from ferrule.language.layouts.errors import refuse
from ferrule.specs import Boolean, DType, Float32, Int32, Numeric, Sym, sym_int
from ferrule.specs.dtypes import as_dtype


class _SymIntType(type):
    """The type of `SymInt`, a function with the instances of `Sym`."""

    def __call__(cls, width: int = 32, *, divisibility: int = 1, symbol: str | None = None) -> Any:
        return sym_int(width, divisibility=divisibility, symbol=symbol)

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Sym)


class SymInt(metaclass=_SymIntType):
    """A symbolic size: `sym_int`."""


class _Kind(type):
    """The type of classes whose instances are the numbers of some dtypes."""

    kinds: tuple[str, ...] = ()

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Numeric) and type(instance).kind in cls.kinds

    def __subclasscheck__(cls, subclass: type) -> bool:
        return isinstance(subclass, DType) and subclass.kind in cls.kinds


class Integer(metaclass=_Kind):
    """The integer dtypes, for `isinstance` and `issubclass`."""

    kinds = ("int", "uint", "bool")


class Float(metaclass=_Kind):
    """The floating-point dtypes, for `isinstance` and `issubclass`."""

    kinds = ("float",)


class _OfThread(type):
    """The type of classes whose instances are a thread's part of something tiled."""

    of: str = ""

    def __instancecheck__(cls, instance: object) -> bool:
        return type(getattr(instance, "of", None)).__name__ == cls.of


class ThrCopy(metaclass=_OfThread):
    """For annotations: a thread's part of a tiled copy."""

    of = "TiledCopy"


class ThrMma(metaclass=_OfThread):
    """For annotations: a thread's part of a tiled matrix multiplication."""

    of = "TiledMma"


Int = int
"""For annotations: an integer."""


class GridConstant:
    """`GridConstant[T]` is T: each argument of a kernel is constant in the grid."""

    def __class_getitem__(cls, item: Any) -> Any:
        return item


def dtype(dtype_: str) -> DType:
    """The dtype of a name: "Float16", or "float16"."""
    from ferrule import specs

    found = getattr(specs, dtype_, None)
    return found if isinstance(found, DType) else as_dtype(dtype_)


def dynamic_expr(expression: Any) -> Any:
    """The value itself: whether a condition is known while compiling is found out."""
    return expression


def as_numeric(obj: Any) -> Any:
    """A Python number with a dtype: Boolean, Int32 or Float32; others as they are."""
    if isinstance(obj, bool):
        return Boolean(obj)
    if isinstance(obj, int):
        return Int32(obj)
    return Float32(obj) if isinstance(obj, float) else obj


def and_(*args: Any) -> Any:
    """Whether all conditions hold; all are computed."""
    result = True
    for each in args:
        result = where(each, result, False)
    return result


def or_(*args: Any) -> Any:
    """Whether a condition holds; all are computed."""
    result = False
    for each in args:
        result = where(each, True, result)
    return result


def not_(lhs: Any) -> Any:
    """Whether a condition does not hold."""
    return not lhs


def select_(cond: Any, if_value: Any, else_value: Any) -> Any:
    """The one value if the condition holds, else the other; both are computed."""
    return where(cond, if_value, else_value)


def extract_mlir_values(obj: Any) -> Any:
    """A list of the values in an object, a tuple or a list that the run has, in order."""
    outside("extract_mlir_values")


def new_from_mlir_values(obj: Any, values: Any) -> Any:
    """An object like `obj` that has these values, as many as `extract_mlir_values` gives."""
    outside("new_from_mlir_values")


def if_generate(
    cond: Any,
    then_body: Any,
    else_body: Any = None,
    input_args: Any = (),
    return_types: Any = (),
    **_: Any,
) -> Any:
    """The result of the one function if the condition holds, else the result of the other."""
    if else_body is None:
        if cond:
            then_body(*(input_args or ()))
        return None
    return then_body(*(input_args or ())) if cond else else_body(*(input_args or ()))


def basis_value(e: Any) -> Any:
    """The number of units of a `ScaledBasis`; anything else as it is."""
    return e.value if isinstance(e, ScaledBasis) else e


def basis_get(basis: Any, t: Any) -> Any:
    """The mode of a tuple or layout of which a `ScaledBasis` counts units; for anything else all of
    it."""
    return get(t, list(basis.mode)) if isinstance(basis, ScaledBasis) else t


def get_swizzle_portion(layout: Any) -> Swizzle:
    """The swizzle of a layout: S<0,4,3>, which changes nothing, of one without."""
    if isinstance(layout, ComposedLayout) and isinstance(layout.inner, Swizzle):
        return layout.inner
    if isinstance(layout, (Layout, ComposedLayout)):
        return make_swizzle(0, 4, 3)
    refuse("get_swizzle_portion", f"the layout is {layout!r}", "give a layout")


def get_nonswizzle_portion(layout: Any) -> Any:
    """A layout without its swizzle: what is applied first."""
    if isinstance(layout, ComposedLayout):
        return layout.outer
    if isinstance(layout, Layout):
        return layout
    refuse("get_nonswizzle_portion", f"the layout is {layout!r}", "give a layout")


def dsl_user_op(function: Any) -> Any:
    """A decorator that changes nothing: each function is compiled in place."""
    return function


for_generate = range
"""The numbers of a run-time loop."""


def yield_out(args: Any = ()) -> None:
    """The end of a loop over `for_generate`; what a loop changes is found."""
    if args:
        raise TypeError("yield_out takes no values: what a loop changes is found, write only that")
