"""Numbers that host functions get for sizes while they are recorded: each knows how it was made,
and comparisons are remembered, with their outcomes.

They say that they are an `int`, and are none: of an int, C code takes the number without a word, as
for `range(n)` or `blocks[n]`; of anything else it asks for it.  Where the number itself is taken,
nothing is known of what is done with it.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Mapping
from math import ceil, floor
from typing import Any, Final

from ferrule.frontends.triton.recorded.log import Log
from ferrule.frontends.triton.recorded.nodes import OPERATIONS, Leaf, Node, Tree, is_float, made
from ferrule.frontends.triton.recorded.numbers.base import (
    Number,
    are_numbers,
    fill,
    fill_alone,
    fill_comparisons,
    name_of_kind,
    number_of,
    taken,
)
from ferrule.frontends.triton.recorded.numbers.floats import (
    EXACT,
    FOLLOWED,
    Float,
    bound,
    combined,
    of_integers,
)
from ferrule.specs.conditions import Real


class Followed(Number):
    """A size in a host function, or a number that was made of sizes."""

    __slots__ = ()

    tree: Tree
    number: int

    def __init__(self, number: int, tree: Tree, log: Log) -> None:
        self.number, self.tree, self.log = number, tree, log

    __class__: Any = property(lambda _: int)

    def as_float(self) -> Tree:
        """See `Number`."""
        return Node("float", self.tree, 0)

    def _made(self, op: str, left: Any, right: Any) -> Any:
        function = _COMPUTED[op]
        numbers = number_of(left), number_of(right)
        if not all(type(each) is int for each in numbers):
            if op in FOLLOWED:
                return combined(FOLLOWED[op], left, right, self.log)
            return taken(function, left, right) if are_numbers(*numbers) else NotImplemented
        if op in ("floordiv", "mod"):
            self._divided(right)
            result = function(*numbers)
        else:
            result = _or_none(function, *numbers)
        if type(result) is not int:
            return taken(function, left, right)
        return follow(result, made(op, _tree(left), _tree(right)), self.log)

    def _divided(self, by: Any) -> None:
        """A division by zero raises."""
        if isinstance(by, Followed):
            self.log.compare("eq", by.tree, 0, by.number == 0)

    def _compared(self, op: str, other: Any) -> Any:
        plain = number_of(other)
        if not are_numbers(plain) or isinstance(other, Float):
            return NotImplemented
        outcome = bool(getattr(operator, op)(self.number, plain))
        if isinstance(plain, float):
            op, plain = of_integers(op, plain)
        right = other.tree if isinstance(other, Followed) else plain
        self.log.compare(op, self.tree, right, outcome)
        return outcome

    def __index__(self) -> int:
        self.log.ask(self.tree, sys._getframe(1))
        return self.number

    def __truediv__(self, other: Any) -> Any:
        return _ratio(self, other, self.log)

    def __rtruediv__(self, other: Any) -> Any:
        return _ratio(other, self, self.log)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __rdivmod__(self, other: Any) -> Any:
        return other // self, other % self

    def __neg__(self) -> Any:
        return self._made("mul", self, -1)

    def __invert__(self) -> Any:
        return -self - 1

    def __ceil__(self) -> Any:
        return self

    __floor__ = __trunc__ = conjugate = __ceil__

    def __round__(self, *digits: Any) -> Any:
        if digits and digits[0] is not None and digits[0] < 0:
            self._escape()
            return round(self.number, *digits)
        return self

    def __dlpack__(self, **how: Any) -> Any:
        """By this `torch.tensor` takes what is no number to it; a float has no type of its own
        there, and none of these."""
        self._escape()
        return sys.modules["numpy"].array(self.number).__dlpack__(**how)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)

    def bit_length(self) -> Any:
        """See `int`."""
        return self._made("bit_length", self, 0)

    def is_integer(self) -> bool:
        """See `int`."""
        return True

    @property
    def numerator(self) -> Any:
        """See `int`."""
        return self

    real = numerator
    denominator = property(lambda _: 1)
    imag = property(lambda _: 0)


class Ratio(Float):
    """A quotient of sizes: its `math.ceil` and `math.floor` are followed, and comparisons with
    whole numbers are those of sizes."""

    __slots__ = ("bottom", "top")

    top: Any
    bottom: Any
    number: float

    def __init__(self, number: float, top: Any, bottom: Any, log: Log) -> None:
        super().__init__(number, None, log)
        self.top, self.bottom = top, bottom

    def as_float(self) -> Tree | None:
        """See `Number`: the quotient of floats is the same, as far as integers are floats."""
        for each in (self.top, self.bottom):
            if isinstance(each, Followed):
                bound(self.log, each.tree)
            elif abs(each) > EXACT:
                return None
        return Node("fdiv", *(_float_tree(each) for each in (self.top, self.bottom)))

    def __ceil__(self) -> Any:
        if not self._is_exact():
            self._escape()
            return ceil(self.number)
        return -(-self.top // self.bottom)

    def __floor__(self) -> Any:
        if not self._is_exact():
            self._escape()
            return floor(self.number)
        return self.top // self.bottom

    def __trunc__(self) -> Any:
        return self.__floor__() if self >= 0 else self.__ceil__()  # type: ignore[operator]

    def is_integer(self) -> Any:
        """See `float`."""
        return self.top % self.bottom == 0 if self._is_exact() else self.number.is_integer()

    def _escape(self) -> None:
        for each in (self.top, self.bottom):
            if isinstance(each, Followed):
                self.log.escape(each.tree)

    def _is_exact(self) -> bool:
        """Whether the rounded quotient rounds as the exact one."""
        top, bottom = number_of(self.top), number_of(self.bottom)
        exact: bool = bottom > 0 and -(-top // bottom) == ceil(self.number)
        return bool(exact and top // bottom == floor(self.number))

    def _compared(self, op: str, other: Any) -> Any:
        plain = number_of(other)
        if not are_numbers(plain):
            return NotImplemented
        outcome = bool(getattr(operator, op)(self.number, plain))
        whole = float(plain).is_integer()
        if isinstance(other, Number) or not whole or number_of(self.bottom) <= 0:
            return super()._compared(op, other)
        right = made("mul", _tree(self.bottom), int(plain))
        self.log.compare(op, _tree(self.top), right, outcome)
        return outcome


class Logarithm(Ratio):
    """The logarithm of a size to the base 2: as `Ratio`, but for comparisons and arithmetic."""

    __slots__ = ()

    MOST: Final = 1 << 40
    """Of less, the rounded logarithm is whole where the exact one is."""

    def __init__(self, number: float, of: Followed) -> None:
        super().__init__(number, of, 1, of.log)

    def as_float(self) -> None:
        """See `Number`: it is rounded as the C library rounds it."""

    def __ceil__(self) -> Any:
        return (self.top - 1).bit_length()

    def __floor__(self) -> Any:
        return self.top.bit_length() - 1

    def __trunc__(self) -> Any:
        return self.__floor__()

    def _compared(self, op: str, other: Any) -> Any:
        return taken(getattr(operator, op), self, other)

    def is_integer(self) -> bool:
        """See `float`."""
        return bool(self.top & (self.top - 1) == 0)


def follow(value: Any, tree: Tree, log: Log) -> Number:
    """A number that was made of sizes and arguments."""
    return Float(value, tree, log) if is_float(tree) else Followed(value, tree, log)


def size_of(log: Log, leaf: Leaf, value: int) -> Followed:
    """A size that a host function reads."""
    log.values[leaf] = value
    return Followed(value, leaf, log)


def _ratio(top: Any, bottom: Any, log: Log) -> Any:
    plain = number_of(top), number_of(bottom)
    if not are_numbers(*plain):
        return NotImplemented
    if not all(type(each) is int for each in plain):
        return combined("fdiv", top, bottom, log)
    if isinstance(bottom, Followed):  # a division by zero raises
        log.compare("eq", bottom.tree, 0, plain[1] == 0)
    return Ratio(plain[0] / plain[1], top, bottom, log)


def _tree(value: Any) -> Tree:
    return value.tree if isinstance(value, Followed) else int(value)


def _float_tree(value: Any) -> Tree:
    return value.as_float() if isinstance(value, Followed) else Real.of(float(value))


def _or_none(function: Callable[[int, int], Any], left: int, right: int) -> Any:
    """The result; None for an error, which a host function may catch, and then decides by it."""
    try:
        return function(left, right)
    except (ArithmeticError, ValueError):
        return None


def trees_of(values: Mapping[Any, Any]) -> dict[Any, Tree]:
    """How those of the values were made that are followed."""
    made = ((key, tree_of_number(each)) for key, each in values.items() if isinstance(each, Number))
    return {key: tree for key, tree in made if tree is not None}


def tree_of_number(value: Number) -> Tree | None:
    """How a number was made; None where nobody knows."""
    return value.as_float() if isinstance(value, Float) else value.tree


_COMPUTED: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    **OPERATIONS,
    "lshift": operator.lshift,
    "truediv": operator.truediv,
    "pow": operator.pow,  # of a negative number it is a float
}


def _operator(name: str, *, swapped: bool = False) -> Callable[..., Any]:
    def method(self: Followed, other: Any, *modulus: Any) -> Any:
        if modulus:
            self._escape()
            return pow(number_of(self), number_of(other), *map(number_of, modulus))
        return self._made(name, other, self) if swapped else self._made(name, self, other)

    return method


fill(Followed, "add sub mul floordiv mod or and xor lshift rshift pow", _operator)
fill_comparisons(Followed)
fill_alone(Followed, "pos neg abs invert ceil floor trunc round truediv rtruediv divmod rdivmod")
name_of_kind(Followed, "int")
for _kind in (Ratio, Logarithm):
    fill_alone(_kind, "ceil floor trunc")
    name_of_kind(_kind, "float")
