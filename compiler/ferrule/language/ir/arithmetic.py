"""Ops of the kernel IR on numbers; their semantics is in the docstring of `ops`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

from ferrule.language.ir.operation import Operation, Result
from ferrule.language.ir.scalars import BinaryOp, UnaryOp
from ferrule.language.ir.values import Value
from ferrule.specs.deferred import dataclass

__all__ = [  # names of `ops`
    "Arithmetic",
    "Binary",
    "Bitcast",
    "Cast",
    "Compare",
    "CompareOp",
    "Constant",
    "Fma",
    "Select",
    "Unary",
]

CompareOp = Literal["eq", "ne", "lt", "le", "gt", "ge"]


@dataclass(frozen=True, slots=True, eq=False)
class Constant(Operation, text="constant {value!r}", effects=(), uniform=True, speculative=True):
    """A number of the result's dtype, or 0 for a null handle."""

    result: Result
    value: bool | int | float


@dataclass(frozen=True, slots=True, eq=False)
class Unary(
    Operation,
    text="{op}{fast:fast}{flags:flags} {operand}",
    effects=(),
    uniform=True,
    speculative=True,
):
    """`op operand`; the result has the operand's dtype.  `flags`: see `fastmath`."""

    result: Result
    op: UnaryOp
    operand: Value
    fast: bool = False
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Binary(
    Operation,
    text="{op}{fast:fast}{flags:flags} {lhs}, {rhs}",
    effects=(),
    uniform=True,
    speculative=True,
):
    """`lhs op rhs`; operands and result have one dtype.  `flags`: see `fastmath`."""

    result: Result
    op: BinaryOp
    lhs: Value
    rhs: Value
    fast: bool = False
    flags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Fma(
    Operation, text="fma{rest:rest} {x}, {y}, {z}", effects=(), uniform=True, speculative=True
):
    """`x * y + z` of floats, rounded once; operands and result have one dtype.

    `rest`: of float32s, and z is `-(x * y)`, so that a target without the instruction computes the
    same bits by a product in parts.
    """

    result: Result
    x: Value
    y: Value
    z: Value
    rest: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Compare(Operation, text="cmp {op} {lhs}, {rhs}", effects=(), uniform=True, speculative=True):
    """`lhs op rhs` as a Boolean; comparisons with NaN are false, `ne` true."""

    result: Result
    op: CompareOp
    lhs: Value
    rhs: Value


@dataclass(frozen=True, slots=True, eq=False)
class Cast(
    Operation, text="cast{saturate:saturate} {operand}", effects=(), uniform=True, speculative=True
):
    """The operand in the result's dtype; with `saturate`, which is for floats of fewer than 16
    bits, what is beyond the largest number of the dtype becomes that."""

    result: Result
    operand: Value
    saturate: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Bitcast(Operation, text="bitcast {operand}", effects=(), uniform=True, speculative=True):
    """The operand's bits in the result's dtype, which has the same size (no bool)."""

    result: Result
    operand: Value


@dataclass(frozen=True, slots=True, eq=False)
class Select(
    Operation,
    text="select {condition}, {on_true}, {on_false}",
    effects=(),
    uniform=True,
    speculative=True,
):
    """`on_true` if the condition holds, else `on_false`; both are evaluated."""

    result: Result
    condition: Value
    on_true: Value
    on_false: Value


Arithmetic = Unary | Binary | Fma | Compare | Cast | Bitcast | Select


# ---- what a target computes itself, so that the library of functions leaves it alone ----

Keep: TypeAlias = Callable[[Unary | Binary | Cast], bool]
"""Whether a target has an instruction for this op of the library, or this conversion of a float of
fewer than 16 bits, with the required result."""


def keep_none(_: Unary | Binary | Cast) -> bool:
    """For a target without such instructions."""
    return False
