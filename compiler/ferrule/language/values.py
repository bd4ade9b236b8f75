"""What a name can hold while a function is lowered.

Anything that is not one of the classes here is known at compile time: an ordinary Python object.
The classes here stand for what is known only at the call; they are opaque to ordinary Python, and
their operators raise, so that compile-time code cannot use them by accident.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn

from ferrule.language.ir import ops
from ferrule.language.ir.types import TensorType
from ferrule.language.layouts import Layout
from ferrule.specs import Dim, DType
from ferrule.specs.params import Param

if TYPE_CHECKING:
    from ferrule.compiler.errors import CompileError


class _Opaque:
    """A run-time value: ordinary Python cannot compute with it."""

    __slots__ = ()

    def __bool__(self) -> NoReturn:
        raise TypeError("a run-time value has no truth value while compiling")

    def __iter__(self) -> NoReturn:
        raise TypeError(
            "a run-time value cannot be iterated while compiling: count, i in range(len(x))"
        )

    def __index__(self) -> NoReturn:
        raise TypeError("a run-time value is no Python integer while compiling")

    def __float__(self) -> NoReturn:
        raise TypeError("a run-time value is no Python float while compiling")

    def __hash__(self) -> int:
        raise TypeError("a run-time value cannot be in a set or a key of a dict while compiling")


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
    """A tensor: a parameter, or a part of one; `name` is what messages call it.

    `nested`: its layout where the modes nest; the dims of its type are the leaves.  `whole`: a part
    that was written with `:`, which stands for all of it in a whole-tensor expression.
    """

    value: ops.Value
    name: str
    nested: Layout | None = None
    whole: bool = False

    @property
    def type(self) -> TensorType:
        """Its element type, shape and strides."""
        return self.value.tensor

    @property
    def layout(self) -> Layout:
        """From coordinates to elements."""
        return self.nested or Layout(self.type.shape, self.type.strides)


@dataclass(frozen=True, slots=True, eq=False)
class PointerView(_Opaque):
    """The address of elements of a dtype: a tensor of one dim, stride 1 and no known end."""

    value: ops.Value
    name: str

    @property
    def type(self) -> TensorType:
        """Of the elements that begin there."""
        return self.value.tensor


@dataclass(frozen=True, slots=True, eq=False)
class TensorMapView(_Opaque):
    """What copies of boxes know of a tensor; in a kernel, of its parameter `value`."""

    value: ops.Value
    name: str
    boxes: ops.Boxes


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
class Vector(_Opaque):
    """Numbers of one dtype in a shape known at compile time, such as `a.load()`.

    `items`: as `layouts` counts the elements of a shape, the first mode fastest; at least one.
    """

    shape: tuple[Any, ...]
    items: tuple[Number, ...]

    @property
    def dtype(self) -> DType:
        """The type of the numbers."""
        return self.items[0].dtype


@dataclass(frozen=True, slots=True, eq=False)
class KernelCall(_Opaque):
    """`kernel(a, b)` in a host function, before `.launch(...)`."""

    kernel: Any
    arguments: dict[str, Any]

    def __hash__(self) -> int:
        return object.__hash__(self)  # told apart by which it is, not by what it holds


@dataclass(frozen=True, slots=True, eq=False)
class Handle(_Opaque):
    """A parameter that is only handed on: a pointer, stream, string, dtype, object.

    `leaves` are its values as a body receives them.
    """

    param: Param
    leaves: tuple[ops.Value, ...]
    name: str


class Generated:
    """What a generator expression in a compiled function makes: items that are taken once.

    `rest` are those that nobody has taken yet.
    """

    __slots__ = ("rest",)

    def __init__(self, items: list[Any]) -> None:
        self.rest = items

    def __iter__(self) -> Generated:
        return self

    def __next__(self) -> Any:
        if not self.rest:
            raise StopIteration
        return self.rest.pop(0)


class Parts(tuple[Any, ...]):
    """A value that a host function returns, as numbers: the address of a tensor, say.

    Each kind of value has a class of its own, so that two kinds are not taken for one.  `words` is
    what messages call it.
    """

    __slots__ = ()
    param: ClassVar[Param]
    words: ClassVar[str]


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
    """A name that only one side of a run-time branch or loop defined; reading it is an error.

    `error`: the error that reading it is, where the sides define it as two things.
    """

    reason: str
    error: CompileError | None = None


RunTime = (
    Number
    | TensorView
    | PointerView
    | TensorMapView
    | Whole
    | Vector
    | KernelCall
    | Handle
    | Maybe
    | OneOf
    | Undefined
)
RUN_TIME: Final = (
    Number,
    TensorView,
    PointerView,
    TensorMapView,
    Whole,
    Vector,
    KernelCall,
    Handle,
    Maybe,
    OneOf,
    Undefined,
)


def is_record(value: object) -> bool:
    """Whether this is an instance of a user's dataclass; ferrule's own classes are no records."""
    if isinstance(value, type) or not is_dataclass(value):
        return False
    return not type(value).__module__.startswith("ferrule.")


def is_run_time(value: object) -> bool:
    """Whether this, or an item of this container or dataclass, is known only at the call."""
    if isinstance(value, (tuple, list)):
        return any(is_run_time(item) for item in value)
    if isinstance(value, Generated):
        return any(is_run_time(item) for item in value.rest)
    if isinstance(value, dict):
        return any(is_run_time(item) for item in value.values())
    if is_record(value):
        return any(is_run_time(getattr(value, each.name, None)) for each in fields(value))  # type: ignore[arg-type]
    return isinstance(value, RUN_TIME)
