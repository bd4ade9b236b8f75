"""The values that a name can have while a function is lowered.

An instance of any class that is not listed here is a compile-time value: an ordinary Python object.
The classes here represent run-time values; they are opaque to ordinary Python, and their operators
raise, so that compile-time code cannot use them by accident.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn

from ferrule.language.ir import ops
from ferrule.language.ir.types import TensorType
from ferrule.language.layouts import Layout
from ferrule.specs import Complex64, Complex128, Dim, DType, Float32
from ferrule.specs.deferred import dataclass
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
    """A run-time scalar.  `dim`: its value as a size, if known."""

    value: ops.Value
    dim: Dim | None = None

    @property
    def dtype(self) -> DType:
        """The type of the scalar."""
        assert isinstance(self.value.type, DType)
        return self.value.type


@dataclass(frozen=True, slots=True, eq=False)
class ComplexNumber(_Opaque):
    """A run-time complex number: two floats of one dtype.

    In a form of memory (`Fielded`) the parts are dtypes.
    """

    real: Number
    imag: Number

    @property
    def dtype(self) -> DType:
        """The type of the number."""
        return Complex64 if self.real.dtype is Float32 else Complex128


@dataclass(frozen=True, slots=True, eq=False)
class TensorView(_Opaque):
    """A tensor: a parameter, or a view of one; `name` is its name in messages.

    `nested`: its layout if the modes nest; the dims of its type are the leaves.  `whole`: a view
    that was written with `:`, which represents all of it in a whole-tensor expression.
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
        """The layout from coordinates to elements."""
        return self.nested or Layout(self.type.shape, self.type.strides)


@dataclass(frozen=True, slots=True, eq=False)
class ConstantTable(_Opaque):
    """Numbers that were a list or an array at compile time, in constant memory: the part of them
    at the `indices` of the first dims.  The last dim of complex ones has their parts."""

    value: ops.Value
    indices: tuple[ops.Value, ...]
    name: str
    is_complex: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        """The sizes of the other dims."""
        sizes = self.value.tensor.shape[len(self.indices) :]
        sizes = sizes[:-1] if self.is_complex else sizes
        return tuple(size for size in sizes if isinstance(size, int))


@dataclass(frozen=True, slots=True, eq=False)
class PointerView(_Opaque):
    """The address of elements of a dtype: a tensor of one dim, with stride 1 and an unknown end."""

    value: ops.Value
    name: str

    @property
    def type(self) -> TensorType:
        """The type of the elements that begin there."""
        return self.value.tensor


@dataclass(frozen=True, slots=True, eq=False)
class CoordinateView(_Opaque):
    """A tensor whose elements are coordinates: the origin, and what the layout's strides add.

    `origin`: nested tuples of ints and run-time integers, of the profile of every element.
    """

    layout: Layout
    origin: Any
    name: str


@dataclass(frozen=True, slots=True)
class Begin:
    """A number of elements from an address on: `known`, and a run-time one if there is one.

    `bits`: a mask of the bits that the run-time number may have set; a negative mask goes on to the
    left.
    """

    known: int = 0
    number: Number | None = None
    bits: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class SwizzledView(_Opaque):
    """A tensor whose element at c is number inner(begin + layout(c)) of the memory `root`.

    `root`: one dim of stride 1.  `of_pointer`: the pointer has the swizzle, and the layout of the
    tensor is `layout`; else its layout is composed.
    """

    root: ops.Value
    inner: Any
    begin: Begin
    layout: Layout
    name: str
    of_pointer: bool = False

    @property
    def type(self) -> TensorType:
        """The type of the memory: its element type, space and alignment."""
        return self.root.tensor


@dataclass(frozen=True, slots=True, eq=False)
class SwizzledPointer(_Opaque):
    """A pointer that carries a swizzle, which changes the index of each element from `root` on."""

    root: ops.Value
    inner: Any
    begin: Begin
    name: str

    @property
    def type(self) -> TensorType:
        """The type of the memory: its element type, space and alignment."""
        return self.root.tensor


@dataclass(frozen=True, slots=True, eq=False)
class ThreadSlice(_Opaque):
    """`tiled.get_slice(thread)`: what a thread has of a tiled copy or matrix multiplication.

    `thread`: an int, or a run-time number.
    """

    of: Any
    thread: Any


@dataclass(frozen=True, slots=True, eq=False)
class Fielded(_Opaque):
    """Memory of tuples, named tuples or dataclasses: a tensor or a pointer for each number of them.

    `form` is such a value with a dtype in place of each number; `items` are in the order of its
    leaves.
    """

    form: Any
    items: tuple[TensorView | PointerView, ...]
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class TensorMapView(_Opaque):
    """A tensor map; in a kernel, of its parameter `value`."""

    value: ops.Value
    name: str
    boxes: ops.Boxes


@dataclass(frozen=True, slots=True, eq=False)
class Whole(_Opaque):
    """A whole-tensor expression such as `a[:] + b[:]`: its value at each coordinate.

    `element` emits the ops of one element, given Int64 coordinates.  `name` is the name in messages
    of the tensor with its shape.  A computed one (not `a[:]` itself) uses the contents of the
    tensors at the time `since` it was evaluated: the count of writes then.  `reduces`: whether it
    computes a reduction for each element.
    """

    shape: tuple[Dim, ...]
    name: str
    dtype: DType
    element: Callable[[tuple[ops.Value, ...]], Any]
    since: int | None = None
    reduces: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Vector(_Opaque):
    """Numbers of one dtype in a shape known at compile time, such as `a.load()`.

    `items`: in the order of `layouts`, the first mode fastest; at least one.  They are `Number`s or
    `ComplexNumber`s.
    """

    shape: tuple[Any, ...]
    items: tuple[Any, ...]

    @property
    def dtype(self) -> DType:
        """The type of the numbers."""
        found: DType = self.items[0].dtype
        return found


