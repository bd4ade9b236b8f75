"""Joins the values of a name after two paths meet: the common value, or a run-time choice.

Tuples and dataclasses are joined item by item; values that are not numbers through `templates`.  If
a name has two values that cannot be joined, that is an error only if it is read afterwards.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any, Final

from ferrule.compiler.errors import CompileError
from ferrule.language.ir import ops
from ferrule.language.ir.builder import OpenRegion
from ferrule.language.ir.types import Type
from ferrule.language.lowering import structures
from ferrule.language.lowering.context import Lowering
from ferrule.language.lowering.control import templates
from ferrule.language.lowering.control.assumptions import retype
from ferrule.language.lowering.control.templates import NOTHING as NOTHING
from ferrule.language.lowering.descriptions import describe, is_function
from ferrule.language.lowering.numbers import coercion, scalars, sizes
from ferrule.language.promotion import NoCommonType, promote, weak
from ferrule.language.values import (
    ComplexNumber,
    Handle,
    KernelCall,
    Maybe,
    Number,
    OneOf,
    PointerView,
    TensorView,
    Whole,
)
from ferrule.specs import DType, Int64, Numeric
from ferrule.specs.deferred import dataclass

RETURNED: Final = "return value"
"""The path of a function's return value, in place of a name."""

_IN_REGIONS: Final = (
    Number,
    Whole,
    KernelCall,
    TensorView,
    PointerView,
    Handle,
    Maybe,
    OneOf,
)
"""Values that may depend on values from only one side of a branch."""
_KNOWN: Final = (bool, int, float, str, type(None), Numeric)


class Clash(Exception):
    """A name's values on the two paths cannot be joined; `error` is the error of reading it."""

    def __init__(self, error: CompileError) -> None:
        self.error = error


def same(left: Any, right: Any) -> bool:
    """Whether a name has the same value on both paths, so that no choice is needed."""
    if left is right:
        return True
    if structures.alike(left, right):
        pairs = zip(structures.parts(left) or (), structures.parts(right) or (), strict=True)
        return all(same(a, b) for (_, a), (_, b) in pairs)
    # By their repr, which distinguishes 0.0 from -0.0.
    return isinstance(left, _KNOWN) and type(left) is type(right) and repr(left) == repr(right)


@dataclass(frozen=True, slots=True)
class Sides:
    """The values of a name on both sides of a condition; `label` is its name in messages.

    `path` is the name, and the position of this part in its value.
    """

    hint: str
    label: str
    left: Any
    right: Any
    path: str = ""

    @property
    def one(self) -> Any:
        """The value on a side where it exists."""
        return self.right if self.left is NOTHING else self.left

    def kept(self) -> bool:
        """Whether it needs no choice: it is the same on both sides, or `NOTHING` on one and not a
        number on the other."""
        if same(self.left, self.right):
            return True
        nowhere = self.left is NOTHING or self.right is NOTHING
        if not nowhere or structures.parts(self.one) is not None:
            return False
        return not isinstance(self.one, _IN_REGIONS)

    def parts(self) -> list[Sides] | None:
        """The items of a tuple or dataclass that has the same form on both sides."""
        left = self.right if self.left is NOTHING else self.left
        right = self.left if self.right is NOTHING else self.right
        if not structures.alike(left, right):
            return None
        pairs = zip(structures.parts(left) or (), structures.parts(right) or (), strict=True)
        return [
            Sides(
                self.hint,
                self.label + suffix,
                NOTHING if self.left is NOTHING else a,
                NOTHING if self.right is NOTHING else b,
                self.path + suffix,
            )
            for (suffix, a), (_, b) in pairs
        ]


@dataclass(frozen=True, slots=True)
class Rows:
    """The kind of two values that are the first rows of one tensor, by `fe.shrink`: their numbers
    of rows are joined, and the value is so many rows."""

    like: TensorView


Choice = tuple[Sides, Any]
"""A choice: the sides, and the common kind: the dtype of a number, `Rows`, or one of
`templates`."""


