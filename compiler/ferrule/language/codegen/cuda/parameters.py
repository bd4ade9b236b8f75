"""The parameters of a GPU kernel: the layout of its parameter space, for both sides of a launch.

The layout is documented in `docs/kernel_parameters.md`.  In the order of the kernel's parameters:

* a tensor is one struct by value, `{data, {shape, stride}}`: the address of its first element, then
  its sizes and then its strides that are not constants, in the order of its dims; an `i32` for a
  symbol of 32 bits, else an `i64`.  An empty part is omitted;
* a scalar is itself: a bool is a byte, a 2-byte float its bits;
* then each symbol that the kernel uses and that is not itself a size or stride of one of its
  tensors, as a number of the symbol's width.

Before the symbols are the tensor maps, 128 bytes each, of the tensors whose boxes are copied; a
tensor that is used for nothing else is omitted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from llvmlite import ir

from ferrule.compiler.cuda.launcher.tensor_maps import ALIGN, BYTES
from ferrule.language.codegen.values.scalars import memory_type
from ferrule.language.ir import ops
from ferrule.language.ir.types import TensorType
from ferrule.runtime.llvm.layouts import I32, I64, PTR, Field, Layout, align_of, size_of
from ferrule.specs import Dim, DType, Sym, symbols_of
from ferrule.specs.deferred import dataclass


@dataclass(frozen=True, slots=True)
class Number:
    """A size or stride in a tensor's struct: its position in the value and in memory."""

    dim: Dim
    positions: tuple[int, ...]
    path: str


@dataclass(frozen=True, slots=True)
class TensorParameter:
    """A tensor: `data`, then the dynamic sizes, then the dynamic strides."""

    value: ops.Value
    shape: tuple[Dim, ...]
    strides: tuple[Dim, ...]

    @property
    def type(self) -> ir.LiteralStructType:
        """The struct as a value."""
        parts = [_numbers(part) for _, part in self._parts()]
        return ir.LiteralStructType([PTR, ir.LiteralStructType(parts)] if parts else [PTR])

    @property
    def layout(self) -> Layout:
        """The struct in memory; its numbers are at the paths from `numbers`."""
        data = Field("data", PTR)
        parts = [
            Field(name, Layout(name, [Field(str(i), number_type(n)) for i, n in enumerate(part)]))
            for name, part in self._parts()
        ]
        return Layout(
            "tensor", [data, Field("layout", Layout("layout", parts))] if parts else [data]
        )

    def numbers(self) -> Iterator[Number]:
        """The sizes and strides, in order."""
        for outer, (name, part) in enumerate(self._parts()):
            for inner, dim in enumerate(part):
                yield Number(dim, (1, outer, inner), f"layout.{name}.{inner}")

    def _parts(self) -> list[tuple[str, tuple[Dim, ...]]]:
        return [(n, part) for n, part in (("shape", self.shape), ("stride", self.strides)) if part]


@dataclass(frozen=True, slots=True)
class ScalarParameter:
    """A number."""

    value: ops.Value
    dtype: DType

    @property
    def type(self) -> ir.Type:
        """Its type in memory."""
        return memory_type(self.dtype)


@dataclass(frozen=True, slots=True)
class SymbolParameter:
    """A size that is not in a tensor of the kernel."""

    symbol: Sym

    @property
    def type(self) -> ir.Type:
        """A number of the symbol's width."""
        return number_type(self.symbol)


@dataclass(frozen=True, slots=True)
class MapParameter:
    """The tensor map of a tensor of the kernel, by value."""

    value: ops.Value
    boxes: ops.Boxes

    @property
    def type(self) -> ir.Type:
        """The type of the kernel's argument; see `attributes`."""
        return PTR

    @property
    def attributes(self) -> tuple[str, ...]:
        """LLVM's attributes of such an argument: it is neither copied nor changed."""
        return f"byval([{BYTES} x i8])", f"align {ALIGN}", '"nvvm.grid_constant"'


KernelParameter = TensorParameter | ScalarParameter | SymbolParameter | MapParameter


def number_type(dim: Dim) -> ir.IntType:
    """The type of a size in a parameter."""
    return I32 if isinstance(dim, Sym) and dim.width == 32 else I64


def kernel_parameters(kernel: ops.Function) -> tuple[KernelParameter, ...]:
    """The arguments of a launch for a kernel, in order."""
    maps = _maps(kernel)
    # A map has address, sizes and strides of its tensor in it.
    unseen = {each.value for each in maps} - _seen(kernel) if maps else set()
    own = tuple(_parameter(value) for value in kernel.params if value not in unseen)
    given = {
        number.dim
        for parameter in own
        if isinstance(parameter, TensorParameter)
        for number in parameter.numbers()
    }
    rest = (symbol for symbol in _used(kernel) if symbol not in given)
    return (*own, *maps, *(SymbolParameter(symbol) for symbol in rest))


def _maps(kernel: ops.Function) -> tuple[MapParameter, ...]:
    """One for each combination of tensor and boxes, in the order of the text."""
    readers = (op for op in kernel.facts.ops if isinstance(op, ops.MapReader))
    found = dict.fromkeys(op.mapped for op in readers)
    return tuple(MapParameter(*each) for each in found if each is not None)


def _direct(op: ops.Op) -> tuple[ops.Value, ...]:
    """The operands of an op but the tensor that it knows by a map."""
    if isinstance(op, ops.MapReader):
        return tuple(each for each in op.operands if each is not op.tensor)
    return op.operands


def _seen(kernel: ops.Function) -> set[ops.Value]:
    """The values that a kernel uses other than through a map."""
    found: set[ops.Value] = set()
    for op in kernel.facts.ops:
        found.update(_direct(op))
        for region in op.regions:
            found.update(region.yields)
    return found


def space(parameters: Sequence[KernelParameter]) -> int:
    """The bytes that these take in a kernel's parameter space."""
    size = 0
    for parameter in parameters:
        own, align = _extent(parameter)
        size = -(-size // align) * align + own
    return size


def _extent(parameter: KernelParameter) -> tuple[int, int]:
    """Bytes and alignment."""
    match parameter:
        case MapParameter():
            return BYTES, ALIGN
        case TensorParameter(layout=layout):
            return size_of(layout), align_of(layout)
        case ScalarParameter(type=kind) | SymbolParameter(type=kind):
            return size_of(kind), align_of(kind)


def _parameter(value: ops.Value) -> KernelParameter:
    match value.type:
        case TensorType(shape=shape, strides=strides):
            return TensorParameter(value, _dynamic(shape), _dynamic(strides))
        case DType() as dtype:
            return ScalarParameter(value, dtype)
    raise TypeError(f"%{value.hint} cannot be a kernel's parameter: it is {value.type}")


def _dynamic(dims: Iterable[Dim]) -> tuple[Dim, ...]:
    return tuple(dim for dim in dims if not isinstance(dim, int))


def _numbers(dims: Iterable[Dim]) -> ir.LiteralStructType:
    return ir.LiteralStructType([number_type(dim) for dim in dims])


def _used(kernel: ops.Function) -> tuple[Sym, ...]:
    """The symbols that a kernel reads, each once, in order."""
    found: dict[Sym, None] = {}
    for op in kernel.facts.ops:
        if isinstance(op, ops.Size):
            found |= dict.fromkeys(symbols_of(op.dim))
        for operand in _direct(op):
            if isinstance(operand.type, TensorType):
                for dim in operand.type.strides:
                    found |= dict.fromkeys(symbols_of(dim))
    return tuple(found)
