"""Integers that host functions get for sizes while they are recorded: each knows how it was made,
and comparisons are remembered, with their outcomes.

What a host function does with the number itself, in C or as a key of a dict, is remembered as far
as Python tells of it: from there on, nothing is known.
"""

from __future__ import annotations

import math
import operator
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from math import ceil, floor
from typing import Any, Final

from ferrule.frontends.triton.recorded.nodes import OPERATIONS, Leaf, Tree, leaves_of, made
from ferrule.specs.deferred import dataclass

_LIBRARIES: Final = ("torch", "ferrule", "contextlib")


@dataclass(frozen=True, slots=True)
class Compared:
    """A comparison in a host function, `left op right`, with its outcome and its place."""

    op: str
    left: Tree
    right: Tree
    outcome: bool
    where: str


@dataclass(frozen=True, slots=True)
class Read:
    """What a host function read of a tensor, such as its numbers, and where."""

    what: str
    where: str


@dataclass(slots=True, eq=False)
class Log:
    """What a host function did with sizes: their values, comparisons, and sizes whose number was
    taken, with the place; and its reads of tensors."""

    values: dict[Leaf, int] = field(default_factory=dict)
    compared: list[Compared] = field(default_factory=list)
    escaped: dict[Leaf, str] = field(default_factory=dict)
    reads: list[Read] = field(default_factory=list)

    def size(self, leaf: Leaf, value: int) -> Followed:
        """A size that the host function reads."""
        self.values[leaf] = value
        return follow(value, leaf, self)

    def escape(self, tree: Tree) -> None:
        """The number itself was taken."""
        for leaf in leaves_of(tree):
            self.escaped.setdefault(leaf, place())

    def apart(self) -> Log:
        """A log of its own for what is done later, with the sizes of this one."""
        return Log(self.values, [], self.escaped, self.reads)


class Followed(int):
    """A size in a host function, or a number that was made of sizes."""

    tree: Tree
    log: Log

    def _made(self, op: str, left: Any, right: Any) -> Any:
        function = _COMPUTED[op]
        numbers = _plain(left), _plain(right)
        if not all(isinstance(each, int) for each in numbers):
            if isinstance(numbers[0], float) or isinstance(numbers[1], float):
                self.log.escape(self.tree)
            return function(*numbers) if _are_numbers(*numbers) else NotImplemented
        result = function(*numbers)
        if type(result) is not int:
            self.log.escape(self.tree)
            return result
        return follow(result, made(op, _tree(left), _tree(right)), self.log)

    def _compared(self, op: str, other: Any) -> Any:
        plain = _plain(other)
        if not _are_numbers(plain):
            return NotImplemented
        outcome = bool(getattr(operator, op)(int.__int__(self), plain))
        if isinstance(other, Ratio):
            return NotImplemented
        if isinstance(plain, float):
            op, plain = _of_integers(op, plain)
        right = other.tree if isinstance(other, Followed) else plain
        self.log.compared.append(Compared(op, self.tree, right, outcome, place()))
        return outcome

    def __truediv__(self, other: Any) -> Any:
        return _ratio(self, other, self.log)

    def __rtruediv__(self, other: Any) -> Any:
        return _ratio(other, self, self.log)

    def __divmod__(self, other: Any) -> Any:
        return self // other, self % other

    def __neg__(self) -> Any:
        return self._made("mul", self, -1)

    def __pos__(self) -> Any:
        return self

    def __abs__(self) -> Any:
        return self if self >= 0 else -self

    def __bool__(self) -> bool:
        return bool(self._compared("ne", 0))

    def __ceil__(self) -> Any:
        return self

    __floor__ = __trunc__ = __ceil__

    def bit_length(self) -> Any:
        """See `int`."""
        return self._made("bit_length", self, 0)

    def __int__(self) -> int:
        self.log.escape(self.tree)
        return int.__int__(self)

    def __float__(self) -> float:
        self.log.escape(self.tree)
        return float(int.__int__(self))

    def __hash__(self) -> int:
        self.log.escape(self.tree)
        return int.__hash__(self)

    def __round__(self, *digits: Any) -> Any:
        return self

    def __repr__(self) -> str:
        self.log.escape(self.tree)
        return int.__repr__(self)

    __str__ = __repr__

    def __format__(self, how: str) -> str:
        self.log.escape(self.tree)
        return format(int.__int__(self), how)

    def bit_count(self) -> int:
        """See `int`."""
        self.log.escape(self.tree)
        return int.__int__(self).bit_count()

    def to_bytes(self, *args: Any, **kwargs: Any) -> bytes:
        """See `int`."""
        self.log.escape(self.tree)
        return int.__int__(self).to_bytes(*args, **kwargs)

    def __reduce__(self) -> Any:
        return int, (int.__int__(self),)


