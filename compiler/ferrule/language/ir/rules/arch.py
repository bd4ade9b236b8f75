"""The verifier's rules for the ops of `tensor_cores`, `asynchronous` and `mbarriers`.

Their text is in the docstring of `verifier`.
"""

from __future__ import annotations

from typing import Final

from ferrule.language.faces.tensor_cores import SharedMatrix
from ferrule.language.ir import asynchronous, mbarriers, tensor_cores, threads
from ferrule.language.ir import asynchronous as tensor_copies
from ferrule.language.ir import threads as peers
from ferrule.language.ir.rules.checker import Checker
from ferrule.language.ir.types import TensorType
from ferrule.language.ir.values import Value
from ferrule.specs import Boolean, Int32, Int64, Uint32


def effect(checker: Checker, op: threads.ArchOp) -> None:
    """Checks an op without a result."""
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
        case mbarriers.MBarrier(kind, barrier, amount, peer):
            _barrier(checker, barrier)
            if peer is not None:
                checker.require(kind == "arrive", "only an arrive is at the barrier of a peer")
                checker.types([peer], [Int32], "the peer of an mbarrier")
            needs = kind not in ("arrive", "copies_arrive")
            checker.require(needs == (amount is not None), f"the number of an mbarrier's {kind}")
            checker.types([] if amount is None else [amount], [Int32] * needs, "numbers")
        case mbarriers.MBarrierWait(barrier, phase):
            _barrier(checker, barrier)
            checker.types([phase], [Int32], "phases")
        case mbarriers.BulkCopy(target, source, size, barrier):
            _barrier(checker, barrier)
            _between(checker, target, source, "a BulkCopy")
            checker.types([size], [Int32], "the size of a BulkCopy")
        case tensor_copies.BulkStore(target, source, size):
            _between(checker, source, target, "a BulkStore", back=True)
            checker.types([size], [Int32], "the size of a BulkStore")
        case peers.PeerStore(target, value, peer):
            _one_dim(checker, target, "what a PeerStore writes to")
            checker.require(target.tensor.is_shared, "a PeerStore writes to shared memory")
            checker.types([value, peer], [target.tensor.dtype, Int32], "a store to a peer")
        case tensor_copies.TensorCopy():
            _tensor_copy(checker, op)
        case tensor_copies.MapCopy() | tensor_copies.MapEdit():
            _map(checker, op)
        case tensor_cores.StoreMatrix():
            _store_matrix(checker, op)
        case tensor_cores.WarpgroupMma():
            _warpgroup_mma(checker, op)
        case threads.BarrierArrive(number, count):
            checker.types([number, count], [Int32] * 2, "the numbers of a BarrierArrive")


def _mma(checker: Checker, op: tensor_cores.Mma) -> None:
    checker.types([op.mask], [Uint32], "masks")
    for fragment in (op.d, op.a, op.b, op.c):
        _fragment(checker, fragment)
    a, b, c, d = (value.tensor.dtype for value in (op.a, op.b, op.c, op.d))
    known = tensor_cores.MMA_DTYPES
    holds = tensor_cores.are_factors(a, b, known) and c is d and d in known[a]
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


def _store_matrix(checker: Checker, op: tensor_cores.StoreMatrix) -> None:
    checker.types([op.mask], [Uint32], "masks")
    _fragment(checker, op.source)
    _one_dim(checker, op.target, "the target of a StoreMatrix")
    target, source = op.target.tensor, op.source.tensor
    checker.require(target.is_shared, "a StoreMatrix writes to shared memory")
    checker.require(target.dtype is source.dtype, "a StoreMatrix keeps the dtype")
    checker.require(target.dtype.itemsize <= 4, "a StoreMatrix is of elements of 1, 2 or 4 bytes")
    checker.require(op.count in tensor_cores.MATRIX_COUNTS, "a StoreMatrix has 1, 2 or 4 matrices")
    checker.require(
        not op.transposed or target.dtype.itemsize == 2, "only 2-byte elements are transposed"
    )


def _warpgroup_mma(checker: Checker, op: tensor_cores.WarpgroupMma) -> None:
    checker.types([op.accumulate], [Boolean], "the condition of a WarpgroupMma")
    _fragment(checker, op.d)
    _shared_matrix(checker, op.b, op.of_b)
    if op.of_a is None:
        _fragment(checker, op.a)
        holds = tensor_cores.fragment_size(op.a) * 2 == op.depth
        checker.require(holds, "A of a WarpgroupMma has half as many elements as a row")
    else:
        _shared_matrix(checker, op.a, op.of_a)
    a, b, d = (value.tensor.dtype for value in (op.a, op.b, op.d))
    holds = (
        tensor_cores.are_factors(a, b, tensor_cores.WGMMA_DTYPES)
        and d in tensor_cores.WGMMA_DTYPES[a]
    )
    checker.require(holds, f"there is no warpgroup_mma of {a.name} and {b.name} to {d.name}")
    holds = tensor_cores.has_columns(op.columns, d)
    checker.require(holds, f"there is no warpgroup_mma of {op.columns} columns")


