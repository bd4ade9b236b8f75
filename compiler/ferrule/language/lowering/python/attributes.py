"""Attributes of run-time values; those of compile-time objects are ordinary Python."""

from __future__ import annotations

import ast
import difflib
import inspect
from collections.abc import Callable, Iterable
from functools import partial
from types import SimpleNamespace
from typing import Any, Final, TypeAlias

from ferrule.compiler.errors import NoSuchNameError
from ferrule.language import marks
from ferrule.language.dependencies.mutable import ATOMS
from ferrule.language.faces import maths
from ferrule.language.layouts import ComposedLayout, Layout
from ferrule.language.lowering.arguments import method, method_of
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.descriptions import describe, usage_hint
from ferrule.language.lowering.handles import is_container, is_device, is_registered, is_text
from ferrule.language.lowering.launch import launches
from ferrule.language.lowering.numbers import coercion
from ferrule.language.lowering.numbers.sizes import named, size_numbers
from ferrule.language.lowering.python import conversions
from ferrule.language.lowering.tensors import elements, views, whole_tensors
from ferrule.language.values import (
    RUN_TIME,
    BoundMethod,
    ComplexNumber,
    ConstantTable,
    CoordinateView,
    Fielded,
    Handle,
    KernelCall,
    Number,
    PointerView,
    ShownText,
    SwizzledPointer,
    SwizzledView,
    TensorView,
    ThreadSlice,
    Undefined,
    Vector,
    Whole,
)
from ferrule.specs import Numeric

_TENSOR: Final[dict[str, Callable[[Lowering, TensorView], Any]]] = {
    "shape": lambda low, t: size_numbers(low, t.layout.shape),
    "stride": lambda low, t: size_numbers(low, t.layout.stride),
    "layout": lambda low, t: named(low, t.layout),
    "iterator": views.iterator,
    "memspace": lambda low, t: t.type.space,
    "element_type": lambda low, t: t.type.dtype,
    "dtype": lambda low, t: t.type.dtype,
    "ndim": lambda low, t: len(t.layout),
    "leading_dim": lambda low, t: _leading_dim(t),
    "dim": method_of("tensors.tensor_facts", "dim"),
    "size": method_of("tensors.tensor_facts", "size"),
    "sizes": method_of("tensors.tensor_facts", "sizes"),
    "strides": method_of("tensors.tensor_facts", "strides"),
    "numel": method_of("tensors.tensor_facts", "numel"),
    "data_ptr": method_of("tensors.tensor_facts", "data_ptr"),
    "is_contiguous": method_of("tensors.tensor_facts", "is_contiguous"),
    "reshape": method_of("tensors.tensor_methods", "reshape"),
    "transpose": method_of("tensors.tensor_methods", "transpose"),
    "recast": method_of("tensors.tensor_methods", "recast_tensor"),
    "load": method_of("tensors.vectors", "load"),
    "store": method_of("tensors.vectors", "store_method"),
    "fill": method(elements.fill),
}
_POINTER: Final[dict[str, Callable[[Lowering, PointerView], Any]]] = {
    "dtype": lambda low, p: p.type.dtype,
    "element_type": lambda low, p: p.type.dtype,
    "value_type": lambda low, p: p.type.dtype,
    "alignment": lambda low, p: p.type.align,
    "max_alignment": lambda low, p: p.type.align,
    "memspace": lambda low, p: p.type.space,
    "llvm_ptr": lambda low, p: p,  # of programs for CuTe DSL, which have another pointer there
    "to_llvm_ptr": lambda low, p: BoundMethod(lambda *_: p, "to_llvm_ptr"),
    "ir_value": lambda low, p: BoundMethod(lambda *_: p, "ir_value"),
    "align": method_of("tensors.tensor_methods", "align"),
    "load": lambda low, p: BoundMethod(partial(elements.load_first, p), "load"),
    "store": lambda low, p: BoundMethod(partial(elements.store_first, p), "store"),
    "toint": method_of("tensors.tensor_facts", "toint"),
}
_WHOLE: Final[dict[str, Callable[[Lowering, Whole], Any]]] = {
    "shape": lambda low, w: size_numbers(low, w.shape),
    "element_type": lambda low, w: w.dtype,
    "dtype": lambda low, w: w.dtype,
    "ndim": lambda low, w: len(w.shape),
    "to": lambda low, w: BoundMethod(partial(conversions.to, w), "to"),
    "bitcast": lambda low, w: BoundMethod(partial(conversions.bitcast, w), "bitcast"),
}
_VECTOR: Final[dict[str, Callable[[Lowering, Vector], Any]]] = {
    "shape": lambda low, v: v.shape,
    "dtype": lambda low, v: v.dtype,
    "element_type": lambda low, v: v.dtype,
    "to": lambda low, v: BoundMethod(partial(conversions.to, v), "to"),
    "bitcast": lambda low, v: BoundMethod(partial(conversions.bitcast, v), "bitcast"),
    "reduce": lambda low, v: BoundMethod(partial(_reduce, v), "reduce"),
    "broadcast_to": method_of("tensors.vectors", "broadcast_to"),
    "numel": lambda low, v: BoundMethod(lambda *_: len(v.items), "numel"),
    "reshape": method_of("tensors.vectors", "reshape"),
    "apply_op": method_of("tensors.vectors", "apply_op"),
    "to_elements": lambda low, v: BoundMethod(lambda *_: v.items, "to_elements"),
    "ir_value": lambda low, v: BoundMethod(lambda *_: v, "ir_value"),  # as of numbers
}
_NUMBER: Final[dict[str, Callable[[Lowering, Number | Numeric], Any]]] = {
    "dtype": lambda low, n: n.dtype if isinstance(n, Number) else type(n),
    "to": lambda low, n: BoundMethod(partial(conversions.to, n), "to"),
    "bitcast": lambda low, n: BoundMethod(partial(conversions.bitcast, n), "bitcast"),
}


