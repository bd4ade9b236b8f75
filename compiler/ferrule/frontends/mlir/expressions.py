"""In the process of MLIR: values of a host function as expressions over its arguments.

Sizes of launches and arguments of kernels are values of the function that launches them.  They are
traced back to its arguments, to constants and to sizes of memrefs; the operations between must be
integer arithmetic.  The host computes nothing else.
"""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias

from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.compiler.mlir.session import Session
from ferrule.frontends.mlir.reading import is_unsigned
from ferrule.specs.deferred import dataclass

Operator: TypeAlias = Literal["add", "sub", "mul", "floordiv", "mod", "ceildiv", "min", "max"]


@dataclass(frozen=True, slots=True)
class ArgumentValue:
    """An argument of the function, by its position: a number, or a memref as a whole."""

    position: int
    unsigned: bool = False


@dataclass(frozen=True, slots=True)
class SizeOf:
    """A size of an argument that is a memref."""

    position: int
    axis: int


@dataclass(frozen=True, slots=True)
class Operation:
    """Integer arithmetic, with Python's division."""

    operator: Operator
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class LoopValue:
    """The value that the `scf.for` around a launch counts; `depth` is the number of loops around
    that loop, `start` its first value."""

    depth: int
    start: Expression


@dataclass(frozen=True, slots=True)
class FloatConstant:
    """A constant that is not an integer."""

    value: float


Expression: TypeAlias = "int | FloatConstant | ArgumentValue | SizeOf | LoopValue | Operation"

_EXACT: Final[dict[str, Operator]] = {
    "arith.addi": "add",
    "arith.subi": "sub",
    "arith.muli": "mul",
    "arith.ceildivsi": "ceildiv",
    "arith.floordivsi": "floordiv",
    "arith.minsi": "min",
    "arith.maxsi": "max",
    "index.add": "add",
    "index.sub": "sub",
    "index.mul": "mul",
    "index.ceildivs": "ceildiv",
    "index.floordivs": "floordiv",
    "index.mins": "min",
    "index.maxs": "max",
}
_OF_POSITIVE: Final[dict[str, Operator]] = {
    "arith.divsi": "floordiv",
    "arith.divui": "floordiv",
    "arith.remsi": "mod",
    "arith.remui": "mod",
    "arith.ceildivui": "ceildiv",
    "arith.minui": "min",
    "arith.maxui": "max",
    "index.divs": "floordiv",
    "index.divu": "floordiv",
    "index.rems": "mod",
    "index.remu": "mod",
    "index.ceildivu": "ceildiv",
    "index.minu": "min",
    "index.maxu": "max",
}
"""Operations that agree with Python's if no operand is negative."""

_SAME: Final = ("arith.index_cast", "arith.extsi", "arith.trunci", "index.casts")
_SAME_POSITIVE: Final = ("arith.index_castui", "arith.extui", "index.castu")

_WITH_SIGN: Final = frozenset(
    {
        *("arith.index_cast", "arith.extsi", "index.casts", "arith.ceildivsi", "arith.minsi"),
        *("arith.floordivsi", "arith.divsi", "arith.remsi", "arith.maxsi"),
    }
)
"""Operations for which the first bit of an operand is a sign."""

LOOP: Final = "scf.for"

PURE: Final = frozenset(
    {
        *_EXACT,
        *_OF_POSITIVE,
        *_SAME,
        *_SAME_POSITIVE,
        *("arith.constant", "index.constant", "memref.dim", "memref.cast"),
        *("affine.apply", "affine.min", "affine.max"),
    }
)
"""Operations that are allowed between the arguments and a launch."""


def expression(session: Session, value: Any) -> Expression:
    """The expression for a value.  Raises CompileError, with the place, for a value that cannot be
    expressed."""
    ir = session.ir
    if isinstance(value.owner, ir.Block):
        return _argument(session, value)
    operation = value.owner.operation
    name, operands = operation.name, list(operation.operands)
    if name in ("arith.constant", "index.constant"):
        return _constant(session, operation)
    if name == "memref.cast":
        return expression(session, operands[0])
    if name == "memref.dim":
        return _size(session, operation)
    if name.startswith("affine."):
        return _affine(session, operation)
    found = [expression(session, each) for each in operands] if name in PURE else []
    if name in _WITH_SIGN and any(map(_is_unsigned, found)) and not _is_wide(operands[0]):
        raise refused(session, operation, "its operand is unsigned")
    if name in _SAME or (name in _SAME_POSITIVE and is_positive(found[0])):
        return found[0]
    if name in _EXACT:
        return Operation(_EXACT[name], *found)
    if name in _OF_POSITIVE and all(map(is_positive, found)):
        return Operation(_OF_POSITIVE[name], *found)
    raise refused(session, operation, "its operands may be negative" if name in PURE else None)