def _shared_matrix(checker: Checker, value: Value, layout: SharedMatrix | None) -> None:
    _one_dim(checker, value, "a matrix of a WarpgroupMma")
    checker.require(value.tensor.is_shared, "a matrix of a WarpgroupMma is in shared memory")
    fault = "no layout" if layout is None else layout.fault(value.tensor.dtype)
    checker.require(fault is None, f"a matrix of a WarpgroupMma has {fault}")


_OPERANDS: Final[dict[tensor_copies.TensorCopyKind, tuple[bool, bool]]] = {
    "load": (True, True),
    "store": (True, False),
    "prefetch": (False, False),
    "prefetch_map": (False, False),
}
"""Whether a TensorCopy has shared memory as an operand, and a barrier."""


def _tensor_copy(checker: Checker, op: tensor_copies.TensorCopy) -> None:
    type_ = op.tensor.type
    holds = isinstance(type_, TensorType) and not (type_.is_shared or type_.is_own)
    checker.require(holds, "a TensorCopy is of a tensor in global memory")
    rank = op.boxes.tiling.rank
    holds = sorted(op.boxes.order) == list(range(rank)) and rank == len(op.tensor.tensor.shape)
    checker.require(holds, "the boxes of a TensorCopy have the dims of its tensor")
    count = 0 if op.kind == "prefetch_map" else rank
    checker.types(op.coordinates, [Int32] * count, "the coordinates of a TensorCopy")
    given = (op.shared is not None, op.barrier is not None)
    checker.require(given == _OPERANDS[op.kind], f"the operands of a TensorCopy {op.kind}")
    if op.shared is not None:
        _one_dim(checker, op.shared, "the shared memory of a TensorCopy")
        shared = op.shared.tensor
        holds = shared.is_shared and shared.dtype is op.tensor.tensor.dtype
        checker.require(holds, "a TensorCopy has shared memory of the dtype of its tensor")
    if op.barrier is not None:
        _barrier(checker, op.barrier)
    if op.mask is not None:
        checker.require(op.kind == "load", "only a load goes to several blocks")
        checker.types([op.mask], [Int32], "the mask of a TensorCopy")

    if op.descriptor is not None:
        words(checker, op.descriptor, "the map of a TensorCopy")
        checker.require(
            not op.descriptor.tensor.is_shared, "a TensorCopy reads its map in global memory"
        )


def words(checker: Checker, value: Value, what: str) -> None:
    """A tensor map in memory."""
    _one_dim(checker, value, what)
    checker.require(value.tensor.dtype is Int64 and not value.tensor.is_own, f"{what} is 16 int64")


def _map(checker: Checker, op: tensor_copies.MapOp) -> None:
    if isinstance(op, tensor_copies.MapCopy):
        words(checker, op.target, "the target of a MapCopy")
        checker.types([op.lane], [Int32], "lanes")
        return
    words(checker, op.place, "the place of a MapEdit")
    if op.kind == "publish":
        checker.require(
            op.value is not None and op.value.tensor.is_shared,
            "a map is published from shared memory",
        )
        return
    given = [] if op.value is None else [op.value]
    checker.types(given, [Int64] * (op.kind in ("address", "dim", "stride")), "fields of a map")


def _copy(checker: Checker, op: asynchronous.AsyncCopy) -> None:
    _between(checker, op.target, op.source, "an AsyncCopy")
    size = op.count * op.target.tensor.dtype.itemsize
    checker.require(size in asynchronous.COPY_BYTES, "an AsyncCopy is of 4, 8 or 16 bytes")
    checker.require(op.cache == "always" or size == 16, "fewer than 16 bytes are always cached")
    if op.holds is not None:
        checker.types([op.holds], [Boolean], "the condition of an AsyncCopy")


def _between(checker: Checker, to: Value, of: Value, what: str, *, back: bool = False) -> None:
    """The rules of a copy to shared memory; `back` exchanges the two sides."""
    for tensor in (to, of):
        _one_dim(checker, tensor, f"a tensor of {what}")
    target, source = to.tensor, of.tensor
    verbs = ("reads", "writes to") if back else ("writes to", "reads")
    checker.require(target.is_shared, f"{what} {verbs[0]} shared memory")
    gmem = not source.is_shared and not source.is_own
    checker.require(gmem, f"{what} {verbs[1]} global memory")
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