def _leading_dim(tensor: TensorView) -> Any:
    from ferrule.language.lowering.tensors import tensor_facts

    return tensor_facts.leading_dim(tensor)


_SIZES_OF: Final = ("shape", "stride", "offset", "max_alignment")
_ATOMS: Final = "ferrule.language.atoms"

_COMPLEX_NUMBER: Final[dict[str, Callable[[Lowering, ComplexNumber], Any]]] = {
    "real": lambda low, z: z.real,
    "imag": lambda low, z: z.imag,
    "dtype": lambda low, z: z.dtype,
    "to": lambda low, z: BoundMethod(partial(conversions.to, z), "to"),
}
_COMPLEX: Final = ("real", "imag", "conj", "conjugate")


def _complex_attribute(low: Lowering, value: Any, attr: str, node: ast.AST) -> Any:
    """`z.real`, `z.imag`, `z.conj()` and `z.conjugate()`, also of vectors and whole tensors."""
    from ferrule.language.lowering.numbers import complexes

    if attr in ("real", "imag"):
        return whole_tensors.lift(low, (value,), node, lambda z: getattr(z, attr))

    def conjugate(low: Lowering, args: list[Any], kwargs: Any, node: ast.Call) -> Any:
        if args or kwargs:
            low.fail(node, f"{attr} takes no arguments", expected=f"z.{attr}()")
        return whole_tensors.lift(low, (value,), node, lambda z: complexes.conjugate(low, z, node))

    return BoundMethod(conjugate, attr)


def _reduce(vector: Vector, low: Lowering, *given: Any) -> Any:
    from ferrule.language.lowering.tensors.vector_functions import reduce

    return reduce(vector, low, *given)


def get(low: Lowering, value: Any, attr: str, node: ast.AST) -> Any:
    """`value.attr`."""
    reader = next((_READERS[kind] for kind in type(value).__mro__ if kind in _READERS), None)
    if reader is None and type(value).__module__.startswith(_ATOMS):
        reader = _of_atom
    found = _NOT_FOUND if reader is None else reader(low, value, attr, node)
    if found is not _NOT_FOUND:
        return found
    if isinstance(value, RUN_TIME):
        what = f"{describe(value)} has no attribute {attr!r}"
        low.fail(node, what, hint=usage_hint(value))
    return _of_object(low, value, attr, node)


_NOT_FOUND: Final = object()
"""What a reader gives for an attribute that it leaves to Python, or that is an error."""


def _of_object(low: Lowering, value: Any, attr: str, node: ast.AST) -> Any:
    """An attribute of a compile-time object, as Python has it."""
    if not hasattr(value, attr):
        said = _said_of_cute(value, attr)
        if said is not None:
            low.fail(node, said)
        low.fail(
            node,
            f"{_name(value)} has no attribute {attr!r}",
            hint=_COORDINATE.get(attr)
            if isinstance(value, tuple)
            else _near(attr, value, dir(value)),
        )
    found = coercion.at_compile_time(low, node, lambda: getattr(value, attr))
    low.state.witness.add_attribute(value, attr, found)
    if isinstance(value, SimpleNamespace):
        _read_of_namespace(low, value, attr, found, node)
    if low.state.region is not None and type(found) not in ATOMS:
        low.state.region.member(value, attr, found)
    return found


