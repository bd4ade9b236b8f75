"""Coordinates of tensors: subscripts, checks, and an index for each dim."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from ferrule.compiler.artefacts import Fault, literal
from ferrule.language import layouts
from ferrule.language.ir import ops
from ferrule.language.layouts.coordinates import has_free, is_free, natural
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.descriptions import describe
from ferrule.language.lowering.numbers import coercion, scalars
from ferrule.language.lowering.numbers.sizes import size_number
from ferrule.language.values import Number
from ferrule.specs import Boolean, Compound, Int32, Int64, Numeric, Sym
from ferrule.specs.deferred import dataclass
from ferrule.specs.expr import INT64_MAX

_ALL = slice(None)


def subscript(low: Lowering, node: ast.expr) -> tuple[Any, ...]:
    """The coordinate in a subscript: numbers, None and `slice(None)` for `:`, possibly nested."""
    if not isinstance(node, ast.Tuple):
        value = _part(low, node)
        return value if isinstance(value, tuple) else (value,)
    return tuple(each for part in node.elts for each in _parts(low, part))


def number_element(low: Lowering, tensor: Any, node: ast.Subscript) -> tuple[Any, Any]:
    """The pointer of a tensor whose layout has numbers, and the offset of an element of it."""
    from ferrule.language.lowering.numbers import number_tensors  # few programs need it

    return number_tensors.element(low, tensor, subscript(low, node.slice), node.slice)


def _parts(low: Lowering, part: ast.expr) -> tuple[Any, ...]:
    """A part of a coordinate, or the items of a starred one."""
    if not isinstance(part, ast.Starred):
        return (_part(low, part),)
    items = low.evaluate(part.value)
    if not isinstance(items, (tuple, list)):
        low.fail(part, f"{describe(items)} cannot be unpacked", expected="a tuple of coordinates")
    return tuple(items)


def _part(low: Lowering, part: ast.expr) -> Any:
    if not isinstance(part, ast.Slice):
        return low.evaluate(part)
    if part.lower is not None or part.upper is not None or part.step is not None:
        low.fail(
            part,
            "slices with bounds are not supported",
            expected="a[:]",
            hint="loop over range(start, stop), or take a tile, fe.local_tile(a, (4,), (i,))",
        )
    return _ALL


@contextmanager
def refusals(low: Lowering, node: ast.AST) -> Iterator[None]:
    """Inside, a LayoutError becomes a CompileError at this node."""
    try:
        yield
    except layouts.LayoutError as error:
        low.fail(node, str(error))


@dataclass(frozen=True, slots=True)
class Emitted:
    """Arithmetic on coordinates, which emits ops for run-time values.

    Products are Int64, so that no offset wraps.
    """

    low: Lowering
    node: ast.AST

    def add(self, lhs: Any, rhs: Any) -> Any:
        """`lhs + rhs`."""
        return self._emit("add", lhs, rhs)

    def mul(self, lhs: Any, rhs: Any) -> Any:
        """`lhs * rhs`."""
        wide = coercion.convert(self.low, lhs, Int64) if isinstance(lhs, Number) else lhs
        return self._emit("mul", wide, rhs)

    def floordiv(self, lhs: Any, rhs: Any) -> Any:
        """`lhs // rhs`."""
        return self._emit("floordiv", lhs, rhs)

    def mod(self, lhs: Any, rhs: Any) -> Any:
        """`lhs % rhs`."""
        return self._emit("mod", lhs, rhs)

    def _emit(self, name: ops.BinaryOp, lhs: Any, rhs: Any) -> Any:
        if isinstance(lhs, int) and isinstance(rhs, int):
            return getattr(layouts.SIZES, name)(lhs, rhs)
        return scalars.arithmetic(self.low, name, self._side(lhs), self._side(rhs), self.node)

    def _side(self, value: Any) -> Any:
        return size_number(self.low, value) if isinstance(value, (Sym, Compound)) else value


class Laid(Protocol):
    """What coordinates need of a tensor."""

    @property
    def layout(self) -> layouts.Layout:
        """The layout from coordinates to elements."""

    @property
    def name(self) -> str:
        """The name in messages."""


def indices(
    low: Lowering,
    tensor: Laid,
    coordinate: tuple[Any, ...],
    node: ast.AST,
    arithmetic: layouts.Arithmetic | None = None,
) -> tuple[Number | int, ...]:
    """The index along each dim of the tensor's type; 0 if the coordinate keeps a mode.

    A number for a nested mode counts its elements, and one alone those of the tensor, the first
    mode fastest.  A CompileError for a coordinate that does not fit, is not an integer, or is known
    to be out of range.
    """
    shape = tensor.layout.shape
    assert isinstance(shape, tuple)
    if len(coordinate) == 1 and len(shape) > 1 and not has_free(coordinate):
        shape = (shape,)
    if len(coordinate) != len(shape):
        low.fail(
            node,
            f"{tensor.name} has {len(shape)} dims, but {len(coordinate)} coordinates are given",
            expected=f"{tensor.name}[{', '.join('ijklmnop'[: len(shape)]) or '()'}]",
        )
    checked = tuple(
        _checked(low, tensor, f"coordinate {axis}", part, mode, node)
        for axis, (part, mode) in enumerate(zip(coordinate, shape, strict=True))
    )
    with refusals(low, node):
        found = natural(checked, shape, arithmetic or Emitted(low, node))
    return tuple(layouts.flatten(found))


def whole_as_all(tensor: Laid, coordinate: tuple[Any, ...]) -> tuple[Any, ...]:
    """A coordinate, in which a single None or `:` stands for that of every mode."""
    if len(coordinate) == 1 and is_free(coordinate[0]):
        return coordinate * len(tensor.layout)
    return coordinate


def _checked(low: Lowering, tensor: Laid, label: str, part: Any, mode: Any, node: ast.AST) -> Any:
    """A coordinate of one mode, its leaves ints in range, run-time integers, or None."""
    if is_free(part):
        return None
    if isinstance(part, tuple):
        modes = mode if isinstance(mode, tuple) else ()
        if len(modes) != len(part):
            low.fail(
                node,
                f"{label} of {tensor.name} is a tuple of {len(part)}, but the mode there is "
                f"{layouts.format_tuple(mode)}",
                expected=f"a number, or {len(modes)} of them" if modes else "a number",
            )
        pairs = enumerate(zip(part, modes, strict=True))
        return tuple(_checked(low, tensor, f"{label}[{i}]", p, m, node) for i, (p, m) in pairs)
    known = coercion.plain(part.value if isinstance(part, Numeric) else part)
    if isinstance(known, int) and not isinstance(known, bool):
        _check_known(low, tensor, label, known, layouts.product(mode), node)
        return known
    number = coercion.as_number(low, part, node)
    if not number.dtype.is_integer:
        low.fail(
            node,
            f"{label} of {tensor.name} is {describe(number)}",
            expected="an integer",
            hint="convert it, fe.Int32(x)",
        )
    return number


def _check_known(
    low: Lowering, tensor: Laid, label: str, known: int, size: Any, node: ast.AST
) -> None:
    if size == INT64_MAX:  # a pointer: the size behind it is unknown
        return
    if known < 0:
        axis = label.split()[-1]
        hint = f"count from the end with {tensor.name}.shape[{axis}] - {-known}"
        low.fail(node, f"{label} of {tensor.name} is negative: {known}", hint=hint)
    if not isinstance(size, int) or known < size:
        return
    message = f"{label} of {tensor.name} is {known}, but the size there is {size}"
    if size > 0:
        low.fail(node, message)
    # Code for other sizes, such as the body of a loop, may never run for an empty tensor.
    never = low.builder.constant(Boolean, value=False)
    low.builder.check(never, Fault("IndexError", literal(message), low.location(node)))


def values(low: Lowering, found: tuple[Number | int, ...], node: ast.AST) -> tuple[ops.Value, ...]:
    """Indices as values of the IR."""
    return tuple(
        coercion.as_number(low, each, node, Int64 if _is_wide(each) else Int32).value
        for each in found
    )


def _is_wide(index: Number | int) -> bool:
    return isinstance(index, int) and not -(1 << 31) <= index < 1 << 31
