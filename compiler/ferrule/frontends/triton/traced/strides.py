"""Strides that functions of a kernel's arguments read: they are numbers of the call.

A function that reads a stride decides by it, or hands it on.  In a dim of size 1 and in an empty
tensor a call's stride may be any, so each stride that is read is one of the tensor's
`exact_strides`: calls have it, or are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, Final

from ferrule.compiler.conventions.base import Call
from ferrule.compiler.cuda.code import DeviceCode
from ferrule.specs import Param, Tensor
from ferrule.specs.copies import changed
from ferrule.specs.deferred import dataclass

Read = tuple[str, int]
"""A stride that was read: the name of the tensor, and the dim."""


class Strides(tuple[Any, ...]):
    """The strides of a tensor, as a tuple that tells which of them a function reads."""

    read: Callable[[int], None]

    @classmethod
    def of(cls, steps: Iterable[Any], read: Callable[[int], None]) -> Strides:
        """These strides; `read` is called with each dim that is read."""
        found = cls(steps)
        found.read = read
        return found

    def _all(self) -> tuple[Any, ...]:
        found: tuple[Any, ...] = self[:]
        return found

    def __getitem__(self, at: Any) -> Any:
        axes = range(len(self))[at]
        for axis in axes if isinstance(axes, range) else (axes,):
            self.read(axis)
        return super().__getitem__(at)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._all())

    def __radd__(self, other: Any) -> Any:
        return other + self._all()


def _of_all(name: str) -> Any:
    """A method of tuples, which reads all of them."""
    own = getattr(tuple, name)

    def method(self: Strides, *given: Any) -> Any:
        return own(self._all(), *given)

    return method


_WHOLE: Final = (
    *("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__contains__", "__hash__"),
    *("__add__", "__mul__", "__rmul__", "__repr__", "count", "index"),
)
for _name in _WHOLE:
    setattr(Strides, _name, _of_all(_name))


def watched(tensor: Tensor, read: Callable[[int], None]) -> Tensor:
    """The same tensor, with strides that tell which of them are read."""
    return changed(tensor, strides=Strides.of(tensor.strides, read))


@dataclass(frozen=True, slots=True)
class ExactStrides:
    """A step without code: it says which strides of the parameters are numbers of the call."""

    axes: tuple[tuple[str, tuple[int, ...]], ...]
    when: None = None

    @classmethod
    def of(cls, read: Collection[Read]) -> ExactStrides:
        """Those of these tensors."""
        names = sorted({name for name, _ in read})
        return cls(tuple((each, _axes(read, each)) for each in names))

    def codes(self) -> tuple[DeviceCode, ...]:
        """See `CallingConvention`."""
        return ()

    def results(self) -> tuple[Param, ...]:
        """See `CallingConvention`."""
        return ()

    def emit(self, call: Call) -> None:
        """See `CallingConvention`."""
        for name, axes in self.axes:
            call.exact[name] = tuple(sorted({*call.exact.get(name, ()), *axes}))


def _axes(read: Collection[Read], name: str) -> tuple[int, ...]:
    return tuple(sorted(axis for of, axis in read if of == name))