@dataclass(frozen=True, slots=True, eq=False)
class KernelCall(_Opaque):
    """`kernel(a, b)` in a host function, before `.launch(...)`.

    `sizes`: the parameters annotated `fe.Shape` or alike.  The kernel knows their sizes by their
    expressions, as those of tensors, and makes layouts of them.
    """

    kernel: Any
    arguments: dict[str, Any]
    sizes: frozenset[str] = frozenset()

    def __hash__(self) -> int:
        return object.__hash__(self)  # compared by identity, not by contents


@dataclass(frozen=True, slots=True, eq=False)
class Handle(_Opaque):
    """A parameter that is only passed on: a pointer, stream, string, dtype, object.

    `leaves` are its values in the parameters of a body.
    """

    param: Param
    leaves: tuple[ops.Value, ...]
    name: str


class ShownText(str):
    """A text that shows values of the call by their types, for `print` while compiling.

    It does not say what the call has, so nothing that the compiled function does may depend on it.
    """

    __slots__ = ()

    def __eq__(self, other: object) -> NoReturn:
        _refuse_text()

    def __ne__(self, other: object) -> NoReturn:
        _refuse_text()

    def __hash__(self) -> int:
        _refuse_text()

    def __len__(self) -> int:
        _refuse_text()

    def __iter__(self) -> NoReturn:
        _refuse_text()

    def __contains__(self, part: object) -> bool:
        _refuse_text()

    def __add__(self, other: str) -> ShownText:
        return ShownText(str.__add__(self, other))

    def __radd__(self, other: str) -> ShownText:
        return ShownText(str.__add__(other, self))

    def __mul__(self, count: Any) -> ShownText:
        return ShownText(str.__mul__(self, count))

    __rmul__ = __mul__

    def __mod__(self, values: Any) -> ShownText:
        return ShownText(str.__mod__(self, values))

    def __getitem__(self, index: Any) -> ShownText:
        return ShownText(str.__getitem__(self, index))


def _refuse_text() -> NoReturn:
    raise TypeError(
        "a text that shows a value of the call is for print() while compiling: nothing can be "
        "computed from it, because the value is not known yet"
    )


class Generated:
    """The value of a generator expression in a compiled function: items that are consumed once.

    `rest` are the items that are not consumed yet.
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
    """A value that a host function returns, as numbers: for example the address of a tensor.

    Each kind of value has a class of its own, so that kinds are not mixed up.  `words` is its name
    in messages.
    """

    __slots__ = ()
    param: ClassVar[Param]
    words: ClassVar[str]


@dataclass(frozen=True, slots=True, eq=False)
class Maybe(_Opaque):
    """An optional parameter: `present` is a Boolean, `item` the parameter if it is present."""

    present: Number
    item: Any
    name: str


@dataclass(frozen=True, slots=True, eq=False)
class OneOf(_Opaque):
    """A parameter of a union: `tag` is the position of the actual member, an Int32.

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
    """A name that only one branch of a run-time `if` or a loop defines; reading it is an error.

    `error`: the error of reading it, if the branches define it as two kinds of value.
    """

    reason: str
    error: CompileError | None = None


RUN_TIME: Final = (
    Number,
    ComplexNumber,
    TensorView,
    ConstantTable,
    PointerView,
    Fielded,
    TensorMapView,
    CoordinateView,
    SwizzledView,
    SwizzledPointer,
    ThreadSlice,
    Whole,
    Vector,
    KernelCall,
    Handle,
    Maybe,
    OneOf,
    Undefined,
)


def is_record(value: object) -> bool:
    """Whether this is an instance of a dataclass of a program; ferrule's own are not, but for those
    that are written in the kernel language."""
    return not isinstance(value, type) and is_dataclass(value) and is_of_program(type(value))


def is_value_object(value: object) -> bool:
    """Whether this is an object of a program's class that says which of its values the run has, as
    CuTe DSL's programs do: branches choose and loops carry its attributes."""
    return not isinstance(value, type) and is_value_class(type(value))


def is_value_class(cls: type) -> bool:
    """Whether the objects of this class are `value objects`."""
    named = hasattr(cls, "__extract_mlir_values__") and hasattr(cls, "__new_from_mlir_values__")
    return named and cls not in RUN_TIME and hasattr(cls, "__dict__") and is_of_program(cls)


def is_of_program(cls: type) -> bool:
    """Whether a class is a program's own, or one that is written in the kernel language."""
    return not cls.__module__.startswith("ferrule.") or cls.__module__.startswith(_LIBRARY)


_LIBRARY: Final = ("ferrule.language.faces.number_layouts", "ferrule.language.faces.pipelines.")
"""The modules with classes that are written in the kernel language."""


def is_run_time(value: object) -> bool:
    """Whether this, or an item of this container or dataclass, is a run-time value."""
    if isinstance(value, (tuple, list)):
        return any(is_run_time(item) for item in value)
    if isinstance(value, Generated):
        return any(is_run_time(item) for item in value.rest)
    if isinstance(value, ComplexNumber):
        return isinstance(value.real, Number)
    if isinstance(value, dict):
        return any(is_run_time(item) for item in value.values())
    if is_record(value):
        return any(is_run_time(getattr(value, each.name, None)) for each in fields(value))  # type: ignore[arg-type]
    if is_value_object(value):
        return any(map(is_run_time, vars(value).values()))
    return isinstance(value, RUN_TIME)