def _said_of_cute(value: Any, attr: str) -> str | None:
    """What a module of ferrule says of a name of CuTe DSL that it has not, as it does in Python."""
    if not inspect.ismodule(value) or value.__name__.partition(".")[0] != "ferrule":
        return None
    try:
        getattr(value, attr)
    except NoSuchNameError as error:
        return str(error)
    except AttributeError:
        return None
    return None


def _type_as_text(low: Lowering, value: Any) -> ShownText:
    from ferrule.language.lowering.objects import shown

    return ShownText(shown.as_text(low, value))


def _of_tensor(low: Lowering, value: TensorView, attr: str, node: ast.AST) -> Any:
    if attr == "type":
        return _type_as_text(low, value)
    if attr == "device":
        from ferrule.language.lowering.tensors import devices

        return devices.device_of(low, value, node)
    # CuTe DSL's programs say `_dtype` of tensors, too.
    return _from_table(low, _TENSOR, value, "dtype" if attr == "_dtype" else attr, node)


def _of_pointer(low: Lowering, value: PointerView, attr: str, node: ast.AST) -> Any:
    if attr == "type":
        return _type_as_text(low, value)
    return _from_table(low, _POINTER, value, attr, node)


def _of_elements(
    table: dict[str, Callable[[Lowering, Any], Any]],
    low: Lowering,
    value: ComplexNumber | Whole | Vector,
    attr: str,
    node: ast.AST,
) -> Any:
    """An attribute of a value that can be complex."""
    if attr in _COMPLEX and value.dtype.kind == "complex":
        return _complex_attribute(low, value, attr, node)
    return _from_table(low, table, value, attr, node)


def _of_constant_table(low: Lowering, value: ConstantTable, attr: str, node: ast.AST) -> Any:
    return value.shape if attr == "shape" else _NOT_FOUND


def _of_fielded(low: Lowering, value: Fielded, attr: str, node: ast.AST) -> Any:
    from ferrule.language.lowering.tensors import fields

    is_pointer = fields.is_pointer(value)
    if attr == "fill" and not is_pointer:
        return BoundMethod(partial(fields.fill, value), "fill")
    known = fields.POINTER if is_pointer else fields.TENSOR
    return _from_table(low, known, value, attr, node)


def _of_layout(low: Lowering, value: Layout | ComposedLayout, attr: str, node: ast.AST) -> Any:
    if isinstance(value, Layout) and attr in _COORDINATES_OF:
        return BoundMethod(partial(_coordinate_of, value, attr), attr)
    return size_numbers(low, getattr(value, attr)) if attr in _SIZES_OF else _NOT_FOUND


def _of_number(low: Lowering, value: Number | Numeric, attr: str, node: ast.AST) -> Any:
    if attr == "ir_value":  # of programs for CuTe DSL
        return BoundMethod(lambda *_: value, attr)
    return _from_table(low, _NUMBER, value, attr, node)


def _of_typed_constant(low: Lowering, value: Numeric, attr: str, node: ast.AST) -> Any:
    known = attr in _NUMBER or attr == "ir_value"
    return _of_number(low, value, attr, node) if known else _NOT_FOUND


def _of_python_number(low: Lowering, value: float, attr: str, node: ast.AST) -> Any:
    if attr == "bitcast":
        low.fail(node, "a Python number has no size", expected="fe.Float32(x).bitcast(…)")
    return BoundMethod(partial(conversions.to, value), "to") if attr == "to" else _NOT_FOUND


def _of_handle(low: Lowering, value: Handle, attr: str, node: ast.AST) -> Any:
    if is_device(value) or is_text(value):
        from ferrule.language.lowering.objects import texts

        read = texts.attribute if is_text(value) else texts.device_attribute
        return read(low, value, attr, node)
    if is_container(value):
        from ferrule.language.lowering.objects import container_methods

        return container_methods.attribute(low, value, attr, node)
    if is_registered(value):
        from ferrule.language.lowering.objects import reflection

        return reflection.attribute(low, value, attr, node)
    return _NOT_FOUND


def _of_atom(low: Lowering, value: Any, attr: str, node: ast.AST) -> Any:
    from ferrule.language.lowering.device import thread_slices

    found = thread_slices.method(value, attr)
    return _NOT_FOUND if found is None else found


