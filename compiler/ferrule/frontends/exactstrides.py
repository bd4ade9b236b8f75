"""The step of a launch that is held to strides which functions have read."""

from __future__ import annotations

from collections.abc import Collection

from ferrule.compiler.conventions.base import Call
from ferrule.compiler.conventions.protocol import PlainStep
from ferrule.specs.deferred import dataclass


@dataclass(frozen=True, slots=True)
class ExactStrides(PlainStep):
    """A step without code: it says which strides of the parameters are numbers of the call."""

    axes: tuple[tuple[str, tuple[int, ...]], ...]
    when: None = None

    @classmethod
    def of(cls, read: Collection[tuple[str, int]]) -> ExactStrides:
        """Those that were read: the name of the tensor, and the dim."""
        names = sorted({name for name, _ in read})
        return cls(tuple((each, _axes(read, each)) for each in names))

    def emit(self, call: Call) -> None:
        """See `CallingConvention`."""
        for name, axes in self.axes:
            call.exact[name] = tuple(sorted({*call.exact.get(name, ()), *axes}))


def _axes(read: Collection[tuple[str, int]], name: str) -> tuple[int, ...]:
    return tuple(sorted(axis for of, axis in read if of == name))