class Ratio(float):
    """A quotient of sizes: its `math.ceil` and `math.floor` are followed, and comparisons with
    numbers."""

    top: Any
    bottom: Any
    log: Log

    def __ceil__(self) -> Any:
        return -(-self.top // self.bottom) if self._is_exact() else ceil(float(self))

    def __floor__(self) -> Any:
        return self.top // self.bottom if self._is_exact() else floor(float(self))

    def __int__(self) -> int:
        self._escape()
        return int(float(self))

    __trunc__ = __int__

    def _escape(self) -> None:
        for each in (self.top, self.bottom):
            if isinstance(each, Followed):
                self.log.escape(each.tree)

    def _is_exact(self) -> bool:
        """Whether the rounded quotient rounds as the exact one."""
        top, bottom = _plain(self.top), _plain(self.bottom)
        exact: bool = bottom > 0 and -(-top // bottom) == ceil(float(self))
        return bool(exact and top // bottom == floor(float(self)))

    def _compared(self, op: str, other: Any) -> Any:
        plain = _plain(other)
        if not _are_numbers(plain):
            return NotImplemented
        outcome = bool(getattr(operator, op)(float.__float__(self), plain))
        whole = float(plain).is_integer()
        if isinstance(other, Followed | Ratio) or not whole or _plain(self.bottom) <= 0:
            self._escape()
            return outcome
        right = made("mul", _tree(self.bottom), int(plain))
        self.log.compared.append(Compared(op, _tree(self.top), right, outcome, place()))
        return outcome

    def __hash__(self) -> int:
        self._escape()
        return float.__hash__(self)

    def __bool__(self) -> bool:
        return bool(self._compared("ne", 0))

    def __repr__(self) -> str:
        self._escape()
        return float.__repr__(self)

    __str__ = __repr__

    def __format__(self, how: str) -> str:
        self._escape()
        return format(float.__float__(self), how)


def follow(value: int, tree: Tree, log: Log) -> Followed:
    """A number that was made of sizes."""
    found = Followed(value)
    found.tree, found.log = tree, log
    return found


def _ratio(top: Any, bottom: Any, log: Log) -> Any:
    plain = _plain(top), _plain(bottom)
    if not _are_numbers(*plain):
        return NotImplemented
    if not all(isinstance(each, int) for each in plain):
        log.escape(_tree(top) if isinstance(top, Followed) else _tree(bottom))
        return plain[0] / plain[1]
    found = Ratio(plain[0] / plain[1])
    found.top, found.bottom, found.log = top, bottom, log
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, Followed):
        return int.__int__(value)
    if isinstance(value, Ratio):
        return float.__float__(value)
    return int(value) if isinstance(value, bool) else value


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
    if isinstance(value, Followed | Ratio):
        return _plain(value)
    if type(value) in (list, tuple):
        return type(value)(map(plain, value))
    if type(value) is dict:
        return {key: plain(each) for key, each in value.items()}
    if type(value).__name__.startswith("TensorDescriptor"):
        for name in ("shape", "strides", "block_shape"):
            setattr(value, name, plain(list(getattr(value, name))))
    return value


def trees_of(values: Mapping[Any, Any]) -> dict[Any, Tree]:
    """How those of the values were made that are followed."""
    return {key: each.tree for key, each in values.items() if isinstance(each, Followed)}


def place() -> str:
    """The line of the program that led here: outside of PyTorch, Triton and this package."""
    return next((at for module, at in _places() if module != "triton"), "?")


def is_of_triton() -> bool:
    """Whether it is Triton's own Python code that led here, and not what called it."""
    return next((module for module, _ in _places()), "") == "triton"


def _places() -> Iterator[tuple[str, str]]:
    for frame in frames():
        module = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        if module and module not in _LIBRARIES:  # what Triton generates has none
            yield module, f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"


def frames() -> Iterator[Any]:
    """The frames that led here, the innermost first."""
    frame = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back  # type: ignore[assignment]


_COMPUTED: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    **OPERATIONS,
    "truediv": operator.truediv,
    "pow": operator.pow,  # of a negative number it is a float
}


def _operator(name: str, *, swapped: bool = False) -> Callable[..., Any]:
    def method(self: Followed, other: Any, *modulus: Any) -> Any:
        if modulus:
            self.log.escape(self.tree)
            return pow(_plain(self), _plain(other), *map(_plain, modulus))
        return self._made(name, other, self) if swapped else self._made(name, self, other)

    return method


def _number(name: str, *, swapped: bool = False) -> Callable[..., Any]:
    def method(self: Ratio, other: Any) -> Any:
        self._escape()
        numbers = (_plain(other), _plain(self)) if swapped else (_plain(self), _plain(other))
        return _COMPUTED[name](*numbers) if _are_numbers(*numbers) else NotImplemented

    return method


def _comparison(name: str) -> Callable[..., Any]:
    return lambda self, other: self._compared(name, other)


for _name in "add sub mul floordiv mod or and xor lshift rshift pow".split():
    setattr(Followed, f"__{_name}__", _operator(_name))
    setattr(Followed, f"__r{_name}__", _operator(_name, swapped=True))
for _name in "add sub mul truediv floordiv mod pow".split():
    setattr(Ratio, f"__{_name}__", _number(_name))
    setattr(Ratio, f"__r{_name}__", _number(_name, swapped=True))
for _name in "lt le gt ge eq ne".split():
    setattr(Followed, f"__{_name}__", _comparison(_name))
    setattr(Ratio, f"__{_name}__", _comparison(_name))