def _of_kernel_call(low: Lowering, value: KernelCall, attr: str, node: ast.AST) -> Any:
    if attr != "launch":
        return _NOT_FOUND
    return BoundMethod(
        lambda low, args, kwargs, call: launches.launch(low, value, args, kwargs, call), "launch"
    )


def _read_of_namespace(
    low: Lowering, owner: SimpleNamespace, attr: str, found: Any, node: ast.AST
) -> None:
    """Records that code under a condition uses what the attribute was before, and refuses one that
    such code has changed."""
    if isinstance(found, Undefined):
        raise low.undefined(found, attr, node)
    if low.state.region is not None:
        low.state.region.reads_setting((id(owner), attr))


_COORDINATES_OF: Final = ("get_flat_coord", "get_hier_coord")


def _coordinate_of(
    layout: Layout,
    attr: str,
    low: Lowering,
    args: list[Any],
    kwargs: dict[str, Any],
    node: ast.Call,
) -> Any:
    """`layout.get_flat_coord(idx)`, `layout.get_hier_coord(idx)`."""
    from ferrule.language.lowering.tensors import layout_functions

    return layout_functions.coordinate_of(low, layout, attr, args, kwargs, node)


def _of_arranged(low: Lowering, value: Any, attr: str, node: ast.AST) -> Any:
    """An attribute of a kind of tensor that few kernels have: its modules are imported here."""
    from ferrule.language.lowering.tensors import coordinate_views, swizzled

    if attr == "type" and isinstance(value, SwizzledView | CoordinateView):
        return _type_as_text(low, value)
    low.here = node
    match value:
        case SwizzledView():
            known: dict[str, Callable[[Lowering, Any], Any]] = dict(swizzled.TENSOR)
            known["recast"] = _TENSOR["recast"]
            return _from_table(low, known, value, attr, node)
        case SwizzledPointer():
            return _from_table(low, swizzled.POINTER, value, attr, node)
        case CoordinateView():
            return _from_table(low, coordinate_views.TENSOR, value, attr, node)
    from ferrule.language.lowering.device import thread_slices

    return thread_slices.attribute(low, value, attr, node)


_COORDINATE: Final = {axis: f"it is a tuple: x[{i}]" for i, axis in enumerate("xyz")}


def _name(value: Any) -> str:
    if not inspect.ismodule(value):
        return describe(value)
    return "fe.math" if value is maths else f"the module {value.__name__}"


_OTHERS: dict[str, str] = {
    f"arc{name}": f"a{name}" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")
}
_OTHERS |= {"rint": "roundeven", "nearbyint": "roundeven", "power": "pow", "arctan2": "atan2"}
_OTHERS |= {"fmax": "max", "fmin": "min", "maximum": "max", "minimum": "min"}
"""Names of C and NumPy, and what `fe.math` has for them."""


def _near(attr: str, value: Any, known: Iterable[str]) -> str | None:
    if value is maths and attr in _OTHERS:
        return f"did you mean .{_OTHERS[attr]}?"
    if isinstance(value, marks.KernelFunction) and attr == "launch":
        return "kernel(a, b).launch(grid=..., block=...)"
    near = difflib.get_close_matches(attr, known, n=1)
    return f"did you mean .{near[0]}?" if near else None


def _from_table(
    low: Lowering,
    table: dict[str, Callable[[Lowering, Any], Any]],
    value: Any,
    attr: str,
    node: ast.AST,
) -> Any:
    if attr in table:
        return table[attr](low, value)
    low.fail(
        node,
        f"{describe(value)} has no attribute {attr!r}",
        expected=f"one of {', '.join(table)}",
        hint=_near(attr, value, table),
    )


_Reader: TypeAlias = "Callable[[Lowering, Any, str, ast.AST], Any]"

_READERS: Final[dict[type, _Reader]] = {
    TensorView: _of_tensor,
    PointerView: _of_pointer,
    **dict.fromkeys((SwizzledView, SwizzledPointer, CoordinateView, ThreadSlice), _of_arranged),
    ConstantTable: _of_constant_table,
    Fielded: _of_fielded,
    **dict.fromkeys((Layout, ComposedLayout), _of_layout),
    Number: _of_number,
    Numeric: _of_typed_constant,
    **dict.fromkeys((bool, int, float), _of_python_number),
    ComplexNumber: partial(_of_elements, _COMPLEX_NUMBER),
    Whole: partial(_of_elements, _WHOLE),
    Vector: partial(_of_elements, _VECTOR),
    Handle: _of_handle,
    KernelCall: _of_kernel_call,
}
"""What reads the attributes of a value, by its class."""
