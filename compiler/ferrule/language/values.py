"""What a name can hold while a function is lowered.

Anything that is not one of the classes here is known at compile time: an ordinary Python object.
The classes here stand for what is known only at the call; they are opaque to ordinary Python, and
their operators raise, so that compile-time code cannot use them by accident.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from ferrule.language.ir import ops
from ferrule.language.ir.types import TensorType
from ferrule.specs import Dim, DType
from ferrule.specs.params import Param


class _Opaque:
    """A run-time value: ordinary Python cannot compute with it."""

    __slots__ = ()

    def __bool__(self) -> NoReturn:
        raise TypeError("a run-time value has no truth value while compiling")

    def __iter__(self) -> NoReturn:
        raise TypeError("a run-time value cannot be iterated while compiling")

    def __index__(self) -> NoReturn:
        raise TypeError("a run-time value is no Python integer while compiling")

    def __float__(self) -> NoReturn:
        raise TypeError("a run-time value is no Python float while compiling")


@dataclass(frozen=True, slots=True, eq=False)
class Number(_Opaque):
    """A scalar that is known at the call.  `dim`: the size that it is, where that is known."""

    value: ops.Value
    dim: Dim | None = None

    @property
    def dtype(self) -> DType:
        """The type of the scalar."""
        assert isinstance(self.value.type, DType)
        return self.value.type


@dataclass(frozen=True, slots=True, eq=False)
class TensorView(_Opaque):
    """A tensor parameter; `name` is what messages call it."""

    value: ops.Value
    name: str

    @property
    def type(self) -> TensorType:
        """Its element type, shape and strides."""
        return self.value.tensor


@dataclass(frozen=True, slots=True, eq=False)
class Whole(_Opaque):
    """A whole-tensor expression such as `a[:] + b[:]`: what it is at each coordinate.

    `element` emits the ops of one element, given Int64 coordinates.  `name` is what messages call
    the tensor that its shape comes from.  A computed one (not `a[:]` itself) stands for what the
    tensors hold `since` it was written down: the count of writes then.
    """

    shape: tuple[Dim, ...]
    name: str
    dtype: DType
    element: Callable[[tuple[ops.Value, ...]], Number]
    since: int | None = None


@dataclass(frozen=True, slots=True, eq=False)
class KernelCall(_Opaque):
    """`kernel(a, b)` in a host function, before `.launch(...)`."""

    kernel: Any
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Handle(_Opaque):
    """A parameter that is only handed on: a pointer, stream, string, dtype, object.

    `leaves` are its values as a body receives them.
    """

    param: Param
    leaves: tuple[ops.Value, ...]
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class Maybe(_Opaque):
    """An optional parameter: `present` is a Boolean, `item` the parameter where it holds."""

    present: Number
    item: Any
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class OneOf(_Opaque):
    """A parameter of a union: `tag` is the position of the member that came, an Int32.

    `members` maps the positions that are still possible to the member's spec and value.
    """

    tag: ops.Value
    members: dict[int, tuple[Param, Any]]
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class BoundMethod:
    """A method of a run-time value, such as `.launch`; the lowering calls it."""

    call: Callable[..., Any]
    name: str


@dataclass(frozen=True, slots=True)
class Undefined(_Opaque):
    """A name that only one side of a run-time branch or loop defined; reading it is an error."""

    reason: str


RunTime = Number | TensorView | Whole | KernelCall | Handle | Maybe | OneOf | Undefined
RUN_TIME: Final = (Number, TensorView, Whole, KernelCall, Handle, Maybe, OneOf, Undefined)


def is_run_time(value: object) -> bool:
    """Whether this, or an item of this tuple or list, is known only at the call."""
    if isinstance(value, (tuple, list)):
        return any(is_run_time(item) for item in value)
    if isinstance(value, dict):
        return any(is_run_time(item) for item in value.values())
    return isinstance(value, RUN_TIME)
