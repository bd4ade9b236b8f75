"""Launches: the kernel is lowered for its arguments' types, and its sizes are checked."""

from __future__ import annotations

import ast
import warnings
from dataclasses import replace
from typing import Any, Final

from ferrule.language.ir import ops, shared
from ferrule.language.layouts import Layout
from ferrule.language.lowering import structures
from ferrule.language.lowering.closures import Closure, captured
from ferrule.language.lowering.context import Frame, Lowering
from ferrule.language.lowering.descriptions import describe, usage_hint
from ferrule.language.lowering.launch.launch_options import (
    ASKED,
    asked_values,
    launch_options,
    most_threads,
)
from ferrule.language.lowering.launch.launch_sizes import (
    check_block,
    check_grid,
    check_size,
    one_size,
    three_sizes,
)
from ferrule.language.values import (
    ComplexNumber,
    CoordinateView,
    Handle,
    KernelCall,
    Maybe,
    Number,
    PointerView,
    TensorMapView,
    TensorView,
    is_record,
    is_run_time,
    is_value_object,
)
from ferrule.specs import DType, Numeric
from ferrule.specs.deferred import dataclass
from ferrule.specs.params import EnvStream, Stream


def launch(
    low: Lowering, call: KernelCall, args: list[Any], kwargs: dict[str, Any], node: ast.Call
) -> None:
    """`kernel(...).launch(grid=..., block=...)`."""
    _check_names(low, args, kwargs, node)
    low.state.unlaunched.pop(call, None)
    low.state.writes += 1
    _launched(low, call, kwargs, node)


def _launched(low: Lowering, call: KernelCall, kwargs: dict[str, Any], node: ast.Call) -> None:
    """One launch, or the one for a value that may be absent and the one without it."""
    for name, value in call.arguments.items():
        if isinstance(value, Maybe):
            _either(low, call, name, value, kwargs, node)
            return
    stream = _stream(low, kwargs.get("stream"), node)
    kernel, arguments = _kernel(low, call, node)
    options = launch_options(low, kwargs, node)
    block = three_sizes(low, "block", kwargs["block"], kernel.name, node)
    check_block(low, block, kernel.name, node, most_threads(options))
    grid = three_sizes(low, "grid", kwargs["grid"], kernel.name, node)
    check_grid(low, grid, kernel.name, node)
    smem = _smem(low, kwargs.get("smem"), kernel, node)
    asked = asked_values(low, kwargs, grid, kernel.name, node)
    x, y, z = (size.value for size in grid)
    bx, by, bz = (size.value for size in block)
    sizes, where = ((x, y, z), (bx, by, bz)), low.location(node)
    op = ops.Launch(kernel.name, *sizes, arguments, stream, smem, where, **asked, options=options)
    low.builder.append(op)


def _either(
    low: Lowering,
    call: KernelCall,
    name: str,
    value: Maybe,
    kwargs: dict[str, Any],
    node: ast.Call,
) -> None:
    """Launches the kernel for the item of an optional argument, or that for None."""
    sides = []
    for given in (value.item, None):
        one = replace(call, arguments={**call.arguments, name: given})
        with low.builder.region() as region, low.in_region():
            _launched(low, one, kwargs, node)
        sides.append(region.freeze())
    there, absent = sides
    low.builder.if_(value.present.value, there, absent, ())


def _check_names(low: Lowering, args: list[Any], kwargs: dict[str, Any], node: ast.Call) -> None:
    known = ("grid", "block", "smem", "stream", *ASKED)
    for name in sorted(set(kwargs) - set(known)):
        hint = f"write {_OTHER_NAMES[name]}=" if name in _OTHER_NAMES else None
        low.fail(node, f"launch has no argument {name!r}", expected=", ".join(known), hint=hint)
    missing = [name for name in ("grid", "block") if name not in kwargs]
    if args or missing:
        what = "takes keywords, but got a value without one" if args else f"lacks {missing[0]}"
        low.fail(node, f"launch {what}", expected=".launch(grid=(x, y, z), block=(x, y, z))")


_OTHER_NAMES: Final = {
    **dict.fromkeys(("blocks", "num_blocks", "grid_dim", "gridDim", "griddim"), "grid"),
    **dict.fromkeys(("threads", "num_threads", "block_dim", "blockDim", "blockdim"), "block"),
    **dict.fromkeys(("shared", "smem_bytes", "shared_mem", "sharedMem"), "smem"),
}
"""Names of other languages for the arguments of a launch."""


