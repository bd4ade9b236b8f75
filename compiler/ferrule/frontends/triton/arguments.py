"""The argument of each parameter of a kernel: the data of a tensor, a number, a size, a constant.

An argument is described once, by an example; a caller of the function passes only the tensors and
numbers among them.  All others are known at compile time, or follow from these: a kernel's stride
is that of a tensor.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace
from functools import reduce
from typing import Any, Literal

from ferrule.frontends.told import Told
from ferrule.frontends.triton.traced.functions import traced
from ferrule.frontends.triton.traced.numbers import Unseen
from ferrule.frontends.triton.traced.paths import Path
from ferrule.frontends.triton.traced.tensors import SeenView, TracedDescriptor, TracedTensor
from ferrule.frontends.triton.tuples import Shape, nest
from ferrule.specs import Data, Dim, DType, Scalar, Signature, Sym, Tensor, divisibility_of
from ferrule.specs.conditions import Computed, FloatExpr, Real
from ferrule.specs.deferred import dataclass
from ferrule.specs.expr import INT64_MAX

Hint = Literal[1, 16]
"""An assumption about a number: that it is 1, or that 16 divides it; about an address only the
latter."""


@dataclass(frozen=True, slots=True)
class PointerArgument:
    """The address of a tensor; `made`: the function allocates and returns it, filled with `fill` if
    that is a number.  `read_as`: the dtype of its elements in the kernel, if it differs from the
    callers'.  `view`: what functions of the arguments see, if it is not `tensor` itself.  `offset`:
    it begins so many elements behind the tensor's first one."""

    name: str
    tensor: Tensor
    hint: Hint | None = None
    made: bool = False
    fill: int | None = None
    read_as: DType | None = None
    view: SeenView | None = field(default=None, compare=False)
    offset: Dim = 0

    @property
    def data(self) -> Data:
        """The address that the kernel gets."""
        first = self.tensor.data
        return first if self.offset == 0 else first.byte_offset(self._bytes)

    @property
    def _bytes(self) -> Dim:
        return self.offset * (self.tensor.dtype.bits // 8)

    @property
    def is_aligned(self) -> bool:
        """Whether 16 divides the address in every call."""
        tensor_is = self.tensor.align % 16 == 0 and not self.made
        return tensor_is and (self.offset == 0 or divisibility_of(self._bytes) % 16 == 0)


@dataclass(frozen=True, slots=True)
class IntegerArgument:
    """An integer: a parameter of the function, or a size over its tensors.

    `size` is its value, `scalar` the parameter, None for a size.
    """

    name: str
    size: Dim
    scalar: Scalar | None = None
    hint: Hint | None = None

    @property
    def ranged(self) -> Dim:
        """The value with the range of the parameter's dtype as bounds, and those of its example."""
        if self.scalar is None or not isinstance(self.size, Sym):
            return self.size
        bits, signed = self.scalar.dtype.bits, self.scalar.dtype.kind == "int"
        low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
        least, most = self.size.min, self.size.max
        return replace(
            self.size,
            min=low if least is None else max(low, least),
            max=min(high if most is None else min(high, most), INT64_MAX),
        )


@dataclass(frozen=True, slots=True)
class NumberArgument:
    """A float or a bool, about which Triton assumes nothing: a parameter of the function, or a
    fixed number, or computed of what callers give."""

    name: str
    scalar: Scalar | float | bool | FloatExpr


@dataclass(frozen=True, slots=True)
class Pixels:
    """What a descriptor for im2col has beside its block of pixels and channels: the corners of the
    bounding box, and a step for each dim of the tensor.  All are in the order of the dims."""

    lower: tuple[int, ...]
    upper: tuple[int, ...]
    element_strides: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class DescriptorArgument:
    """A tensor with the block that is copied at once, as a tensor map.

    `padding` is the value of elements outside the tensor: "zero" or "nan"; `layout` is that of the
    block in shared memory, in Gluon's notation; `rounded`: the copy rounds float32 to tfloat32.
    `made` and `fill` are as in `PointerArgument`; `flatten`: the tensor's first dims are merged
    into one.  `pixels`: it is for im2col.
    """

    name: str
    tensor: Tensor
    block: tuple[int, ...]
    padding: Literal["zero", "nan"] = "zero"
    layout: str = ""
    rounded: bool = False
    made: bool = False
    fill: int | None = None
    flatten: bool = False
    pixels: Pixels | None = None

    @property
    def viewed(self) -> Tensor:
        """The tensor that the descriptor describes: the tensor itself, or a view with as many dims
        as the block."""
        if not self.flatten:
            return self.tensor
        shape, last = self.tensor.shape, len(self.tensor.shape) - len(self.block)
        rows = reduce(lambda left, right: left * right, shape[: last + 1])
        strides = self.tensor.strides[last:]
        return Tensor(self.name, (rows, *shape[last + 1 :]), self.tensor.dtype, strides=strides)

    def traced(self, tensor: TracedTensor, viewed: TracedTensor) -> TracedDescriptor:
        """The descriptor in traced functions; both tensors are in their traced form."""
        return TracedDescriptor(tensor, self.block, viewed, is_gluon=bool(self.layout))


@dataclass(frozen=True, slots=True)
class ConstantArgument:
    """A value that is compiled into the kernel."""

    name: str
    value: Any


Argument = (
    PointerArgument | IntegerArgument | NumberArgument | DescriptorArgument | ConstantArgument
)


@dataclass(frozen=True, slots=True)
class Arguments:
    """The arguments of a kernel, in the order of its parameters, and the source of their values.

    `signature` contains the arguments that callers pass, `results` the tensors that the function
    allocates, `tuples` the names of the elements of each tuple, in its shape.
    """

    signature: Signature
    results: tuple[Tensor, ...]
    each: tuple[Argument, ...]
    tuples: Mapping[str, Shape] = field(default_factory=dict)

    @property
    def constants(self) -> dict[str, Any]:
        """The values of the arguments that are compiled in."""
        return {a.name: a.value for a in self.each if isinstance(a, ConstantArgument)}

    def with_constants(self, values: Mapping[str, Any]) -> Arguments:
        """A copy with other values of constants."""
        each = tuple(
            ConstantArgument(a.name, values[a.name]) if a.name in values else a for a in self.each
        )
        return replace(self, each=each)

    def with_blocks(self, blocks: Mapping[str, Sequence[int]]) -> Arguments:
        """A copy with other blocks of descriptors."""
        each = tuple(
            replace(a, block=tuple(blocks[a.name])) if isinstance(a, DescriptorArgument) else a
            for a in self.each
        )
        return replace(self, each=each)

    def traced(self, path: Path | None = None, *, told: bool = False) -> dict[str, Any]:
        """The arguments in the form that a traced function sees; `told`: integers that are the same
        in every call are marked by `fixed`, which the check of a grid needs."""
        seen: dict[str, Any] = {}
        for argument in self.each:
            match argument:
                case PointerArgument(view=SeenView() as part):
                    seen[argument.name] = TracedTensor(part.tensor, path, view=part)
                case PointerArgument():
                    seen[argument.name] = TracedTensor(argument.tensor, path)
                case DescriptorArgument(viewed=viewed):
                    first = len(argument.tensor.shape) - len(viewed.shape)
                    tensor = TracedTensor(argument.tensor, path)
                    view = TracedTensor(viewed, path, first=first)
                    seen[argument.name] = argument.traced(tensor, view)
                case IntegerArgument(size=int() as size):
                    seen[argument.name] = Told(size) if told else size
                case IntegerArgument():
                    seen[argument.name] = traced(argument.ranged, path)
                case ConstantArgument():
                    seen[argument.name] = argument.value
                case NumberArgument(scalar=Scalar() | Computed() as scalar):
                    seen[argument.name] = Unseen(argument.name, scalar, path)
                case NumberArgument(scalar=Real(number=number)):
                    seen[argument.name] = number
                case NumberArgument(scalar=number):
                    seen[argument.name] = number
        return seen | {name: nest(shape, seen.__getitem__) for name, shape in self.tuples.items()}


@dataclass(frozen=True, slots=True)
class Output:
    """An example of a tensor that the function allocates and returns: see `like`, `empty` and
    `zeros`."""

    source: str | None
    shape: tuple[Dim | str, ...] | None
    dtype: DType | None
    fill: int | None = None


@dataclass(frozen=True, slots=True)
class Descriptor:
    """An example of a tensor that a kernel takes as a descriptor: see `descriptor`; the other
    fields are those of `DescriptorArgument`."""

    example: Any
    block: tuple[int, ...]
    padding: Literal["zero", "nan"]
    layout: str = ""
    rounded: bool = False
    flatten: bool = False
    pixels: Pixels | None = None


@dataclass(frozen=True, slots=True)
class Reinterpreted:
    """An example of a tensor whose elements the kernel reads as another dtype of the same size, as
    made by `triton.reinterpret`."""

    example: Any
    dtype: DType


@dataclass(frozen=True, slots=True)
class Fixed:
    """An example of a number that is the same in every call: the function has no parameter for
    it."""

    value: int | float | bool


@dataclass(frozen=True, slots=True)
class Default:
    """The default of a kernel's parameter: callers may pass another number."""

    value: int | float | bool


def inner(example: Any) -> Any:
    """The tensor's own example inside a wrapper that describes how the kernel takes the tensor."""
    return example.example if isinstance(example, Descriptor | Reinterpreted) else example
