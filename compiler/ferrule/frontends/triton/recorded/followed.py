"""Numbers that host functions get for sizes while they are recorded: each knows how it was made,
and comparisons are remembered, with their outcomes.

They say that they are an `int`, and are none: of an int, C code takes the number without a word, as
for `range(n)` or `blocks[n]`; of anything else it asks for it.  Where the number itself is taken,
nothing is known of what is done with it.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable, Mapping
from math import ceil, floor
from typing import Any, Final

from ferrule.frontends.triton.recorded.log import Compared, Log, place
from ferrule.frontends.triton.recorded.nodes import OPERATIONS, Leaf, Tree, made
from ferrule.frontends.triton.recorded.tensors import Shape


class _Number:
    """What both kinds have: operators are methods of this table, which is filled below."""

    __slots__ = ("log", "number")

    log: Log
    number: Any

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """By this PyTorch takes it where a tensor may be a number; and what was kept beyond the
        recording is a number like any other."""
        return func(*plain(tuple(args)), **plain(dict(kwargs or {})))

    def _escape(self) -> None:
        raise NotImplementedError

    def _compared(self, op: str, other: Any) -> Any:
        raise NotImplementedError

    def take(self) -> None:
        """The number itself is taken."""
        self._escape()

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        self._escape()
        return sys.modules["numpy"].asarray(self.number, dtype)

    def __bool__(self) -> bool:
        return bool(self._compared("ne", 0))

    def __int__(self) -> int:
        self._escape()
        return int(self.number)

    def __float__(self) -> float:
        self._escape()
        return float(self.number)

    def __complex__(self) -> complex:
        self._escape()
        return complex(self.number)

    def __hash__(self) -> int:
        self._escape()
        return hash(self.number)

    def __repr__(self) -> str:
        self._escape()
        return repr(self.number)

    __str__ = __repr__

    def __format__(self, how: str) -> str:
        self._escape()
        return format(self.number, how)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return self if self >= 0 else -self  # type: ignore[operator]

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def __getattr__(self, name: str) -> Any:
        """Whatever else a number has, of the number itself."""
        found = getattr(object.__getattribute__(self, "number"), name)
        if not name.startswith("__"):
            self._escape()
        return found


class Followed(_Number):
    """A size in a host function, or a number that was made of sizes."""

    __slots__ = ("tree",)

    tree: Tree
    number: int

    def __init__(self, number: int, tree: Tree, log: Log) -> None:
        self.number, self.tree, self.log = number, tree, log

    __class__: Any = property(lambda _: int)

    def _escape(self) -> None:
        self.log.escape(self.tree)

    def _made(self, op: str, left: Any, right: Any) -> Any:
        function = _COMPUTED[op]
        numbers = _plain(left), _plain(right)
        if not all(type(each) is int for each in numbers):
            return _taken(function, left, right) if _are_numbers(*numbers) else NotImplemented
        result = function(*numbers)
        if type(result) is not int:
            return _taken(function, left, right)
        return follow(result, made(op, _tree(left), _tree(right)), self.log)

    def _compared(self, op: str, other: Any) -> Any:
        plain = _plain(other)
        if not _are_numbers(plain) or isinstance(other, Ratio):
            return NotImplemented
        outcome = bool(getattr(operator, op)(self.number, plain))
        if isinstance(plain, float):
            op, plain = _of_integers(op, plain)
        right = other.tree if isinstance(other, Followed) else plain
        self.log.compared.append(Compared(op, self.tree, right, outcome, place()))
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

    def __reduce__(self) -> Any:
        return int, (self.number,)


class Ratio(_Number):
    """A quotient of sizes: its `math.ceil` and `math.floor` are followed, and comparisons with
    numbers."""

    __slots__ = ("bottom", "top")

    top: Any
    bottom: Any
    number: float

    def __init__(self, number: float, top: Any, bottom: Any, log: Log) -> None:
        self.number, self.top, self.bottom, self.log = number, top, bottom, log

    __class__: Any = property(lambda _: float)

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

    def __neg__(self) -> Any:
        self._escape()
        return -self.number

    def __trunc__(self) -> Any:
        return self.__floor__() if self >= 0 else self.__ceil__()  # type: ignore[operator]

    def __round__(self, *digits: Any) -> Any:
        self._escape()
        return round(self.number, *digits)

    def is_integer(self) -> Any:
        """See `float`."""
        return self.top % self.bottom == 0 if self._is_exact() else self.number.is_integer()

    def _escape(self) -> None:
        for each in (self.top, self.bottom):
            if isinstance(each, Followed):
                self.log.escape(each.tree)

    def _is_exact(self) -> bool:
        """Whether the rounded quotient rounds as the exact one."""
        top, bottom = _plain(self.top), _plain(self.bottom)
        exact: bool = bottom > 0 and -(-top // bottom) == ceil(self.number)
        return bool(exact and top // bottom == floor(self.number))

    def _compared(self, op: str, other: Any) -> Any:
        plain = _plain(other)
        if not _are_numbers(plain):
            return NotImplemented
        outcome = bool(getattr(operator, op)(self.number, plain))
        whole = float(plain).is_integer()
        if isinstance(other, Followed | Ratio) or not whole or _plain(self.bottom) <= 0:
            return bool(_taken(getattr(operator, op), self, other))
        right = made("mul", _tree(self.bottom), int(plain))
        self.log.compared.append(Compared(op, _tree(self.top), right, outcome, place()))
        return outcome

    def __reduce__(self) -> Any:
        return float, (self.number,)


class Logarithm(Ratio):
    """The logarithm of a size to the base 2: as `Ratio`, but for comparisons."""

    __slots__ = ()

    MOST: Final = 1 << 40
    """Of less, the rounded logarithm is whole where the exact one is."""

    def __init__(self, number: float, of: Followed) -> None:
        super().__init__(number, of, 1, of.log)

    def __ceil__(self) -> Any:
        return (self.top - 1).bit_length()

    def __floor__(self) -> Any:
        return self.top.bit_length() - 1

    def __trunc__(self) -> Any:
        return self.__floor__()

    def _compared(self, op: str, other: Any) -> Any:
        return _taken(getattr(operator, op), self, other)

    def is_integer(self) -> bool:
        """See `float`."""
        return bool(self.top & (self.top - 1) == 0)


def follow(value: int, tree: Tree, log: Log) -> Followed:
    """A number that was made of sizes."""
    return Followed(value, tree, log)


def size_of(log: Log, leaf: Leaf, value: int) -> Followed:
    """A size that a host function reads."""
    log.values[leaf] = value
    return Followed(value, leaf, log)


def _ratio(top: Any, bottom: Any, log: Log) -> Any:
    plain = _plain(top), _plain(bottom)
    if not _are_numbers(*plain):
        return NotImplemented
    if not all(type(each) is int for each in plain):
        return _taken(operator.truediv, top, bottom)
    return Ratio(plain[0] / plain[1], top, bottom, log)


def _plain(value: Any) -> Any:
    if isinstance(value, _Number):
        return value.number
    if isinstance(value, int):
        return int(value)
    return float(value) if isinstance(value, float) else value


def _taken(function: Callable[..., Any], *numbers: Any) -> Any:
    """A function of numbers that knows nothing of how they were made."""
    for each in numbers:
        if isinstance(each, _Number):
            each._escape()
    return function(*map(_plain, numbers))


def _tree(value: Any) -> Tree:
    return value.tree if isinstance(value, Followed) else int(value)


def _are_numbers(*values: Any) -> bool:
    return all(isinstance(each, int | float) for each in values)


def _of_integers(op: str, number: float) -> tuple[str, int]:
    """The comparison of an integer with a float, as one with an integer."""
    if not math.isfinite(number):
        return op, int(math.copysign(1 << 62, number)) if number == number else 1 << 62
    if number.is_integer():
        return op, int(number)
    rounded = {"lt": ("le", floor), "le": ("le", floor), "gt": ("ge", ceil), "ge": ("ge", ceil)}
    if op in rounded:
        other, function = rounded[op]
        return other, int(function(number))
    return op, 1 << 62  # equal to no size


def plain(value: Any) -> Any:
    """A value with ordinary numbers for those that are followed, in tuples, lists and dicts too."""
    if isinstance(value, _Number):
        return value.number
    if type(value) in (list, tuple):
        return type(value)(map(plain, value))
    if type(value) is Shape:
        return sys.modules["torch"].Size(map(plain, value))
    if type(value) is slice:
        return slice(*map(plain, (value.start, value.stop, value.step)))
    if type(value) is dict:
        return {key: plain(each) for key, each in value.items()}
    if type(value).__name__.startswith("TensorDescriptor"):
        for name in ("shape", "strides", "block_shape"):
            setattr(value, name, plain(list(getattr(value, name))))
    return value


def trees_of(values: Mapping[Any, Any]) -> dict[Any, Tree]:
    """How those of the values were made that are followed."""
    return {key: each.tree for key, each in values.items() if isinstance(each, Followed)}


_COMPUTED: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    **OPERATIONS,
    "truediv": operator.truediv,
    "pow": operator.pow,  # of a negative number it is a float
}


def _operator(name: str, *, swapped: bool = False) -> Callable[..., Any]:
    def method(self: Followed, other: Any, *modulus: Any) -> Any:
        if modulus:
            self._escape()
            return pow(_plain(self), _plain(other), *map(_plain, modulus))
        return self._made(name, other, self) if swapped else self._made(name, self, other)

    return method


def _number(name: str, *, swapped: bool = False) -> Callable[..., Any]:
    def method(self: Ratio, other: Any) -> Any:
        if not _are_numbers(_plain(other)):
            return NotImplemented
        return _taken(_COMPUTED[name], *((other, self) if swapped else (self, other)))

    return method


def _comparison(name: str) -> Callable[..., Any]:
    return lambda self, other: self._compared(name, other)


def _fill(kind: type, names: str, method: Callable[..., Any]) -> None:
    for name in names.split():
        setattr(kind, f"__{name}__", method(name))
        setattr(kind, f"__r{name}__", method(name, swapped=True))


_fill(Followed, "add sub mul floordiv mod or and xor lshift rshift pow", _operator)
_fill(Ratio, "add sub mul truediv floordiv mod pow", _number)
for _name in "lt le gt ge eq ne".split():
    setattr(Followed, f"__{_name}__", _comparison(_name))
    setattr(Ratio, f"__{_name}__", _comparison(_name))
