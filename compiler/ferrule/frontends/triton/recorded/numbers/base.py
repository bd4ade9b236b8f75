"""What all numbers have that a host function gets while it is recorded: operators, and the places
where the number itself is taken."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any

from ferrule.frontends.triton.recorded.log import Log
from ferrule.frontends.triton.recorded.nodes import Tree
from ferrule.frontends.triton.recorded.tensors import Shape


class Number:
    """What all kinds have; their operators are filled in by `fill`."""

    __slots__ = ("log", "number", "tree")

    log: Log
    number: Any
    tree: Tree | None
    """How it was made; None where nobody knows."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """By this PyTorch takes it where a tensor may be a number; and what was kept beyond the
        recording is a number like any other."""
        return func(*plain(tuple(args)), **plain(dict(kwargs or {})))

    def as_float(self) -> Tree | None:
        """How the float was made that it is, or becomes; None where nobody knows."""
        return self.tree

    def _escape(self) -> None:
        if self.tree is not None:
            self.log.escape(self.tree)

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
        self.log.hashed = self.log.hashed or not self.log.is_idle
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

    def __reduce__(self) -> Any:
        """As bytes it is a number, which may be a key of what was kept."""
        self._escape()
        return type(self.number), (self.number,)


def number_of(value: Any) -> Any:
    """A number without its history; anything else as it is."""
    if isinstance(value, Number):
        return value.number
    if isinstance(value, int):
        return int(value)
    return float(value) if isinstance(value, float) else value


def are_numbers(*values: Any) -> bool:
    """Whether all of these are numbers."""
    return all(isinstance(each, int | float) for each in values)


def taken(function: Callable[..., Any], *numbers: Any) -> Any:
    """A function of numbers that knows nothing of how they were made."""
    for each in numbers:
        if isinstance(each, Number):
            each.take()
    return function(*map(number_of, numbers))


def plain(value: Any) -> Any:
    """A value with ordinary numbers for those that are followed, in tuples, lists and dicts too."""
    if isinstance(value, Number):
        return value.number
    if type(value) in (list, tuple):
        return type(value)(map(plain, value))
    if type(value) is Shape:
        return sys.modules["torch"].Size(map(plain, value))
    if type(value) is slice:
        return slice(*map(plain, (value.start, value.stop, value.step)))
    if type(value) is dict:
        return {key: plain(each) for key, each in value.items()}
    if type(value).__name__ == "constexpr":
        known = plain(value.value)
        return value if known is value.value else type(value)(known)
    if type(value).__name__.startswith("TensorDescriptor"):
        for name in ("shape", "strides", "block_shape"):
            setattr(value, name, plain(list(getattr(value, name))))
    return value


def numbers_inside(value: Any) -> Iterator[Number]:
    """The numbers that are followed in tuples, lists, dicts, slices, and what Triton calls a
    constant."""
    if isinstance(value, Number):
        yield value
    elif isinstance(value, tuple | list):
        for each in value:
            yield from numbers_inside(each)
    elif isinstance(value, dict):
        yield from numbers_inside([*value.values()])
    elif isinstance(value, slice):
        yield from numbers_inside([value.start, value.stop, value.step])
    elif type(value).__name__ == "constexpr":
        yield from numbers_inside(value.value)


def fill(kind: type, names: str, method: Callable[..., Any]) -> None:
    """Give a kind the operators of these names, from both sides."""
    for name in names.split():
        setattr(kind, f"__{name}__", _plain_if_kept(method(name)))
        setattr(kind, f"__r{name}__", _plain_if_kept(method(name, swapped=True)))


def fill_alone(kind: type, names: str) -> None:
    """What the operators of one number, of these names, give of a number that was kept is plain."""
    for name in names.split():
        setattr(kind, f"__{name}__", _plain_if_kept(getattr(kind, f"__{name}__")))


def _plain_if_kept(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method whose result has no history where the recording of its number has ended."""

    @functools.wraps(method)
    def found(self: Number, *others: Any) -> Any:
        result = method(self, *others)
        return plain(result) if self.log.is_idle else result

    return found


def name_of_kind(kind: type, plain: str) -> None:
    """Give a kind the name that it has in errors of C code, which takes nothing but a plain one."""
    kind.__name__ = f"number of a ferrule recording, of which {plain}() gives a plain one"


def fill_comparisons(kind: type) -> None:
    """Give a kind the comparisons."""
    for name in "lt le gt ge eq ne".split():
        setattr(kind, f"__{name}__", _comparison(name))


def _comparison(name: str) -> Callable[..., Any]:
    return lambda self, other: self._compared(name, other)
