"""What each operator on numbers means, by Python's own arithmetic and NumPy's functions.

Nothing here is read by the compiler, and nothing reads its tables: a fact that is wrong there is
another value here.  `SAMPLES` tell every operator from every other one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cache
from typing import Any, Final

import numpy as np
from maths_reference import NUMPY

from ferrule import specs
from ferrule.specs import DType
from ferrule.specs.dtypes import Kind

Array = Any
KINDS: Final[tuple[Kind, ...]] = ("bool", "int", "uint", "float")
DTYPES: Final[Mapping[Kind, DType]] = {
    "bool": specs.Boolean,
    "int": specs.Int32,
    "uint": specs.Uint32,
    "float": specs.Float32,
}
WIDTH: Final = 32
"""Of the integers in the samples."""

_FLOATS: Final = (
    *(0.0, 0.25, 0.5, 0.7, 1.0, 1.5, 2.5, 3.0, 7.75, 20.0, 88.0, math.inf, math.nan),
    *(-0.0, -0.25, -0.5, -0.7, -1.0, -1.5, -2.5, -3.0, -7.75, -20.0, -88.0, -math.inf),
)


def _edges(kind: Kind, width: int) -> Sequence[Any]:
    if kind == "bool":
        return (False, True)
    if kind == "float":
        return _FLOATS
    low, high = (0, 2**width - 1) if kind == "uint" else (-(2 ** (width - 1)), 2 ** (width - 1) - 1)
    wanted = {low, low + 1, -7, -2, -1, 0, 1, 2, 3, 6, 7, width - 1, width, 40, high // 2 + 1}
    return sorted(each for each in {*wanted, high // 2 + 4, high - 1, high} if low <= each <= high)


@cache
def samples(kind: Kind, count: int, width: int = WIDTH) -> tuple[Array, ...]:
    """The operands of an operator with this many: every combination of edges.  `width` is that of
    integers."""
    each = zip(*itertools.product(_edges(kind, width), repeat=count), strict=True)
    name = f"{kind}{width}" if kind in ("int", "uint") else DTYPES[kind].name
    return tuple(np.array(side, name) for side in each)


# ---- integers, of a width ----


def _ones(value: int, width: int) -> int:
    return f"{value % 2**width:b}".count("1")


def _leading(value: int, width: int) -> int:
    return len(f"{value % 2**width:0{width}b}".partition("1")[0])


def _count(value: int, width: int) -> int:
    """The count of a shift: unsigned, and no more than all bits."""
    return min(value % 2**width, width)


_OF_BITS: Final[Mapping[str, Callable[..., int]]] = {
    "not": lambda x, _: -1 - x,
    "and": lambda x, y, _: x & y,
    "or": lambda x, y, _: x | y,
    "xor": lambda x, y, _: x ^ y,
}
_OF_INTEGERS: Final[Mapping[str, Callable[..., int]]] = {
    **_OF_BITS,
    "neg": lambda x, _: -x,
    "popc": _ones,
    "clz": _leading,
    "add": lambda x, y, _: x + y,
    "sub": lambda x, y, _: x - y,
    "mul": lambda x, y, _: x * y,
    "floordiv": lambda x, y, _: 0 if y == 0 else math.floor(Fraction(x, y)),
    "mod": lambda x, y, _: 0 if y == 0 else x - y * math.floor(Fraction(x, y)),
    "max": lambda x, y, _: x if x > y else y,
    "min": lambda x, y, _: x if x < y else y,
    "shl": lambda x, y, width: x * 2 ** _count(y, width),
    "shr": lambda x, y, width: math.floor(Fraction(x, 2 ** _count(y, width))),
}


# ---- floats ----


def _maximum(x: Array, y: Array) -> Array:
    """NumPy leaves open which zero is the larger one."""
    zeros = (x == 0) & (y == 0)
    return np.where(zeros, np.where(np.signbit(x), y, x), np.maximum(x, y))


_OF_FLOATS: Final[Mapping[str, Callable[..., Array]]] = {
    **NUMPY,
    "neg": np.negative,
    "fabs": np.abs,
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.rint,
    "trunc": np.trunc,
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "max": _maximum,
    "min": lambda x, y: -_maximum(-x, -y),
    "copysign": np.copysign,
}
_BY_KIND: Final[Mapping[Kind, Mapping[str, Callable[..., Any]]]] = {
    "bool": _OF_BITS,
    "int": _OF_INTEGERS,
    "uint": _OF_INTEGERS,
    "float": _OF_FLOATS,
}
NAMES: Final = tuple(dict.fromkeys(name for row in _BY_KIND.values() for name in row))
TWO: Final = frozenset(
    ("and", "or", "xor", "add", "sub", "mul", "div", "floordiv", "mod", "max", "min", "shl", "shr")
) | {"copysign", "fmod", "pow", "atan2"}
"""The operators with two operands."""


def count_of(name: str) -> int:
    """The number of operands."""
    return 2 if name in TWO else 1


def kinds_of(name: str) -> frozenset[Kind]:
    """The kinds of numbers for which an operator means something."""
    return frozenset(kind for kind in KINDS if name in _BY_KIND[kind])


@np.errstate(all="ignore")
def meaning(name: str, kind: Kind, given: Sequence[Array]) -> Array:
    """The results for these operands; those of floats in float64."""
    function = _BY_KIND[kind][name]
    if kind == "float":
        return function(*(each.astype("f8") for each in given))
    width = given[0].itemsize * 8
    results = (function(*each, width) for each in _rows(given))
    if kind == "bool":
        return np.array([result % 2 == 1 for result in results])
    low = -(2 ** (width - 1)) if kind == "int" else 0
    wrapped = [(result - low) % 2**width + low for result in results]
    return np.array(wrapped, given[0].dtype)


def _rows(given: Sequence[Array]) -> Iterable[tuple[Any, ...]]:
    return zip(*(each.tolist() for each in given), strict=True)


def agree(found: Array, wanted: Array, ulps: float = 4) -> bool:
    """Whether results are these: floats but for a few roundings, with the signs of zeros."""
    if wanted.dtype.kind != "f":
        return bool(np.array_equal(found, wanted))
    with np.errstate(all="ignore"):
        exact = wanted.astype(found.dtype)
        close = np.abs(found - exact) <= ulps * np.spacing(np.abs(exact))
    zeros = (exact == 0) & (found == 0) & (np.signbit(found) == np.signbit(exact))
    same = np.where(exact == 0, zeros, close | (found == exact))
    return bool(np.all(same | (np.isnan(found) & np.isnan(exact))))


def is_commutative(name: str, kind: Kind) -> bool:
    """Whether the order of the operands does not matter."""
    given = samples(kind, count_of(name))
    swapped, straight = (meaning(name, kind, each) for each in (given[::-1], given))
    return count_of(name) == 2 and agree(swapped, straight)


def is_exact(name: str) -> bool:
    """Whether every result of a function of float32 is one: nothing is rounded."""
    results = meaning(name, "float", samples("float", count_of(name)))
    with np.errstate(all="ignore"):
        return bool(np.array_equal(results.astype("f4").astype("f8"), results, equal_nan=True))
