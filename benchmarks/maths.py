"""What the functions of `fe.math` cost on the CPU, beside NumPy on the same arrays and one thread.

    python benchmarks/maths.py [--quick] [--json FILE]

Each row is `b[:] = f(a[:])` on float32, of standard normal numbers and their absolute values where
the function wants them. NumPy writes into the same output with `out=`; it has no error functions,
and a sigmoid takes it several passes. Each result is compared with NumPy's before it is timed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import subjects
from harness import (
    FULL,
    MS,
    QUICK,
    Effort,
    Goal,
    Result,
    Row,
    Side,
    Table,
    arguments,
    block_side,
    finish,
    measure,
)

import ferrule as fe

FERRULE: Final = "ferrule"
NUMPY: Final = "NumPy"
LARGE: Final = 4 << 20
SMALL: Final = 1 << 12
LIMIT: Final = 1.3


def _sigmoid(x: Any, out: Any) -> None:
    np.negative(x, out=out)
    np.exp(out, out=out)
    np.add(out, np.float32(1), out=out)
    np.reciprocal(out, out=out)


def _rsqrt(x: Any, out: Any) -> None:
    np.sqrt(x, out=out)
    np.reciprocal(out, out=out)


ONE: Final[Mapping[str, Callable[..., object] | None]] = {
    **{name: getattr(np, name) for name in ("exp", "exp2", "expm1")},
    "sigmoid": _sigmoid,
    **{name: getattr(np, name) for name in ("log", "log2", "log10", "log1p", "sqrt")},
    "rsqrt": _rsqrt,
    **{name: getattr(np, name) for name in ("cbrt", "sin", "cos", "tan")},
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    **{name: getattr(np, name) for name in ("sinh", "cosh", "tanh")},
    "erf": None,
    "erfc": None,
    **{name: getattr(np, name) for name in ("floor", "ceil")},
    "round": np.rint,
    **{name: getattr(np, name) for name in ("trunc", "fabs")},
}
TWO: Final[Mapping[str, Callable[..., object] | None]] = {
    "pow": np.power,
    "atan2": np.arctan2,
    "fmod": np.fmod,
    "copysign": np.copysign,
}
POSITIVE: Final = ("log", "log2", "log10", "log1p", "sqrt", "rsqrt", "pow")
BOUNDED: Final = ("asin", "acos")


def of_one(function: Any) -> Any:
    """`b[:] = function(a[:])`."""

    @fe.jit
    def whole(a: fe.Tensor, b: fe.Tensor):
        b[:] = function(a[:])

    return whole


def of_two(function: Any) -> Any:
    """`c[:] = function(a[:], b[:])`."""

    @fe.jit
    def whole(a: fe.Tensor, b: fe.Tensor, c: fe.Tensor):
        c[:] = function(a[:], b[:])

    return whole


def operands(name: str, size: int) -> list[Any]:
    """Arrays that the function is defined on."""
    rng = np.random.default_rng(0)
    count = 2 if name in TWO else 1
    first, *rest = (rng.standard_normal(size, dtype=np.float32) for _ in range(count))
    if name in POSITIVE:
        first = np.abs(first)
    if name in BOUNDED:
        first = np.clip(first, -1, 1)
    return [first, *rest]


def row(name: str, size: int, effort: Effort) -> Row:
    """Compares the results, then the times."""
    given = operands(name, size)
    out = np.zeros_like(given[0])
    vector = subjects.vector()
    function = (of_two if name in TWO else of_one)(getattr(fe.math, name))
    ours = fe.compile(function, *[vector] * (len(given) + 1), options=subjects.OPTIONS)
    theirs = {**ONE, **TWO}[name]
    sides: list[Side] = [block_side(FERRULE, lambda: ours(*given, out))]
    if theirs is not None:
        theirs(*given, out=out)
        wanted = out.copy()
        out.fill(0)
        ours(*given, out)
        np.testing.assert_allclose(out, wanted, rtol=1e-5, atol=1e-6)
        sides.append(block_side(NUMPY, lambda: theirs(*given, out=out)))
    return measure(name, sides, effort)


def run(names: Sequence[str], size: int, effort: Effort) -> Result:
    """Measure these functions; `exp` is one of them."""
    rows = tuple(row(name, size, effort) for name in names)
    exp = next(each for each in rows if each.name == "exp")
    what = f"{size >> 20} Mi" if size >> 20 else str(size)
    return Result(
        (Table(f"{what} float32s", MS, rows, (FERRULE, NUMPY)),),
        (Goal("exp, over NumPy", LIMIT, exp.ratio(FERRULE, NUMPY), "times"),),
    )


def main(argv: Sequence[str] | None = None) -> None:
    """Measure and show."""
    given = arguments("What the functions of fe.math cost beside NumPy", argv)
    if given.quick:
        result = run(("exp", "erf", "atan2"), SMALL, QUICK)
    else:
        result = run((*ONE, *TWO), LARGE, FULL.fewer(4))
    finish("maths", result, given)


if __name__ == "__main__":
    main()