def _smem(low: Lowering, smem: Any, kernel: ops.Function, node: ast.Call) -> ops.Value | None:
    """The bytes of dynamic shared memory, if a launch requests any."""
    needed = shared.dynamic_bytes(kernel)
    if smem is None and needed:
        smem = needed
    if smem is None and needed is None:
        low.fail(
            node,
            f"{kernel.name} uses dynamic shared memory, but the launch gives it none",
            expected=".launch(grid=..., block=..., smem=bytes)",
        )
    if smem is None:
        return None
    size = one_size(low, "smem", smem, kernel.name, node)
    if needed and isinstance(size.dim, int) and 0 <= size.dim < needed:
        _say_too_little(low, kernel.name, size.dim, needed, node)
        size = one_size(low, "smem", needed, kernel.name, node)
    _, static = shared.offsets(kernel)
    from ferrule.compiler.cuda.limits import SMEM_LIMIT  # few launches need it

    check_size(low, "smem", size, (needed or 0, SMEM_LIMIT - static), kernel.name, node)
    return None if size.dim == 0 else size.value


def _say_too_little(low: Lowering, kernel: str, given: int, needed: int, node: ast.Call) -> None:
    """A warning: a launch says less than the kernel divides, and gets what is needed."""
    where = low.location(node)
    text = (
        f"{kernel} needs {needed} bytes of dynamic shared memory, but the launch says "
        f"smem={given}: it gets {needed}, as without smem="
    )
    warnings.warn_explicit(text, UserWarning, str(where.file), where.line)


def _stream(low: Lowering, stream: Any, node: ast.Call) -> ops.Value | None:
    """The handle of a stream parameter, or None."""
    if stream is None:
        return None
    if isinstance(stream, Handle) and isinstance(stream.param, (Stream, EnvStream)):
        return stream.leaves[0]
    low.fail(
        node,
        f"launch: the stream is {describe(stream)}",
        expected="a parameter whose example is make_fake_stream(), or no stream",
    )


def _kernel(
    low: Lowering, call: KernelCall, node: ast.Call
) -> tuple[ops.Function, tuple[ops.Value, ...]]:
    """The kernel lowered for these arguments (once for each combination), and its arguments.

    It is lowered again where compile-time objects, which it may read, may have changed since.
    """
    values = tuple(_key(value, name in call.sizes) for name, value in call.arguments.items())
    key = (call.kernel, values)
    arguments = tuple(_run_time_values(call.arguments))
    for name, value in call.arguments.items():
        _require_shared(low, name, value, node)
    state, changes = low.state, low.state.changes
    if (key, changes) not in state.kernels:
        made = lower_kernel(low, call, node)  # a loop in it may put another dict into the state
        others = (each for (other, _), each in state.kernels.items() if other == key)
        alike = (each for each in others if _is_alike(low, each, made))
        state.kernels[key, changes] = next(alike, made)
    return state.kernels[key, changes], arguments


def _is_alike(low: Lowering, kernel: ops.Function, other: ops.Function) -> bool:
    """Whether two kernels do the same, but for their names."""
    from ferrule.language.ir.printer import print_function

    symbols = low.state.symbols
    texts = (print_function(replace(each, name=""), symbols) for each in (kernel, other))
    return len(set(texts)) == 1


@dataclass(frozen=True, slots=True, eq=False)
class _Identity:
    """A constant that is compared by identity; it is kept alive, so that no other object gets its
    id."""

    value: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


def _key(value: Any, has_sizes: bool = False) -> object:
    """The key of a kernel's specialisation: the types of run-time values, the values of
    constants, and sizes where they are known by their expressions."""
    match value:
        case Number():
            return (value.dtype, value.dim) if has_sizes else value.dtype
        case TensorView():
            return (value.type, value.nested)
        case PointerView():
            return (PointerView, value.type)
        case TensorMapView():
            return (TensorMapView, value.value.type, value.boxes)
        case Layout():
            return value
        case CoordinateView(layout=layout, origin=origin):
            return (CoordinateView, layout, _key(origin))
        case tuple() | list():
            return (type(value), tuple(_key(item, has_sizes) for item in value))
        case bool() | int() | float() | str() | None | Numeric() | DType():
            return (type(value), repr(value))
        case _ if _has_parts(value):
            return (type(value), tuple(_key(item) for _, item in structures.parts(value) or ()))
    return _Identity(value)


