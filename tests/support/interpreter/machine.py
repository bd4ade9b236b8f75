"""The reference interpreter of the kernel IR: runs a program, op by op, straight from its meaning.

What the IR leaves open is chosen by the caller: the order of the blocks and threads of a launch
and of the iterations of a `Parallel`.  What it leaves undefined (a coordinate outside of a tensor,
a size that overflows and has no fault) is an error here, an AssertionError.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, TypeAlias

import numpy as np

from ferrule.compiler.artefacts import Fault
from ferrule.language.ir import ops
from ferrule.specs import Dim, DType, Sym, evaluate, symbols_of
from interpreter import scalars
from interpreter.memory import Memory, OutOfBounds
from interpreter.scalars import Scalar

Order: TypeAlias = Callable[[Iterable[tuple[int, ...]]], Iterable[tuple[int, ...]]]
"""The order in which coordinates come to their turn, from that in which they count up."""

Coordinates: TypeAlias = "Mapping[str, tuple[int, ...]]"
Values: TypeAlias = "dict[ops.Value, Any]"


class Stopped(Exception):
    """A check ended the call with a fault."""

    def __init__(self, fault: Fault, values: Sequence[int] = ()) -> None:
        super().__init__(fault.kind, _filled(fault.message, values))
        self.fault = fault
        self.kind: str = fault.kind
        self.message: str = self.args[1]


def _filled(message: str, values: Sequence[Any]) -> str:
    """The message of a fault with its values, of the placeholders that numbers have."""
    shown = iter(values)

    def text(found: re.Match[str]) -> str:
        match found[0]:
            case "{{" | "}}":
                return found[0][0]
            case "{bool}":
                return str(bool(next(shown)))
            case "{float}":
                return f"{struct.unpack('d', struct.pack('q', int(next(shown))))[0]:g}"
            case _:
                return str(int(next(shown)))

    return re.sub(r"\{\{|\}\}|\{(?:|unsigned|bool|float)\}", text, message)


class Undefined(AssertionError):
    """A program does what the IR gives no meaning."""


class Endless(AssertionError):
    """A program ran more ops than it was given."""


def upwards(coordinates: Iterable[tuple[int, ...]]) -> Iterable[tuple[int, ...]]:
    """The last coordinate counts fastest."""
    return coordinates


def downwards(coordinates: Iterable[tuple[int, ...]]) -> Iterable[tuple[int, ...]]:
    """From the last to the first."""
    return reversed(list(coordinates))


def run(
    program: ops.Program,
    arguments: Sequence[Any],
    symbols: Mapping[Sym, int],
    order: Order = upwards,
    fuel: int = 10_000_000,
) -> str:
    """Runs a program; gives what it prints.

    `arguments`: for each parameter of its host function a number, a `Memory` for a tensor or a
    pointer, anything for another handle.  `symbols`: the value of each.

    Raises Stopped where a check fails, Undefined, OutOfBounds, and Endless after `fuel` ops.
    """
    machine = Machine(program, symbols, order, fuel)
    for relation in program.relations:
        if machine.dim(relation.left) != machine.dim(relation.right):
            raise Stopped(Fault("ValueError", f"Mismatched {relation.left_name}"))
    values = dict(zip(program.host.params, arguments, strict=True))
    with np.errstate(all="ignore"):
        machine.region(program.host.body, values, {})
    return "".join(machine.printed)


@dataclass
class Machine:
    """A program that is running."""

    program: ops.Program
    symbols: Mapping[Sym, int]
    order: Order
    fuel: int
    dims: dict[Dim, int] = field(default_factory=dict)
    printed: list[str] = field(default_factory=list)
    returned: list[Any] = field(default_factory=list)

    def dim(self, dim: Dim) -> int:
        """The value of a size that must have one."""
        if dim not in self.dims:
            try:
                self.dims[dim] = evaluate(dim, self.symbols)
            except (OverflowError, ZeroDivisionError) as error:
                raise Undefined(f"a size without a fault: {error}") from error
        return self.dims[dim]

    def region(self, region: ops.Region, values: Values, thread: Coordinates) -> list[Any]:
        """Runs the ops of a region; gives what it yields."""
        for op in region.ops:
            self.fuel -= 1
            if self.fuel < 0:
                raise Endless
            self.op(op, values, thread)
        return [values[value] for value in region.yields]

    def op(self, op: ops.Op, values: Values, thread: Coordinates) -> None:
        """Runs one op."""
        match op:
            case ops.Store(tensor, indices, value):
                offset = self.offset(tensor, indices, values)
                values[tensor].write(tensor.tensor.dtype, offset, values[value])
            case ops.Check(condition, fault, found):
                if not values[condition]:
                    raise Stopped(fault, [values[value] for value in found])
            case ops.Print(text, found):
                self.printed.append(scalars.c_format(text, [values[value] for value in found]))
            case ops.Launch():
                self.launch(op, values)
            case ops.If(results, condition, then, otherwise):
                taken = then if values[condition] else otherwise
                values.update(zip(results, self.region(taken, values, thread), strict=True))
            case ops.For():
                self.for_(op, values, thread)
            case ops.While():
                self.while_(op, values, thread)
            case ops.Parallel(indices, extents, body):
                extent = [range(values[value]) for value in extents]
                for coordinates in self.order(product(*extent)):
                    values.update(zip(indices, coordinates, strict=True))
                    self.region(body, values, thread)
            case ops.Load(result, tensor, indices):
                offset = self.offset(tensor, indices, values)
                values[result] = values[tensor].read(tensor.tensor.dtype, offset)
            case ops.View(result, tensor, indices):
                offset = self.offset(tensor, indices, values) if indices else 0
                values[result] = values[tensor].at(offset)
            case ops.Fragment(result):
                values[result] = self.fragment(result)
            case ops.Special(result, register, axis):
                values[result] = thread[register][axis]
            case ops.Alloc():
                self.alloc(op, values)
            case ops.Text(result, data):
                values[result] = data
            case ops.Address(result, operand):
                values[result] = values[operand]
            case ops.Return(found):
                self.returned = [values[value] for value in found]
            case _:
                values[op.result] = self.scalar(op, dtype_of(op.result), values)

    def scalar(self, op: ops.SimpleOp, dtype: DType, values: Values) -> Scalar:
        """The result of an op that depends on its operands and the symbols alone."""
        match op:
            case ops.Constant(_, value):
                return scalars.number(dtype, value)
            case ops.Size(_, dim, fault):
                return self.size(dim, dtype, fault)
            case ops.Unary(_, name, operand):
                return scalars.unary(name, dtype, values[operand])
            case ops.Binary(_, name, lhs, rhs):
                return scalars.binary(name, dtype, values[lhs], values[rhs])
            case ops.Fma(_, x, y, z):
                return scalars.fma(dtype, values[x], values[y], values[z])
            case ops.Compare(_, name, lhs, rhs):
                return scalars.compare(name, values[lhs], values[rhs])
            case ops.Cast(_, operand):
                return scalars.cast(dtype_of(operand), dtype, values[operand])
            case ops.Bitcast(_, operand):
                return scalars.bitcast(dtype_of(operand), dtype, values[operand])
            case ops.Select(_, condition, on_true, on_false):
                return values[on_true if values[condition] else on_false]
        raise NotImplementedError(f"the interpreter does not know {type(op).__name__}")

    def size(self, dim: Dim, dtype: DType, fault: Fault | None) -> int:
        """A size within its dtype, or its fault."""
        low, high = dtype.range
        try:
            value = evaluate(dim, self.symbols)
        except (OverflowError, ZeroDivisionError):
            value = high + 1
        if low <= value <= high:
            return value
        if fault is None:
            raise Undefined(f"the size {dim} does not fit {dtype.name} and has no fault")
        raise Stopped(fault, [self.symbols[symbol] for symbol in dict.fromkeys(symbols_of(dim))])

    def fragment(self, tensor: ops.Value) -> Memory:
        """Memory of the running thread alone, which nobody has written."""
        type_ = tensor.tensor
        sizes = ([self.dim(dim) for dim in dims] for dims in (type_.shape, type_.strides))
        last = sum((size - 1) * stride for size, stride in zip(*sizes, strict=True))
        return Memory.undefined((last + 1) * type_.dtype.itemsize)

    def alloc(self, op: ops.Alloc, values: Values) -> None:
        """New memory, and the values of the symbols that are its sizes."""
        type_, sizes = op.result.tensor, [values[value] for value in op.sizes]
        named = zip(type_.shape, sizes, strict=True)
        made = {dim: size for dim, size in named if dim in self.program.made}
        self.symbols = {**self.symbols, **made}
        self.dims.clear()
        values[op.result] = Memory.undefined(math.prod(sizes) * type_.dtype.itemsize)

    def offset(self, tensor: ops.Value, indices: Sequence[ops.Value], values: Values) -> int:
        """How many bytes an element is from the first."""
        type_ = tensor.tensor
        coordinates = [values[index] for index in indices]
        shape = [self.dim(dim) for dim in type_.shape]
        if not all(0 <= i < n for i, n in zip(coordinates, shape, strict=True)):
            raise OutOfBounds(f"%{tensor.hint}{coordinates}, but its shape is {shape}")
        strides = [self.dim(dim) for dim in type_.strides]
        steps = sum(i * stride for i, stride in zip(coordinates, strides, strict=True))
        return steps * type_.dtype.itemsize

    def for_(self, op: ops.For, values: Values, thread: Coordinates) -> None:
        """A loop over Python's range; a step of 0 has no iterations."""
        start, stop, step = (values[value] for value in (op.start, op.stop, op.step))
        carried = [values[value] for value in op.initial]
        for index in range(start, stop, step) if step else ():
            values[op.index] = index
            values.update(zip(op.carried, carried, strict=True))
            carried = self.region(op.body, values, thread)
        values.update(zip(op.results, carried, strict=True))

    def while_(self, op: ops.While, values: Values, thread: Coordinates) -> None:
        """A loop with a test before each iteration."""
        carried = [values[value] for value in op.initial]
        while True:
            values.update(zip(op.carried, carried, strict=True))
            if not self.region(op.test, values, thread)[0]:
                break
            carried = self.region(op.body, values, thread)
        values.update(zip(op.results, carried, strict=True))

    def launch(self, op: ops.Launch, values: Values) -> None:
        """Runs a kernel for each thread of each block, each with values of its own."""
        kernel = self.program.kernel(op.kernel)
        grid, block = (tuple(values[v] for v in sizes) for sizes in (op.grid, op.block))
        arguments = [values[value] for value in op.arguments]
        for block_idx in self.order(product(*map(range, grid))):
            for thread_idx in self.order(product(*map(range, block))):
                thread = {
                    "block_idx": block_idx,
                    "thread_idx": thread_idx,
                    "block_dim": block,
                    "grid_dim": grid,
                }
                self.region(kernel.body, dict(zip(kernel.params, arguments, strict=True)), thread)


def dtype_of(value: ops.Value) -> DType:
    """The dtype of a scalar."""
    assert isinstance(value.type, DType), f"%{value.hint} is no scalar"
    return value.type
