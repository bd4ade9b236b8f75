"""The verifier's rules for the ops of `threads`; their text is in the docstring of `verifier`."""

from __future__ import annotations

from typing import Final

from ferrule.language.ir import mbarriers, threads
from ferrule.language.ir import threads as peers
from ferrule.language.ir.rules import tensors as tensor_rules
from ferrule.language.ir.rules.checker import Checker
from ferrule.language.ir.types import TensorType
from ferrule.language.ir.values import Value
from ferrule.specs import (
    BFloat16,
    Boolean,
    DType,
    Float16,
    Float32,
    Float64,
    Int32,
    Int64,
    Uint32,
    Uint64,
)
from ferrule.specs.dtypes import Kind

_SCALARS: Final[tuple[Kind, ...]] = ("bool", "int", "uint", "float")
_INTEGERS: Final = (Int32, Uint32, Int64, Uint64)
_FLOATS: Final = (Float16, BFloat16, Float32, Float64)
MATCHED: Final[tuple[DType, ...]] = (*_INTEGERS, Float32, Float64)
"""The dtypes of a Match."""
ATOMIC: Final[dict[threads.AtomicOp, tuple[DType, ...]]] = {
    **dict.fromkeys(("add", "min", "max", "exch", "cas"), (*_INTEGERS, *_FLOATS)),
    **dict.fromkeys(("and", "or", "xor"), _INTEGERS),
    **dict.fromkeys(("inc", "dec"), (Uint32,)),
}
"""The dtypes of each atomic op."""


def effect(checker: Checker, op: threads.BlockEffect) -> None:
    """Checks an op without a result; a fence has no operands either."""
    match op:
        case threads.Barrier(number, count):
            given = [value for value in (number, count) if value is not None]
            checker.types(given, [Int32] * len(given), "the number and count of a barrier")
        case threads.WarpBarrier(mask):
            checker.types([mask], [Uint32], "masks")


def simple(checker: Checker, op: threads.Cooperation) -> None:
    """Checks an op with one result."""
    match op:
        case threads.Shared(result):
            _shared(checker, result)
            dims = (*result.tensor.shape, *result.tensor.strides)
            constant = all(isinstance(dim, int) and dim >= 0 for dim in dims)
            checker.require(constant, "a Shared has constant sizes and strides, none negative")
        case threads.DynamicShared(result, offset):
            _shared(checker, result)
            checker.require(offset >= 0, "a DynamicShared begins at an offset from 0 on")
        case threads.Shuffle(result, _, value, lane, mask, clamp):
            checker.scalar(value, _SCALARS, "what is shuffled")
            checker.types([result], [value.type], "the result of a shuffle")
            checker.types([lane, mask, clamp], [Int32, Uint32, Int32], "the operands of a shuffle")
        case threads.Vote(result, name, predicate, mask):
            checker.types([predicate, mask], [Boolean, Uint32], "the operands of a vote")
            wanted = Uint32 if name == "ballot" else Boolean
            checker.types([result], [wanted], "the result of a vote")
        case threads.Match(result, _, value, mask):
            checker.require(value.type in MATCHED, "a match compares 32 or 64 bits")
            checker.types([mask, result], [Uint32, Uint32], "the mask and result of a match")
        case threads.Atomic():
            _atomic(checker, op)
        case peers.PeerLoad(result, source, peer):
            _shared(checker, source)
            checker.types([result, peer], [source.tensor.dtype, Int32], "a load of a peer")
        case threads.InlinePtx(result, _, constraints, given):
            for value in (result, *given):
                checker.scalar(value, _SCALARS, "an operand of a piece of PTX")
            count = len(constraints.split(","))
            checker.require(count == 1 + len(given), "a piece of PTX has a constraint an operand")
        case mbarriers.MBarrierTry(result, barrier, phase):
            type_ = barrier.type
            holds = isinstance(type_, TensorType) and type_.is_shared and type_.dtype is Int64
            checker.require(holds, "an mbarrier is an int64 in shared memory")
            checker.types([phase, result], [Int32, Boolean], "the phase and result of a try")


def _shared(checker: Checker, result: Value) -> None:
    type_ = result.type
    is_shared = isinstance(type_, TensorType) and type_.is_shared
    checker.require(is_shared, "shared memory is a tensor in smem")


def _atomic(checker: Checker, op: threads.Atomic) -> None:
    tensor_rules.element(checker, op.tensor, op.indices, op.value)
    dtype = op.tensor.tensor.dtype
    checker.types([op.result], [dtype], "the result of an atomic")
    checker.require(dtype in ATOMIC[op.op], f"there is no atomic {op.op} of {dtype.name}")
    checker.require(not op.tensor.tensor.is_own, "an atomic is in memory that threads share")
    compares = op.compare is not None
    checker.require(compares == (op.op == "cas"), "cas has what it compares with, no other has")
    if op.compare is not None:
        checker.types([op.compare], [dtype], "what an atomic compares with")
