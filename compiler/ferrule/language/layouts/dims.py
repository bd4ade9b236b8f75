"""Arithmetic on sizes with proofs: products, exact quotients, order.

A size is at least 0.  A size that is 0 in a call makes a layout empty, and for an empty layout
everything holds; so the proofs here assume sizes of at least 1.

A stride may be a coordinate, a `ScaledBasis`: `E(0)` is the unit of the first mode, printed `1@0`,
`E([1, 0])` that of the first mode inside of the second, `1@0@1`.  A layout with such strides gives
coordinates in place of indices: `(4,3):(1@0,1@1)` is the identity on the coordinates of a 4 x 3
shape.

A product is stored as factors and one number, in the original order, so that `m * n * 4` and `4 * m
* n` are the same text, and equal factors cancel in a quotient.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from ferrule.language.layouts.errors import refuse
from ferrule.specs import Compound, Dim, IntExpr, divisibility_of
from ferrule.specs import ceil_div as ceil_div_expression
from ferrule.specs.deferred import dataclass
from ferrule.specs.expr import INT64_MAX, INT64_MIN, is_dim, make


@dataclass(frozen=True, slots=True, repr=False)
class ScaledBasis:
    """A number of units of one mode of a coordinate; `mode` is the path to it.

    Raises LayoutError unless the number is a size, and the path at least one position.
    """

    value: Dim
    mode: Any

    def __post_init__(self) -> None:
        path = tuple(self.mode) if isinstance(self.mode, (tuple, list)) else (self.mode,)
        positions = all(isinstance(s, int) and not isinstance(s, bool) and s >= 0 for s in path)
        if not is_dim(self.value) or not path or not positions:
            refuse(
                "a basis",
                f"{self.value!r} in the mode {self.mode!r}",
                "give a size and a position, or a list of positions: ScaledBasis(4, [0, 1])",
            )
        object.__setattr__(self, "mode", path)

    def __mul__(self, factor: Dim) -> ScaledBasis:
        return ScaledBasis(make("mul", self.value, factor), self.mode)

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return "@".join(map(str, (self.value, *reversed(self.mode))))

    def __str__(self) -> str:
        return repr(self)


def E(mode: Any) -> Any:
    """The unit of a mode of a coordinate, given by its position or a path; 1 for an empty path."""
    if isinstance(mode, (tuple, list)) and not mode:
        return 1
    return ScaledBasis(1, mode)


def unit_strides(shape: Any, path: tuple[int, ...] = ()) -> Any:
    """A unit for each leaf of a shape, nested like it."""
    if isinstance(shape, tuple):
        return tuple(unit_strides(mode, (*path, i)) for i, mode in enumerate(shape))
    return E(path)


def bases_of(strides: Any) -> Iterator[ScaledBasis]:
    """The bases among nested strides."""
    if isinstance(strides, tuple):
        for stride in strides:
            yield from bases_of(stride)
    elif isinstance(strides, ScaledBasis):
        yield strides


def times(*dims: Any) -> Any:
    """The product of sizes; one of them may be a basis.

    Raises LayoutError for a constant that overflows 64 bits.
    """
    if any(isinstance(dim, ScaledBasis) for dim in dims):
        return _scaled(dims)
    constant, factors = _factors(dims)
    simpler: list[Dim] = []
    for factor in factors:
        match factor:
            case Compound("floordiv", lhs, int(divisor)) if (
                divisor > 1 and constant % divisor == 0 and divisibility_of(lhs) % divisor == 0
            ):
                constant //= divisor
                simpler.append(lhs)
            case _:
                simpler.append(factor)
    if not INT64_MIN <= constant <= INT64_MAX:
        refuse("a layout", f"the product {constant} overflows 64 bits")
    if constant == 0:
        return 0
    constant_again, factors = _factors((constant, *simpler))
    return _build(constant_again, factors)


def _scaled(dims: tuple[Any, ...]) -> Any:
    """The product of a basis and sizes."""
    basis, *others = sorted(dims, key=lambda dim: not isinstance(dim, ScaledBasis))
    value = times(basis.value, *others)
    return 0 if value == 0 else ScaledBasis(value, basis.mode)


def _build(constant: int, factors: Iterable[IntExpr]) -> Dim:
    result: Dim = 1
    for factor in factors:
        result = factor if result == 1 else result * factor
    return constant if result == 1 else result * constant


def _factors(dims: Iterable[Dim]) -> tuple[int, list[IntExpr]]:
    """The constant and the other factors of a product."""
    todo = list(dims)
    numbers = [dim for dim in todo if isinstance(dim, int)]
    if len(numbers) == len(todo):
        return math.prod(numbers), []
    constant, factors = 1, []
    while todo:
        match todo.pop(0):
            case int(number):
                constant *= number
            case Compound("mul", lhs, rhs):
                todo[:0] = [lhs, rhs]
            case factor:
                factors.append(factor)
    return constant, factors


def same(lhs: Any, rhs: Any) -> bool:
    """Whether two sizes, or bases, are known to be equal."""
    if lhs == rhs:
        return True
    if isinstance(lhs, ScaledBasis) or isinstance(rhs, ScaledBasis):
        both = isinstance(lhs, ScaledBasis) and isinstance(rhs, ScaledBasis)
        return both and lhs.mode == rhs.mode and same(lhs.value, rhs.value)
    (left, left_factors), (right, right_factors) = _factors([lhs]), _factors([rhs])
    return left == right and Counter(left_factors) == Counter(right_factors)


def quotient(lhs: Any, rhs: Any) -> Dim | None:
    """`lhs / rhs` if the division is known to be exact, else None."""
    if isinstance(lhs, ScaledBasis) or isinstance(rhs, ScaledBasis):
        return None
    (constant, factors), (divisor, divisors) = _factors([lhs]), _factors([rhs])
    if divisor == 0:
        return None
    if constant == 0:
        return 0
    for each in divisors:
        if each not in factors:
            return None
        factors.remove(each)
    if divisor < 0:
        constant, divisor = -constant, -divisor
    common = math.gcd(constant, divisor)
    constant, divisor = constant // common, divisor // common
    for position, factor in enumerate(factors):
        known = math.gcd(divisibility_of(factor), divisor)
        if known > 1:
            factors[position] = _over(factor, known)
            divisor //= known
    return times(constant, *factors) if divisor == 1 else None


def _over(factor: IntExpr, divisor: int) -> IntExpr:
    """A factor divided by a number that is known to divide it."""
    match factor:
        case Compound("floordiv", lhs, int(inner)) if divisibility_of(lhs) % (inner * divisor) == 0:
            result = lhs // (inner * divisor)
        case _:
            result = factor // divisor
    assert not isinstance(result, int)
    return result


def at_most(lhs: Dim, rhs: Dim) -> bool:
    """Whether `lhs <= rhs` is known, for sizes."""
    if isinstance(lhs, int) and isinstance(rhs, int):
        return lhs <= rhs
    return lhs == 1 or quotient(rhs, lhs) is not None


def ceil_quotient(lhs: Dim, rhs: Dim) -> Dim:
    """`lhs / rhs` rounded up; `rhs` is at least 1."""
    exact = quotient(lhs, rhs)
    if exact is not None:
        return exact
    if isinstance(lhs, int) and isinstance(rhs, int):
        return -(-lhs // rhs)
    return ceil_div_expression(lhs, rhs)
