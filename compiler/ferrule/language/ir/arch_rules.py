"""The verifier's rules for the ops of `tensor_cores`, `asynchronous` and `mbarriers`.

Their text is in the docstring of `verifier`.
"""

from __future__ import annotations

from ferrule.language.ir import asynchronous, mbarriers, tensor_cores, threads
from ferrule.language.ir.thread_rules import Checker
from ferrule.language.ir.types import TensorType
from ferrule.language.ir.values import Value
from ferrule.specs import Boolean, Int32, Int64, Uint32


def effect(checker: Checker, op: threads.ArchOp) -> None:
    """Checks an op without a result."""
    checker.require(checker.in_kernel, "only the threads of a kernel work together")
    match op:
        case tensor_cores.Mma():
            _mma(checker, op)
        case tensor_cores.LoadMatrix():
            _load_matrix(checker, op)
        case asynchronous.AsyncCopy():
            _copy(checker, op)
        case asynchronous.Control(kind, amount):
            holds = amount >= 0 if kind in asynchronous.WITH_AMOUNT else amount == 0
            checker.require(holds, f"the number of {kind} is {amount}")
        case mbarriers.MBarrier(kind, barrier, amount):
            _barrier(checker, barrier)
            needs = kind != "arrive"
            checker.require(needs == (amount is not None), f"the number of an mbarrier's {kind}")
            checker.types([] if amount is None else [amount], [Int32] * needs, "numbers")
        case mbarriers.MBarrierWait(barrier, phase):
            _barrier(checker, barrier)
            checker.types([phase], [Int32], "phases")
        case mbarriers.BulkCopy(target, source, size, barrier):
            _barrier(checker, barrier)
            _between(checker, target, source, "a BulkCopy")
            checker.types([size], [Int32], "the size of a BulkCopy")


def _mma(checker: Checker, op: tensor_cores.Mma) -> None:
    checker.types([op.mask], [Uint32], "masks")
    for fragment in (op.d, op.a, op.b, op.c):
        _fragment(checker, fragment)
    a, b, c, d = (value.tensor.dtype for value in (op.a, op.b, op.c, op.d))
    known = tensor_cores.MMA_DTYPES
    alike = a is b or (a.bits == b.bits == 8 and b in known)
    holds = a in known and alike and c is d and d in known[a]
    checker.require(holds, f"there is no mma of {a.name} and {b.name} to {d.name}")
    size = tensor_cores.fragment_size
    a_words, b_words = (size(f) // tensor_cores.words(f) for f in (op.a, op.b))
    holds = size(op.c) == size(op.d) == 4 and b_words in (1, 2) and a_words == 2 * b_words
    checker.require(holds, "an mma has 2 or 4 words of A, half as many of B, 4 elements of C and D")


def _load_matrix(checker: Checker, op: tensor_cores.LoadMatrix) -> None:
    checker.types([op.mask], [Uint32], "masks")
    _fragment(checker, op.target)
    _one_dim(checker, op.source, "the source of a LoadMatrix")
    target, source = op.target.tensor, op.source.tensor
    checker.require(source.is_shared, "a LoadMatrix reads shared memory")
    checker.require(target.dtype is source.dtype, "a LoadMatrix keeps the dtype")
    checker.require(target.dtype.itemsize <= 4, "a LoadMatrix is of elements of 1, 2 or 4 bytes")
    checker.require(op.count in tensor_cores.MATRIX_COUNTS, "a LoadMatrix has 1, 2 or 4 matrices")
    checker.require(
        not op.transposed or target.dtype.itemsize == 2, "only 2-byte elements are transposed"
    )


def _copy(checker: Checker, op: asynchronous.AsyncCopy) -> None:
    _between(checker, op.target, op.source, "an AsyncCopy")
    size = op.count * op.target.tensor.dtype.itemsize
    checker.require(size in asynchronous.COPY_BYTES, "an AsyncCopy is of 4, 8 or 16 bytes")
    checker.require(op.cache == "always" or size == 16, "fewer than 16 bytes are always cached")
    if op.holds is not None:
        checker.types([op.holds], [Boolean], "the condition of an AsyncCopy")


def _between(checker: Checker, to: Value, of: Value, what: str) -> None:
    for tensor in (to, of):
        _one_dim(checker, tensor, f"a tensor of {what}")
    target, source = to.tensor, of.tensor
    checker.require(target.is_shared, f"{what} writes to shared memory")
    gmem = not source.is_shared and not source.is_own
    checker.require(gmem, f"{what} reads global memory")
    checker.require(target.dtype is source.dtype, f"{what} keeps the dtype")


def _barrier(checker: Checker, value: Value) -> None:
    _one_dim(checker, value, "an mbarrier")
    holds = value.tensor.is_shared and value.tensor.dtype is Int64
    checker.require(holds, "an mbarrier is an int64 in shared memory")


def _fragment(checker: Checker, value: Value) -> None:
    _one_dim(checker, value, "a fragment of a matrix")
    type_ = value.tensor
    holds = type_.is_own and all(isinstance(size, int) for size in type_.shape)
    checker.require(holds, "a fragment of a matrix is a tensor in registers")


def _one_dim(checker: Checker, value: Value, what: str) -> None:
    type_ = value.type
    holds = isinstance(type_, TensorType) and type_.strides == (1,)
    checker.require(holds, f"{what} is a compact tensor of one dim")