def _has_parts(value: Any) -> bool:
    """Whether this is a complex number, a tensor of coordinates, or a dataclass or object with
    run-time values, whose parts are passed to a kernel one by one."""
    own = isinstance(value, (ComplexNumber, CoordinateView))
    return own or ((is_record(value) or is_value_object(value)) and is_run_time(value))


def _require_shared(low: Lowering, name: str, value: Any, node: ast.Call) -> None:
    """Refuses a fragment: it is private to the host function, and a kernel cannot access it."""
    if isinstance(value, (tuple, list)):
        for item in value:
            _require_shared(low, name, item, node)
    elif isinstance(value, (TensorView, PointerView)) and value.type.is_own:
        low.fail(
            node,
            f"a kernel takes a fragment of the host function for {name!r}",
            expected="a tensor or pointer that the caller passes",
            hint="make the fragment in the kernel: each thread has its own",
        )


def _run_time_values(arguments: dict[str, Any]) -> list[ops.Value]:
    result: list[ops.Value] = []

    def visit(value: Any) -> None:
        if isinstance(value, (Number, TensorView, PointerView, TensorMapView)):
            result.append(value.value)
        elif isinstance(value, (tuple, list)):
            for item in value:
                visit(item)
        elif _has_parts(value):
            for _, item in structures.parts(value) or ():
                visit(item)

    for value in arguments.values():
        visit(value)
    return result


def _require_constant(low: Lowering, value: Any, node: ast.Call) -> None:
    """Requires a kernel argument that is neither a number nor a tensor to be a compile-time
    value."""
    if is_run_time(value):
        in_parts = "pass its values one by one" if isinstance(value, dict) else None
        low.fail(
            node,
            f"a kernel cannot take {describe(value)}",
            hint=in_parts or usage_hint(value),
        )
    name = captured(value) if isinstance(value, Closure) else None
    if name is not None:
        low.fail(
            node,
            f"a kernel takes a function that uses the run-time value {name!r}",
            expected="a function of its arguments and of values known at compile time",
            hint=f"pass {name} to the kernel, and from there to the function",
        )


def lower_kernel(low: Lowering, call: KernelCall, node: ast.Call) -> ops.Function:
    """A kernel for these arguments: run-time ones become parameters, the rest constants."""
    source = low.state.sources[call.kernel.function]
    params: list[ops.Value] = []

    def parameter(name: str, value: Any, has_sizes: bool = False) -> Any:
        match value:
            case Number():
                params.append(ops.Value(value.dtype, name))
                return Number(params[-1], value.dim if has_sizes else None)
            case TensorView():
                params.append(ops.Value(value.type, name))
                return TensorView(params[-1], name, value.nested)
            case PointerView():
                params.append(ops.Value(value.type, name))
                return PointerView(params[-1], name)
            case TensorMapView():
                params.append(ops.Value(value.value.type, name))
                return TensorMapView(params[-1], value.name, value.boxes)
            case tuple():
                items = [parameter(f"{name}_{i}", v, has_sizes) for i, v in enumerate(value)]
                # The constructor of a named tuple takes its fields one by one, and may be the
                # user's.
                return tuple.__new__(type(value), items)
            case list():
                return [parameter(f"{name}_{i}", v, has_sizes) for i, v in enumerate(value)]
            case _ if _has_parts(value):
                low.state.has_objects |= is_value_object(value)
                parts = structures.parts(value) or []
                fields = [
                    parameter(f"{name}_{suffix.strip('.[]')}", item) for suffix, item in parts
                ]
                return structures.rebuild(value, fields)
        _require_constant(low, value, node)
        return value

    given = call.arguments.items()
    names = {name: parameter(name, value, name in call.sizes) for name, value in given}
    inner = low.fork("kernel", Frame(source, names, low.frame, node))
    inner.begin()
    with inner.builder.region() as region:
        returned = inner.execute(source.node.body)  # type: ignore[arg-type]
    if returned is not None and returned.value is not None:
        inner.fail(source.node, "a kernel returns nothing", hint="write results to a tensor")
    prefix = call.kernel.prefix
    name = low.state.kernel_name(f"{prefix}_{source.name}" if prefix else source.name)
    return ops.Function(name, "kernel", tuple(params), region.freeze())