def choices(low: Lowering, sides: Sides, node: ast.AST) -> list[Choice]:
    """The choices in a name.  Raises Clash if its values cannot be joined."""
    if sides.kept():
        return []
    parts = sides.parts()
    if parts is not None:
        return [choice for part in parts for choice in choices(low, part, node)]
    template = _template(low, sides)
    return [(sides, _common_dtype(low, sides, node) if template is None else template)]


def _template(low: Lowering, sides: Sides) -> Any:
    """The common template of a name's values that are not numbers; None for numbers, and if there
    is none.

    The result of the host function consists of numbers.
    """
    left, right = map(coercion.plain, (sides.left, sides.right))
    if all(x is NOTHING or _is_number(x) for x in (left, right)):
        return None
    if low.frame is low.root and sides.path.startswith(RETURNED):
        return None
    try:
        return templates.common(low, left, right)
    except templates.Unlike:
        return _rows(low, left, right)


def _rows(low: Lowering, left: Any, right: Any) -> Rows | None:
    if not low.state.shrunk:
        return None
    from ferrule.language.lowering import rows  # few programs need it

    return Rows(left) if rows.are_of_one(low, left, right) else None


def _is_number(value: Any) -> bool:
    return (
        isinstance(value, Number) or coercion.is_python_number(value) or coercion.is_complex(value)
    )


def join(
    low: Lowering,
    condition: Number,
    regions: tuple[OpenRegion, OpenRegion],
    sides: list[Sides],
    node: ast.AST,
) -> list[Any]:
    """Emits the `If` of two regions, and returns each name's value after it."""
    found = [choice for each in sides for choice in choices(low, each, node)]
    frozen = []
    for position, region in enumerate(regions):
        with low.builder.region(region):
            values = [value for each in found for value in _side(low, each, position, node)]
        frozen.append(region.freeze(*values))
    hints = tuple(
        "rows" if isinstance(kind, Rows) else each.hint
        for each, kind in found
        for _ in choice_types(kind)
    )
    results = iter(low.builder.if_(condition.value, frozen[0], frozen[1], hints))
    rest = iter(found)
    return [joined(low, each, rest, results, node) for each in sides]


def choose(
    low: Lowering,
    condition: Number,
    regions: tuple[OpenRegion, OpenRegion],
    values: tuple[Any, Any],
    name: str,
    node: ast.AST,
) -> Any:
    """One of two values, each computed in its region.  A CompileError if they cannot be joined."""
    sides = Sides(name, f"{name}: this value", *values)
    try:
        return join(low, condition, regions, [sides], node)[0]
    except Clash as clash:
        raise clash.error from None


def choice_types(kind: Any) -> tuple[Type, ...]:
    """The types of a choice of this kind."""
    if isinstance(kind, Rows):
        return (Int64,)
    if not isinstance(kind, DType):
        return templates.types(kind)
    return (kind.part, kind.part) if kind.kind == "complex" else (kind,)


def _side(low: Lowering, choice: Choice, position: int, node: ast.AST) -> list[ops.Value]:
    sides, _ = choice
    return one_side(low, choice, sides.left if position == 0 else sides.right, node)


def one_side(low: Lowering, choice: Choice, value: Any, node: ast.AST) -> list[ops.Value]:
    """The values of a name on one side."""
    _, kind = choice
    if isinstance(kind, Rows):
        from ferrule.language.lowering import rows

        return [rows.number(low, value)]
    if not isinstance(kind, DType):
        return templates.values(low, value, kind, node)
    if kind.kind == "complex":
        number = scalars.in_dtype(low, 0.0 if value is NOTHING else value, kind, node)
        return [number.real.value, number.imag.value]
    if value is NOTHING:
        return [zero(low, kind)]
    return [coercion.as_number(low, value, node, kind).value]


def zero(low: Lowering, dtype: DType) -> ops.Value:
    """A placeholder for a number that is never read."""
    return low.builder.constant(dtype, 0.0 if dtype.kind == "float" else 0)


