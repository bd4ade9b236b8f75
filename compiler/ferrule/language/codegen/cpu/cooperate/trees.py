"""The steps of a reduction over the lanes of warps, as vectors instead of loops over threads.

`block_reduction` combines the values of a warp's lanes in five steps: a lane's with that of the
lane 16, 8, 4, 2 and 1 further on.  In the kernel IR that is a loop over steps, in which each thread
of the block is asked whether it combines something.  Here a warp is two vectors of 16 elements, of
which each step leaves one of half as many: the same operations, in the same order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Final

from llvmlite import ir

from ferrule.language.codegen.functions.loops import ZERO, counted
from ferrule.language.codegen.functions.lowering import FunctionLowering
from ferrule.language.codegen.values import arithmetic
from ferrule.language.codegen.values.scalars import dtype_of, value_type
from ferrule.language.ir import ops
from ferrule.runtime.llvm.layouts import I32, I64
from ferrule.specs import DType, Float32, Float64, Int32, Int64, Uint32, Uint64
from ferrule.specs.deferred import dataclass

_STEPS: Final = (16, 8, 4, 2, 1)
_DTYPES: Final[tuple[DType, ...]] = (Float32, Float64, Int32, Int64, Uint32, Uint64)
"""Elements that are the same in memory and in vectors."""
_OPS: Final = frozenset[ops.BinaryOp](("add", "mul", "max", "min", "and", "or", "xor"))
"""What is computed alike for each element of a vector."""


@dataclass(frozen=True, slots=True)
class Tree:
    """The steps of a reduction by `combine`; `store` is that of a step, into `memory`, which has a
    place for each thread, and for 32 more.

    Only the places of first lanes are meaningful after it.
    """

    store: ops.Store
    combine: ops.Binary

    @property
    def memory(self) -> ops.Value:
        """The values of the threads."""
        return self.store.tensor


def find(loop: ops.For, makers: Mapping[ops.Value, ops.Op]) -> Tree | None:
    """The steps that a loop consists of, if numbers are combined by one operation."""
    if loop.carried or not isinstance(loop.body.ops[-1], ops.Barrier):
        return None
    stores = [op for op in loop.body.ops if isinstance(op, ops.Store)]
    if len(stores) != 1 or not _is_of_threads(stores[0].tensor, makers):
        return None
    match makers.get(stores[0].value):
        case ops.If(_, _, ops.Region((ops.Binary() as combine,), (result,))) if (
            result is combine.result
            and combine.lhs is not combine.rhs
            and combine.op in _OPS
            and combine.result.type in _DTYPES
        ):
            reads = (makers.get(operand) for operand in combine.operands)
            if all(isinstance(e, ops.Load) and e.tensor is stores[0].tensor for e in reads):
                return Tree(stores[0], combine)
    return None


def _is_of_threads(tensor: ops.Value, makers: Mapping[ops.Value, ops.Op]) -> bool:
    """Whether memory is that of a reduction: nothing else has `extra` memory."""
    op = makers.get(tensor)
    while isinstance(op, ops.View):
        op = makers.get(op.tensor)
    return isinstance(op, ops.Shared) and op.extra


def emit(lowering: FunctionLowering, tree: Tree, block: Sequence[ir.Value]) -> None:
    """Emits the steps for all warps of a block of these sizes, i64."""
    e, b = lowering.emitter, lowering.b
    count = _threads(b, block)
    kind, start = value_type(dtype_of(tree.combine.result)), lowering.values[tree.memory]
    whole = isinstance(count, ir.Constant) and count.constant % ops.WARP_SIZE == 0
    size = ir.Constant(I64, ops.WARP_SIZE)
    end = b.udiv(b.add(count, ir.Constant(I64, ops.WARP_SIZE - 1)), size)
    with counted(e, ZERO, end, "warp") as warp:
        first = b.mul(warp, size, flags=("nsw",))
        place = e.index(start, kind, first)
        half = ir.VectorType(kind, _STEPS[0])
        sides = [b.load(at, typ=half) for at in (place, e.index(place, kind, _STEPS[0]))]
        for side in sides:
            side.align = dtype_of(tree.combine.result).itemsize
        lanes = None if whole else b.trunc(b.sub(count, first), I32)
        e.store(_combined(lowering, tree, sides, lanes), place)


def _combined(
    lowering: FunctionLowering, tree: Tree, sides: Sequence[ir.Value], lanes: ir.Value | None
) -> ir.Value:
    """The result of a warp, of the values of its two halves; it has so many lanes, or all."""
    b, dtype = lowering.b, dtype_of(tree.combine.result)
    for far in _STEPS:
        low, high = sides
        made = arithmetic.binary(lowering.emitter, tree.combine.op, dtype, low, high)
        made = arithmetic.flagged(made, tree.combine.flags)
        if lanes is not None:
            left = b.sub(lanes, ir.Constant(I32, far))
            made = b.select(_below(b, left, far), made, low)
        if far == 1:
            break
        sides = _halves(b, made, far // 2)
    return made


def _halves(b: ir.IRBuilder, vector: ir.Value, far: int) -> list[ir.Value]:
    """The two halves of a vector; of one with two elements, these."""
    if far == 1:
        return [b.extract_element(vector, ir.Constant(I32, at)) for at in range(2)]
    return [b.shuffle_vector(vector, vector, _numbers(range(at, at + far))) for at in (0, far)]


def _below(b: ir.IRBuilder, limit: ir.Value, count: int) -> ir.Value:
    """Whether each of the first numbers is below a limit, i32."""
    if count == 1:
        return b.icmp_signed("<", ir.Constant(I32, 0), limit)
    wide = b.insert_element(ir.Constant(_numbers(range(count)).type, ir.Undefined), limit, _FIRST)
    every = b.shuffle_vector(wide, wide, _numbers([0] * count))
    return b.icmp_signed("<", _numbers(range(count)), every)


_FIRST: Final = ir.Constant(I32, 0)


def _numbers(found: Sequence[int]) -> ir.Constant:
    """A vector of these, i32."""
    return ir.Constant(ir.VectorType(I32, len(found)), list(found))


def _threads(b: ir.IRBuilder, block: Sequence[ir.Value]) -> ir.Value:
    """The number of threads in a block; a constant where its sizes are."""
    if all(isinstance(size, ir.Constant) for size in block):
        return ir.Constant(I64, prod(int(size.constant) for size in block))
    x, y, z = block
    return b.mul(b.mul(x, y), z)
