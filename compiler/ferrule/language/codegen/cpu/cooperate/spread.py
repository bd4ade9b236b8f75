"""How a thread's own tensors lie in memory where they outlive a phase.

Laid out thread by thread, a phase in which all threads read one element gathers it from many
places.  `found` are the tensors of which element 0 of all threads comes first, then element 1:
those that the kernel uses element by element, each known while compiling.  A tensor that a thread
goes through in a loop, or hands on whole, is better left in one piece.
"""

from __future__ import annotations

from ferrule.language.codegen.facts import lanes
from ferrule.language.ir import ops
from ferrule.language.ir.types import TensorType
from ferrule.language.ir.walk import all_ops
from ferrule.specs import AddressSpace

_PADDING = 16
"""Elements between two rows, which else begin in the same set of a cache."""


def found(kernel: ops.Function) -> frozenset[ops.Value]:
    """The tensors of a kernel that are to be laid out element by element."""
    constants, own, others = set[ops.Value](), set[ops.Value](), set[ops.Value]()
    for op in all_ops(kernel.body):
        match op:
            case ops.Constant(result):
                constants.add(result)
            case ops.Fragment(result):
                own.add(result)
            case ops.Load(_, _, indices) if constants.issuperset(indices):
                pass
            case ops.Store(_, indices, _) if constants.issuperset(indices):
                pass
            case _:
                others.update(op.operands)
    return frozenset() if lanes.has_wide_parts(kernel) else frozenset(own - others)


def pitch(threads: int) -> int:
    """How many elements apart two elements of one thread are, in a block of so many threads."""
    return -(-threads // _PADDING) * _PADDING + _PADDING


def spread(tensor: ops.Value, pitch: int) -> ops.Value:
    """The tensor with its elements that far apart, in memory."""
    type_ = tensor.tensor
    strides = tuple(stride * pitch for stride in type_.strides if isinstance(stride, int))
    size = type_.dtype.itemsize
    return ops.Value(
        TensorType(type_.dtype, type_.shape, strides, size, AddressSpace.gmem), tensor.hint
    )
