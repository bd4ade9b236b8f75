"""The operators on numbers: one row for each, with its properties.

The semantics of an operator is in the docstring of `ops`.  Tables elsewhere, with the
implementation for a target, are checked by `require_all` when they are imported: if one of them
lacks a new row, this is reported at once, with the names of both.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import field
from types import MappingProxyType
from typing import Final, Literal, get_args

from ferrule.specs.deferred import dataclass
from ferrule.specs.dtypes import Kind

__all__ = [  # names of `ops`
    "BinaryOp",
    "UnaryOp",
]

INTEGERS: Final[tuple[Kind, ...]] = ("int", "uint")
NUMBERS: Final[tuple[Kind, ...]] = ("int", "uint", "float")
FLOATS: Final[tuple[Kind, ...]] = ("float",)
BITS: Final[tuple[Kind, ...]] = ("bool", "int", "uint")


@dataclass(frozen=True, slots=True)
class ScalarOp:
    """An operator whose operands and result have one dtype, of one of these kinds.

    `library`: `mathlib` implements it for targets without an instruction.  `function`: the
    exactness of the function of `fe.math` with this name, which accepts `fast` if it is rounded;
    None if there is no such function, or it takes integers.  `bits`: the value of a function of
    `fe.math` on the bits of an integer, for an unsigned one and its width; `counts`: it is a number
    of bits, which users get as an Int32.  `libdevice`: NVIDIA's
    library has it, under its own name and with C's special values.  `mlir`: MLIR's operation by
    kind; without one the MLIR pipeline writes several operations.
    """

    kinds: tuple[Kind, ...]
    library: bool = False
    function: Literal["rounded", "exact"] | None = None
    bits: Callable[[int, int], int] | None = None
    counts: bool = False
    libdevice: bool = False
    mlir: Mapping[Kind, str] = field(default_factory=dict)


def _integers(name: str) -> dict[Kind, str]:
    return dict.fromkeys(INTEGERS, name)


def _bits(name: str) -> dict[Kind, str]:
    return dict.fromkeys(BITS, name)


def _of_floats(mlir: str) -> dict[Kind, str]:
    return {"float": mlir}


def _rounded(name: str, mlir: str | None = None) -> ScalarOp:
    """A function of the library that libdevice has too."""
    words = _of_floats(mlir or f"math.{name}")
    return ScalarOp(FLOATS, library=True, function="rounded", libdevice=True, mlir=words)


def _count(mlir: str, count: Callable[[int, int], int]) -> ScalarOp:
    return ScalarOp(INTEGERS, bits=count, counts=True, mlir=_integers(mlir))


def _exact(mlir: str) -> ScalarOp:
    return ScalarOp(FLOATS, library=True, function="exact", mlir=_of_floats(mlir))


UnaryOp = Literal[
    "neg",
    "not",
    "sqrt",
    "popc",
    "clz",
    "fabs",
    "floor",
    "ceil",
    "round",
    "trunc",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "rsqrt",
    "cbrt",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "sigmoid",
    "erf",
    "erfc",
]
BinaryOp = Literal[
    "add",
    "sub",
    "mul",
    "div",
    "floordiv",
    "mod",
    "max",
    "min",
    "and",
    "or",
    "xor",
    "shl",
    "shr",
    "copysign",
    "fmod",
    "pow",
    "atan2",
]

UNARY: Final[Mapping[UnaryOp, ScalarOp]] = MappingProxyType(
    {
        "neg": ScalarOp(NUMBERS, mlir=_of_floats("negf")),
        "not": ScalarOp(BITS),
        "sqrt": ScalarOp(FLOATS, function="rounded", mlir=_of_floats("math.sqrt")),
        "popc": _count("math.ctpop", lambda bits, width: bits.bit_count()),
        "clz": _count("math.ctlz", lambda bits, width: width - bits.bit_length()),
        "fabs": _exact("math.absf"),
        "floor": _exact("math.floor"),
        "ceil": _exact("math.ceil"),
        "round": _exact("math.roundeven"),
        "trunc": _exact("math.trunc"),
        "exp": _rounded("exp"),
        "exp2": _rounded("exp2"),
        "expm1": _rounded("expm1"),
        "log": _rounded("log"),
        "log2": _rounded("log2"),
        "log10": _rounded("log10"),
        "log1p": _rounded("log1p"),
        "rsqrt": _rounded("rsqrt"),
        "cbrt": _rounded("cbrt"),
        "sin": _rounded("sin"),
        "cos": _rounded("cos"),
        "tan": _rounded("tan"),
        "asin": _rounded("asin"),
        "acos": _rounded("acos"),
        "atan": _rounded("atan"),
        "sinh": _rounded("sinh"),
        "cosh": _rounded("cosh"),
        "tanh": _rounded("tanh"),
        "sigmoid": ScalarOp(FLOATS, library=True, function="rounded"),
        "erf": _rounded("erf"),
        "erfc": _rounded("erfc"),
    }
)
BINARY: Final[Mapping[BinaryOp, ScalarOp]] = MappingProxyType(
    {
        "add": ScalarOp(NUMBERS, mlir={**_integers("addi"), "float": "addf"}),
        "sub": ScalarOp(NUMBERS, mlir={**_integers("subi"), "float": "subf"}),
        "mul": ScalarOp(NUMBERS, mlir={**_integers("muli"), "float": "mulf"}),
        "div": ScalarOp(FLOATS, mlir=_of_floats("divf")),
        "floordiv": ScalarOp(INTEGERS),
        "mod": ScalarOp(INTEGERS),
        "max": ScalarOp(NUMBERS, mlir={"int": "maxsi", "uint": "maxui", "float": "maximumf"}),
        "min": ScalarOp(NUMBERS, mlir={"int": "minsi", "uint": "minui", "float": "minimumf"}),
        "and": ScalarOp(BITS, mlir=_bits("andi")),
        "or": ScalarOp(BITS, mlir=_bits("ori")),
        "xor": ScalarOp(BITS, mlir=_bits("xori")),
        "shl": ScalarOp(INTEGERS),
        "shr": ScalarOp(INTEGERS),
        "copysign": _exact("math.copysign"),
        "fmod": ScalarOp(
            FLOATS, library=True, function="exact", libdevice=True, mlir=_of_floats("arith.remf")
        ),
        "pow": _rounded("pow", "math.powf"),
        "atan2": _rounded("atan2"),
    }
)
"""Both are in the order of the names above."""

EVERY: Final[Mapping[str, ScalarOp]] = MappingProxyType(
    {str(name): row for name, row in (*UNARY.items(), *BINARY.items())}
)


def require_all(consumer: str, known: Collection[str], wanted: Collection[str]) -> None:
    """Raises TypeError, with the names of both, if a table lacks a required operator."""
    missing = sorted(set(wanted) - set(known))
    if missing:
        raise TypeError(f"{consumer} has no row for {', '.join(missing)}")


require_all("ir.scalars.UNARY", UNARY, get_args(UnaryOp))
require_all("ir.scalars.BINARY", BINARY, get_args(BinaryOp))