def _argument(session: Session, value: Any) -> Expression:
    """The value of an argument of the function, or what a loop counts."""
    number = int(session.ir.BlockArgument(value).arg_number)
    owner = value.owner.owner.operation
    if owner.name != LOOP:
        return ArgumentValue(number, is_unsigned(owner, number))
    if number:
        raise refused(session, owner, "it carries values from one iteration to the next")
    return LoopValue(depth_of(owner), expression(session, owner.operands[0]))


def depth_of(loop: Any) -> int:
    """The number of loops around a loop."""
    depth, parent = 0, loop.parent
    while parent is not None:
        depth += parent.operation.name == LOOP
        parent = parent.operation.parent
    return depth


def refused(session: Session, operation: Any, reason: str | None = None) -> CompileError:
    """The error for an operation that cannot be between launches on the host."""
    return CompileError(
        Diagnostic(
            f"{operation.name} cannot be part of a function that launches kernels"
            + (f": {reason}" if reason else ""),
            session.place(operation),
            expected="launches, branches, loops and assertions of integers that are made of its "
            "arguments by arithmetic",
            hint=_hint(operation.name),
        )
    )


def _hint(name: str) -> str:
    """The hint for an operation."""
    if name.startswith(("scf.", "affine.", "cf.")):
        return "launch always: a grid of 0 blocks, a size like any other, launches nothing"
    if name.startswith("gpu.") or name in ("memref.alloc", "memref.copy"):
        return "give memory for what lies between launches as an argument"
    return "move it into a kernel, or give its value as an argument"


def takes_sign(session: Session, value: Any) -> bool:
    """Whether the first bit of a value would be taken for a sign, although it is none."""
    return _is_unsigned(expression(session, value)) and not _is_wide(value)


def _is_unsigned(found: Expression) -> bool:
    """Whether a value comes from an unsigned argument, so that its first bit is no sign."""
    return isinstance(found, ArgumentValue) and found.unsigned


def _is_wide(value: Any) -> bool:
    """Whether a value has 64 bits, of which a call refuses numbers with the first bit."""
    return str(value.type) in ("i64", "index")


def is_positive(found: Expression) -> bool:
    """Whether a value is known not to be negative."""
    match found:
        case int():
            return found >= 0
        case SizeOf() | ArgumentValue(unsigned=True):
            return True
        case LoopValue(_, start):
            return is_positive(start)
        case Operation("sub"):
            return False
        case Operation("max", left, right):
            return is_positive(left) or is_positive(right)
        case Operation(_, left, right):
            return is_positive(left) and is_positive(right)
    return False


def _constant(session: Session, operation: Any) -> Expression:
    value, ir = operation.attributes["value"], session.ir
    if isinstance(value, ir.BoolAttr):
        return int(value.value)
    if isinstance(value, ir.IntegerAttr):
        return int(value.value)
    if isinstance(value, ir.FloatAttr):
        return FloatConstant(float(value.value))
    raise refused(session, operation, "it is no number")


def _size(session: Session, operation: Any) -> Expression:
    source, axis = (expression(session, each) for each in operation.operands)
    if isinstance(source, ArgumentValue) and isinstance(axis, int):
        return SizeOf(source.position, axis)
    raise refused(session, operation, "expected a constant dim of an argument")


def _affine(session: Session, operation: Any) -> Expression:
    """The value of `affine.apply`, `affine.min` and `affine.max`."""
    name = operation.name
    mapping = operation.attributes["map"].value
    operands = [expression(session, each) for each in operation.operands]
    dims, symbols = operands[: mapping.n_dims], operands[mapping.n_dims :]
    values = [_affine_value(session, each, dims, symbols) for each in mapping.results]
    result = values[0]
    for value in values[1:]:
        result = Operation("min" if name == "affine.min" else "max", result, value)
    return result


def _affine_value(
    session: Session, found: Any, dims: list[Expression], symbols: list[Expression]
) -> Expression:
    ir = session.ir
    if isinstance(found, ir.AffineConstantExpr):
        return int(found.value)
    if isinstance(found, (ir.AffineDimExpr, ir.AffineSymbolExpr)):
        operands = dims if isinstance(found, ir.AffineDimExpr) else symbols
        return operands[int(found.position)]
    operators: dict[Any, Operator] = {
        ir.AffineAddExpr: "add",
        ir.AffineMulExpr: "mul",
        ir.AffineFloorDivExpr: "floordiv",
        ir.AffineCeilDivExpr: "ceildiv",
        ir.AffineModExpr: "mod",
    }
    operator = next(name for kind, name in operators.items() if isinstance(found, kind))
    left, right = (_affine_value(session, each, dims, symbols) for each in (found.lhs, found.rhs))
    return Operation(operator, left, right)