def joined(
    low: Lowering,
    sides: Sides,
    rest: Iterator[Choice],
    results: Iterator[ops.Value],
    node: ast.AST,
) -> Any:
    """A name's value after the join: of the next choices, with values from `results`."""
    if sides.kept():
        return sides.one
    parts = sides.parts()
    if parts is not None:
        items = [joined(low, part, rest, results, node) for part in parts]
        return structures.rebuild(sides.one, items)
    _, kind = next(rest)
    if isinstance(kind, DType):
        if kind.kind == "complex":
            return ComplexNumber(Number(next(results)), Number(next(results)))
        return Number(next(results))
    if isinstance(kind, Rows):
        from ferrule.language.lowering import rows

        count = next(results)
        dim = sizes.symbol_of(low, count)
        return rows.so_many(low, kind.like, dim, count, sides.path or sides.hint, node)
    return templates.built(low, kind, results, sides.path or sides.hint)


def _common_dtype(low: Lowering, sides: Sides, node: ast.AST) -> DType:
    """The common dtype of a name's values.  Raises Clash if there is none."""
    left = coercion.plain(sides.one)
    right = coercion.plain(left if sides.right is NOTHING else sides.right)
    for value in (left, right):
        if not _is_number(value):
            nowhere = sides.left is NOTHING or sides.right is NOTHING
            one, other = describe(left), "nothing" if nowhere else describe(right)
            if one == other:
                one, other = _with_layout(left), _with_layout(right)
            raise Clash(
                low.error(
                    node,
                    f"{sides.label} is {one} on one way and {other} on the other",
                    expected=f"{choosable(low)}, where a run-time condition decides",
                    hint=_hint(low, sides, left, right),
                )
            )
    lhs, rhs = _dtype(left, right), _dtype(right, left)
    if lhs is not rhs:
        retype(low, sides.path, (lhs, rhs))
        raise Clash(
            low.error(
                node,
                f"{sides.label} changes its type: it is {lhs.name} on one way and {rhs.name} on "
                f"the other",
                hint=f"convert one of them, such as fe.{_wider(lhs, rhs).__name__}(...)",
            )
        )
    return lhs


def _with_layout(value: Any) -> str:
    """A value and its layout, such as a tensor and a view of it, whose names are one."""
    layout = getattr(value, "layout", None)
    return describe(value) if layout is None else f"{describe(value)} with the layout {layout}"


def choosable(low: Lowering) -> str:
    """The kinds of values that branches and loops can join, in words."""
    if low.kind != "host" or low.elementwise:
        return "numbers, tuples or dataclasses of numbers"
    return "one kind of number, text, object or tensor, tuples or dataclasses of these"


def _hint(low: Lowering, sides: Sides, left: Any, right: Any) -> str | None:
    if sides.path.startswith(RETURNED) and low.frame is low.root and low.kind == "host":
        return "annotate the function, -> Any or -> str | None, if it returns one or the other"
    if is_function(left) or is_function(right):
        return "call the functions on their own sides: y = f(x) if n > 0 else g(x)"
    if isinstance(left, Whole) or isinstance(right, Whole):
        return (
            "store whole tensors on their own ways, or choose each element: fe.where(n > 0, x, y)"
        )
    if isinstance(left, TensorView) and isinstance(right, TensorView):
        return "both must have one dtype and, in the same symbols, one shape and strides"
    return None


def _wider(left: DType, right: DType) -> DType:
    try:
        return promote(left, right)
    except NoCommonType:
        return right


def _dtype(value: Any, other: Any) -> DType:
    """The dtype of a value; a Python number takes the other side's if that can hold it."""
    if isinstance(value, (Number, ComplexNumber)):
        return value.dtype
    if isinstance(value, Numeric):
        return type(value)
    if isinstance(other, (Number, ComplexNumber)):
        return weak(value, other.dtype)
    if isinstance(other, Numeric):
        return weak(value, type(other))
    if isinstance(other, float) and not isinstance(value, bool):
        return weak(float(value), None)
    return weak(value, None)
