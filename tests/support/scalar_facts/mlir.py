"""What operations of MLIR's dialects `arith` and `math` mean, and the value of a text of them.

The meanings are those of MLIR's documentation of the dialects.  Where MLIR is there, its own
verifier and folding are asked as well (`folded`).
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from maths_reference import NUMPY

from ferrule.specs.dtypes import Kind
from scalar_facts.meanings import WIDTH, Array

BITS: Final = {"i1": "bool", "i32": "int32", "f32": "float32"}
TYPES: Final[Mapping[Kind, str]] = {"bool": "i1", "int": "i32", "uint": "i32", "float": "f32"}


def _unsigned(function: Callable[..., Any]) -> Callable[..., Any]:
    """An operation on unsigned integers, whose type in MLIR is that of signed ones."""
    return lambda *given: function(*(each.view(f"u{each.itemsize}") for each in given)).view(
        given[0].dtype
    )


def _truncated(x: Array, y: Array) -> Array:
    """Division towards zero; nothing is said of division by zero."""
    quotient = np.abs(x.astype("i8")) // np.maximum(np.abs(y.astype("i8")), 1)
    return (np.sign(x).astype("i8") * np.sign(y) * quotient).astype(x.dtype)


def _remainder(x: Array, y: Array) -> Array:
    return (x - y * _truncated(x, y)).astype(x.dtype)


def _nonzero(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, y: function(x, np.where(y == 0, 1, y).astype(y.dtype))


def _each_word(function: Callable[[str], int]) -> Callable[[Array], Array]:
    """A function of the 32 digits of a word."""
    return lambda x: np.array([function(f"{int(v) % 2**32:032b}") for v in x], x.dtype)


def _shift(function: Callable[..., Any]) -> Callable[..., Any]:
    """A shift by a count below the width; nothing is said of others."""
    return lambda x, y: function(x, y & 31)


def _maximum(x: Array, y: Array) -> Array:
    zeros = (x == 0) & (y == 0)
    return np.where(zeros, np.where(np.signbit(x), y, x), np.maximum(x, y))


def _a_number(function: Callable[..., Any]) -> Callable[..., Any]:
    """An operation of which one NaN is the other operand."""
    return lambda x, y: np.where(np.isnan(y), x, np.where(np.isnan(x), y, function(x, y)))


INTEGERS: Final[Mapping[str, Callable[..., Array]]] = {
    "arith.addi": operator.add,
    "arith.subi": operator.sub,
    "arith.muli": operator.mul,
    "arith.divsi": _truncated,
    "arith.remsi": _remainder,
    "arith.divui": _unsigned(_nonzero(operator.floordiv)),
    "arith.remui": _unsigned(_nonzero(operator.mod)),
    "arith.maxsi": np.maximum,
    "arith.minsi": np.minimum,
    "arith.maxui": _unsigned(np.maximum),
    "arith.minui": _unsigned(np.minimum),
    "arith.shli": _shift(operator.lshift),
    "arith.shrsi": _shift(operator.rshift),
    "arith.shrui": _unsigned(_shift(operator.rshift)),
    "math.ctpop": _each_word(lambda word: word.count("1")),
    "math.ctlz": _each_word(lambda word: len(word.partition("1")[0])),
    "math.cttz": _each_word(lambda word: len(word.rpartition("1")[2])),
    "math.absi": np.abs,
}
BOOLS: Final[Mapping[str, Callable[..., Array]]] = {
    "arith.andi": operator.and_,
    "arith.ori": operator.or_,
    "arith.xori": operator.xor,
}
"""Of integers too."""
_NOT_THERE: Final = ("pow", "fmod", "sigmoid")
"""Functions that MLIR has under other names, or not at all."""
FLOATS: Final[Mapping[str, Callable[..., Array]]] = {
    **{f"math.{name}": function for name, function in NUMPY.items() if name not in _NOT_THERE},
    "math.powf": NUMPY["pow"],
    "math.copysign": np.copysign,
    "math.absf": np.abs,
    "math.floor": np.floor,
    "math.ceil": np.ceil,
    "math.trunc": np.trunc,
    "math.roundeven": np.rint,
    "math.round": lambda x: np.trunc(x + np.copysign(np.float32(0.5), x)),
    "arith.negf": np.negative,
    "arith.addf": np.add,
    "arith.subf": np.subtract,
    "arith.mulf": np.multiply,
    "arith.divf": np.divide,
    "arith.remf": np.fmod,
    "arith.maximumf": _maximum,
    "arith.minimumf": lambda x, y: -_maximum(-x, -y),
    "arith.maxnumf": _a_number(_maximum),
    "arith.minnumf": _a_number(lambda x, y: -_maximum(-x, -y)),
}
TWO: Final = frozenset(
    name
    for name in (*INTEGERS, *BOOLS, *FLOATS)
    if name.startswith("arith.") and name != "arith.negf"
) | {"math.powf", "math.atan2", "math.copysign"}
"""The operations with two operands."""
MEANINGS: Final[Mapping[str, Callable[..., Array]]] = {**INTEGERS, **BOOLS, **FLOATS}
_UNDEFINED: Final = frozenset(
    f"arith.{name}" for name in ("divsi", "remsi", "divui", "remui", "shli", "shrsi", "shrui")
)


def is_folded(name: str, given: Sequence[Array], place: int) -> bool:
    """Whether MLIR says what an operation is for the operands at a place, and folds it so."""
    operands = [each[place] for each in given]
    # Its folding asks APFloat, to which atan2 of two zeros is NaN; ferrule compiles a formula.
    known = name != "math.atan2" or any(operands)
    return known and (name not in _UNDEFINED or 0 < int(operands[1]) < WIDTH)


PTX: Final[Mapping[str, Callable[..., Array]]] = {
    "ex2.approx.f32": np.exp2,
    "lg2.approx.f32": np.log2,
    "rcp.approx.f32": np.reciprocal,
    "sqrt.approx.f32": np.sqrt,
    "rsqrt.approx.f32": NUMPY["rsqrt"],
    "sin.approx.f32": np.sin,
    "cos.approx.f32": np.cos,
}
"""Instructions of PTX, by its manual."""
_PREDICATES: Final[Mapping[str, Callable[..., Array]]] = {
    "eq": operator.eq,
    "ne": operator.ne,
    "slt": operator.lt,
    "ult": lambda x, y: x.view("u4") < y.view("u4"),
}
_LINE: Final = re.compile(r"\s*(%[\w.]+) = (\S+) (.*?)(?: : ([^:]*))?$")


class Unreadable(Exception):
    """A line of a text that is no operation known here."""


def value(lines: Sequence[str], known: Mapping[str, Array], result: str) -> Array:
    """The value of a name after some lines, for operands with these values."""
    values = dict(known)
    with np.errstate(all="ignore"):
        for line in lines:
            found = _LINE.match(line)
            if found is None:
                raise Unreadable(line)
            values[found[1]] = _computed(found[2], found[3], found[4], values)
    return values[result]


def _takes(name: str, given: Sequence[Array]) -> bool:
    """Whether an operation has this many operands of this type."""
    two = name in TWO
    return name in words(given[0].dtype.kind) and len(given) == (2 if two else 1)


def words(kind: str) -> Mapping[str, Callable[..., Array]]:
    """The operations on a kind of numbers, by NumPy's letter or ferrule's name of the kind."""
    if kind[0] == "f":
        return FLOATS
    return BOOLS if kind[0] == "b" else {**INTEGERS, **BOOLS}


def _computed(name: str, text: str, type_: str | None, values: Mapping[str, Array]) -> Array:
    some = next(iter(values.values()))
    if name == "arith.constant":
        if type_ is None:
            return np.full(len(some), text == "true")
        if type_ == "f32":
            return np.full(len(some), int(text, 16), "u4").view("f4")
        return np.full(len(some), int(text), BITS[type_])
    given = [values[each] for each in re.findall(r"%[\w.]+", text)]
    if name == "arith.cmpi":
        return _PREDICATES[text.partition(",")[0]](*given)
    if name == "arith.select":
        return np.where(*given)
    if name == "llvm.inline_asm":
        return PTX[text[1:].partition(" ")[0]](*given)
    if name == "llvm.call_intrinsic" and text.startswith('"llvm.sqrt.f32"'):
        return np.sqrt(given[0])
    if name not in MEANINGS or not _takes(name, given):
        raise Unreadable(f"{name} of {type_}")
    return np.asarray(MEANINGS[name](*given)).astype(given[0].dtype)
