"""Strides that functions of a signature, or of a kernel's arguments, read: they are numbers of the
call.

A function that reads a stride decides by it, or hands it on.  In a dim of size 1 and in an empty
tensor a call's stride may be any, so each stride that is read is one of the tensor's
`exact_strides`: calls have it, or are refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from ferrule.specs import Signature, Tensor
from ferrule.specs.copies import changed, with_tensors
from ferrule.specs.deferred import dataclass

if TYPE_CHECKING:
    from ferrule.compiler.conventions.protocol import CallingConvention

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
class Asked:
    """A signature for functions that compute sizes of a launch from it, and the strides that these
    have read.

    A tensor of the sizes `[m, n]` has the stride `n`, and a call may have another one where a size
    is 1.
    """

    signature: Signature
    read: set[Read]

    @classmethod
    def of(cls, signature: Signature) -> Asked:
        """This signature, of which nothing has been read."""
        read: set[Read] = set()
        change = partial(_watched, read)
        params = tuple(with_tensors(each, change) for each in signature.params)
        found = changed(signature, params=params)  # not made anew, for this reads all strides
        return cls(found, read)

    def held(self, step: CallingConvention) -> CallingConvention:
        """The step, for calls that have the strides that were read."""
        if not self.read:
            return step
        from ferrule.compiler.conventions.sequences import Sequence  # which imports LLVM
        from ferrule.frontends.exactstrides import ExactStrides

        return Sequence([ExactStrides.of(self.read), step])


def _watched(read: set[Read], name: str, tensor: Tensor) -> Tensor:
    return watched(tensor, lambda axis: read.add((name, axis)))
