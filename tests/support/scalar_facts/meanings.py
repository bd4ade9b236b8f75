"""What each operator on numbers means, by Python's own arithmetic and NumPy's functions.

Nothing here is read by the compiler, and nothing reads its tables: a fact that is wrong there is
another value here.  `SAMPLES` tell every operator from every other one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
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

_INTEGERS: Final = {
    "int": (-(2**31), -(2**31) + 1, -7, -2, -1, 0, 1, 2, 3, 6, 31, 32, 40, 2**30, 2**31 - 1),
    "uint": (0, 1, 2, 3, 6, 7, 31, 32, 40, 2**30, 2**31 - 1, 2**31, 2**31 + 3, 2**32 - 1),
}
_FLOATS: Final = (
    *(0.0, 0.25, 0.5, 0.7, 1.0, 1.5, 2.5, 3.0, 7.75, 20.0, 88.0, math.inf, math.nan),
    *(-0.0, -0.25, -0.5, -0.7, -1.0, -1.5, -2.5, -3.0, -7.75, -20.0, -88.0, -math.inf),
)


def _edges(kind: Kind) -> Sequence[Any]:
    return (False, True) if kind == "bool" else _INTEGERS.get(kind, _FLOATS)


def samples(kind: Kind, count: int) -> tuple[Array, ...]:
    """The operands of an operator with this many: every combination of edges."""
    each = zip(*itertools.product(_edges(kind), repeat=count), strict=True)
    return tuple(np.array(side, DTYPES[kind].name) for side in each)


# ---- integers ----


def _ones(value: int) -> int:
    return f"{value % 2**WIDTH:b}".count("1")


def _leading(value: int) -> int:
    return len(f"{value % 2**WIDTH:0{WIDTH}b}".partition("1")[0])


def _count(value: int) -> int:
    """The count of a shift: unsigned, and no more than all bits."""
    return min(value % 2**WIDTH, WIDTH)


_OF_BITS: Final[Mapping[str, Callable[..., int]]] = {
    "and": lambda x, y: x & y,
    "or": lambda x, y: x | y,
    "xor": lambda x, y: x ^ y,
}
_OF_INTEGERS: Final[Mapping[str, Callable[..., int]]] = {
    **_OF_BITS,
    "neg": lambda x: -x,
    "not": lambda x: -1 - x,
    "popc": _ones,
    "clz": _leading,
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "floordiv": lambda x, y: 0 if y == 0 else math.floor(x // y),
    "mod": lambda x, y: 0 if y == 0 else x - y * (x // y),
    "max": lambda x, y: x if x > y else y,
    "min": lambda x, y: x if x < y else y,
    "shl": lambda x, y: x * 2 ** _count(y),
    "shr": lambda x, y: math.floor(x // 2 ** _count(y)),
}
_OF_BOOLS: Final[Mapping[str, Callable[..., int]]] = {**_OF_BITS, "not": lambda x: not x}


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
    "bool": _OF_BOOLS,
    "int": _OF_INTEGERS,
    "uint": _OF_INTEGERS,
    "float": _OF_FLOATS,
}
NAMES: Final = tuple(dict.fromkeys(name for row in _BY_KIND.values() for name in row))
TWO: Final = frozenset(
    (*_OF_BITS, "add", "sub", "mul", "div", "floordiv", "mod", "max", "min", "shl", "shr")
) | {"copysign", "fmod", "pow", "atan2"}
"""The operators with two operands."""


def count_of(name: str) -> int:
    """The number of operands."""
    return 2 if name in TWO else 1


def kinds_of(name: str) -> frozenset[Kind]:
    """The kinds of numbers for which an operator means something."""
    return frozenset(kind for kind in KINDS if name in _BY_KIND[kind])


def wrapped(dtype: DType, value: int) -> int:
    """The number of an integer dtype that is equal to this one modulo 2**bits."""
    low, _ = dtype.range
    return (value - low) % (1 << dtype.bits) + low


@np.errstate(all="ignore")
def meaning(name: str, kind: Kind, given: Sequence[Array]) -> Array:
    """The results for these operands; those of floats in float64."""
    function = _BY_KIND[kind][name]
    if kind == "float":
        return function(*(each.astype("f8") for each in given))
    dtype = DTYPES[kind]
    results = (int(function(*each)) for each in _rows(given))
    each = [bool(r) if kind == "bool" else wrapped(dtype, r) for r in results]
    return np.array(each, dtype.name)


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


def is_exact(name: str) -> bool:
    """Whether every result of a function of float32 is one: nothing is rounded."""
    results = meaning(name, "float", samples("float", count_of(name)))
    with np.errstate(all="ignore"):
        return bool(np.array_equal(results.astype("f4").astype("f8"), results, equal_nan=True))
