"""Builds regions of the kernel IR op by op; the builder owns the insertion point.

`with builder.region() as region:` collects ops into a nested region; after the block,
`region.freeze(yields)` is the `Region`.  The language folds pure ops on constants; the builder only
appends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import field
from typing import Final

from ferrule.compiler.artefacts import Fault, Location
from ferrule.language.fastmath import FMAD, contracting, united
from ferrule.language.ir import ops as ir
from ferrule.language.ir import scalars
from ferrule.language.ir.types import HandleType, TensorType
from ferrule.specs import Boolean, Dim, DType, Float32, Float64, Int32, Uint32
from ferrule.specs.deferred import dataclass

FLAGGED: Final = frozenset({"add", "sub", "mul", "div", "neg"})
"""The ops that have fast-math flags where the program allows them."""
FUSED: Final = frozenset({"add", "sub", "mul"})
WIDE: Final = (Float32, Float64)
"""The ops, and the dtypes, that `contracted` makes one operation of."""
_FORMULAS: Final = frozenset(
    name for name, row in scalars.EVERY.items() if row.library and row.function == "rounded"
)
"""The functions with a formula of their own where products and sums are contracted."""


@dataclass(frozen=True, slots=True)
class Formulas:
    """What a formula of the maths library may use, beside plain arithmetic.

    `fma`: the target has an fma of float32, for formulas that give the same bits by it.
    `contracts`: the function is computed by a formula with fma, which has bits of its own, the same
    on all targets.  `on_gpu`: the target has approximations of 1 / x and 1 / sqrt(x), from which
    such a formula may start, where it ends at the same bits; and clamps that keep NaN.
    """

    fma: bool = False
    contracts: bool = False
    on_gpu: bool = False


PLAIN: Final = Formulas()


@dataclass(slots=True)
class OpenRegion:
    """A region under construction."""

    ops: list[ir.Op] = field(default_factory=list)

    def freeze(self, *yields: ir.Value) -> ir.Region:
        """The finished region, yielding these values."""
        return ir.Region(tuple(self.ops), yields)


class Builder:
    """Appends ops to the innermost open region and returns their results.

    If `places` is not None, it records for each op the current value of `at`.  `flags` are the
    fast-math flags of arithmetic on floats.  `fmad`: whether a product and a sum of the program may
    become one operation, None where nobody said; inside of `library` code they are left alone.
    `formulas`: what the formulas of the maths library may use.
    """

    def __init__(self) -> None:
        self._open: list[OpenRegion] = []
        self.at: object = None
        self.places: dict[ir.Op, object] | None = None
        self.flags: tuple[str, ...] = ()
        self.fmad: bool | None = None
        self.library = False
        self.formulas = PLAIN
        self.naturals: set[ir.Value] = set()

    @contextmanager
    def region(self, again: OpenRegion | None = None) -> Iterator[OpenRegion]:
        """Opens a nested region for the ops that follow, or reopens an earlier one."""
        opened = OpenRegion() if again is None else again
        self._open.append(opened)
        try:
            yield opened
        finally:
            self._open.pop()

    @contextmanager
    def relaxed(self, flags: tuple[str, ...]) -> Iterator[None]:
        """Arithmetic inside has these fast-math flags too."""
        outer, self.flags = self.flags, united(self.flags, flags)
        try:
            yield
        finally:
            self.flags = outer

    @contextmanager
    def inlined(self, fmad: bool | None, *, library: bool) -> Iterator[None]:
        """What is inside belongs to another function of the program, or to one of ferrule's."""
        outer = self.fmad, self.library
        self.fmad, self.library = outer[0] if fmad is None else fmad, library
        try:
            yield
        finally:
            self.fmad, self.library = outer

    def later(self) -> Callable[[], AbstractContextManager[None]]:
        """A context for code of here that is emitted later, from another function's: it has the
        settings that hold now."""
        settings = self.flags, self.fmad, self.library
        return lambda: self._under(settings)

    @contextmanager
    def _under(self, settings: tuple[tuple[str, ...], bool | None, bool]) -> Iterator[None]:
        outer = self.flags, self.fmad, self.library
        self.flags, self.fmad, self.library = settings
        try:
            yield
        finally:
            self.flags, self.fmad, self.library = outer

    def _flags(self, op: str, operand: ir.Value) -> tuple[str, ...]:
        if op in _FORMULAS:
            return (FMAD,) if self.fmad else ()
        if not self.flags:
            return ()
        kind = operand.type
        flagged = op in FLAGGED and isinstance(kind, DType) and kind.kind == "float"
        if not flagged or self.fmad is not False:
            return self.flags if flagged else ()
        return contracting(self.flags, False)

    @property
    def current(self) -> OpenRegion:
        """The region to which ops are appended."""
        return self._open[-1]

    @property
    def around(self) -> OpenRegion:
        """The region around the current one."""
        return self._open[-2]

    def append(self, op: ir.Op) -> None:
        """Adds an op that is already made."""
        self._open[-1].ops.append(op)
        if self.places is not None:
            self.places[op] = self.at

    def constant(
        self, dtype: DType | HandleType, value: bool | int | float, hint: str = "c"
    ) -> ir.Value:
        """A number of this dtype, or a null handle, 0."""
        result = ir.Value(dtype, hint)
        self.append(ir.Constant(result, value))
        return result

    def size(self, dtype: DType, dim: Dim, fault: Fault | None = None) -> ir.Value:
        """The value of a size."""
        result = ir.Value(dtype, "size")
        self.append(ir.Size(result, dim, fault))
        return result

    def special(self, register: ir.Register, axis: int) -> ir.Value:
        """A coordinate of the running thread."""
        result = ir.Value(Int32, f"{register}_{ir.AXES[axis]}")
        self.append(ir.Special(result, register, axis))
        self.naturals.add(result)
        return result

    def unary(self, op: ir.UnaryOp, operand: ir.Value, *, fast: bool = False) -> ir.Value:
        """`op operand`."""
        result = ir.Value(operand.type, op)
        flags = self._flags(op, operand)
        self.append(ir.Unary(result, op, operand, fast, flags))
        return result

    def binary(
        self, op: ir.BinaryOp, lhs: ir.Value, rhs: ir.Value, *, fast: bool = False
    ) -> ir.Value:
        """`lhs op rhs`."""
        result = ir.Value(lhs.type, op)
        flags = self._flags(op, lhs)
        self.append(ir.Binary(result, op, lhs, rhs, fast, flags))
        return result

    def operator(self, op: ir.BinaryOp, lhs: ir.Value, rhs: ir.Value) -> ir.Value:
        """`lhs op rhs` as the program wrote it: `contracted` may make one operation of two, and
        so may LLVM, if flags allow it something."""
        if not self.fmad or self.library or op not in FUSED or lhs.type not in WIDE:
            return self.binary(op, lhs, rhs)
        result = ir.Value(lhs.type, op)
        flags = contracting(self.flags, True) or (FMAD,)
        self.append(ir.Binary(result, op, lhs, rhs, flags=flags))
        return result

    def fma(self, x: ir.Value, y: ir.Value, z: ir.Value, *, rest: bool = False) -> ir.Value:
        """`x * y + z`, rounded once; `rest`: see `ir.Fma`."""
        result = ir.Value(x.type, "fma")
        self.append(ir.Fma(result, x, y, z, rest))
        return result

    def compare(self, op: ir.CompareOp, lhs: ir.Value, rhs: ir.Value) -> ir.Value:
        """`lhs op rhs` as a Boolean."""
        result = ir.Value(Boolean, op)
        self.append(ir.Compare(result, op, lhs, rhs))
        return result

    def cast(self, dtype: DType, operand: ir.Value, *, saturate: bool = False) -> ir.Value:
        """The operand in another dtype; unchanged if it already has that dtype."""
        if operand.type is dtype and not saturate:
            return operand
        result = ir.Value(dtype, operand.hint)
        self.append(ir.Cast(result, operand, saturate))
        return result

    def bitcast(self, dtype: DType, operand: ir.Value) -> ir.Value:
        """The operand's bits in another dtype of the same size."""
        result = ir.Value(dtype, operand.hint)
        self.append(ir.Bitcast(result, operand))
        return result

    def select(self, condition: ir.Value, on_true: ir.Value, on_false: ir.Value) -> ir.Value:
        """`on_true if condition else on_false`."""
        result = ir.Value(on_true.type, "select")
        self.append(ir.Select(result, condition, on_true, on_false))
        return result

    def load(self, tensor: ir.Value, indices: tuple[ir.Value, ...]) -> ir.Value:
        """An element of a tensor."""
        result = ir.Value(tensor.tensor.dtype, "load")
        self.append(ir.Load(result, tensor, indices))
        return result

    def view(
        self,
        tensor: ir.Value,
        type_: TensorType,
        indices: tuple[ir.Value, ...] = (),
        *,
        whole: bool = False,
    ) -> ir.Value:
        """A tensor of this type that begins at an element of another, or at a pointer."""
        result = ir.Value(type_, tensor.hint)
        self.append(ir.View(result, tensor, indices, whole))
        return result

    def fragment(self, type_: TensorType, hint: str = "fragment") -> ir.Value:
        """A new tensor of this type, private to the running thread."""
        result = ir.Value(type_, hint)
        self.append(ir.Fragment(result))
        return result

    def fragment_ahead(self, type_: TensorType, hint: str) -> ir.Value:
        """A `fragment` that exists from the begin of the function on."""
        op = ir.Fragment(ir.Value(type_, hint))
        self._open[0].ops.insert(0, op)
        if self.places is not None:
            self.places[op] = self.at
        return op.result

    def table(self, type_: TensorType, data: bytes, hint: str) -> ir.Value:
        """A tensor of this type with constant elements."""
        result = ir.Value(type_, hint)
        self.append(ir.Table(result, data))
        return result

    def store(self, tensor: ir.Value, indices: tuple[ir.Value, ...], value: ir.Value) -> None:
        """Writes an element of a tensor."""
        self.append(ir.Store(tensor, indices, value))

    def check(self, condition: ir.Value, fault: Fault, *values: ir.Value) -> None:
        """Ends the call with the fault if the condition is false."""
        self.append(ir.Check(condition, fault, values))

    # ---- threads ----

    def shared(self, type_: TensorType, hint: str = "smem", *, extra: bool = False) -> ir.Value:
        """A tensor of this type in the block's static shared memory."""
        result = ir.Value(type_, hint)
        self.append(ir.Shared(result, extra=extra))
        return result

    def dynamic_shared(self, type_: TensorType, offset: int = 0, hint: str = "dyn") -> ir.Value:
        """A tensor of this type in the block's dynamic shared memory, from a byte on."""
        result = ir.Value(type_, hint)
        self.append(ir.DynamicShared(result, offset))
        return result

    def barrier(
        self,
        number: ir.Value | None = None,
        count: ir.Value | None = None,
        location: Location | None = None,
    ) -> None:
        """Waits for threads of the block."""
        self.append(ir.Barrier(number, count, location))

    def warp_barrier(self, mask: ir.Value, location: Location | None = None) -> None:
        """Waits for lanes of the warp."""
        self.append(ir.WarpBarrier(mask, location))

    def fence(self, scope: ir.FenceScope) -> None:
        """Orders the thread's accesses."""
        self.append(ir.Fence(scope))

    def shuffle(
        self,
        op: ir.ShuffleOp,
        value: ir.Value,
        lane: ir.Value,
        mask: ir.Value,
        clamp: ir.Value,
        location: Location | None = None,
    ) -> ir.Value:
        """The value of another lane."""
        result = ir.Value(value.type, f"shuffle_{op}")
        self.append(ir.Shuffle(result, op, value, lane, mask, clamp, location))
        return result

    def vote(
        self,
        op: ir.VoteOp,
        predicate: ir.Value,
        mask: ir.Value,
        location: Location | None = None,
    ) -> ir.Value:
        """The result of a vote on a Boolean in the lanes of the mask."""
        result = ir.Value(Uint32 if op == "ballot" else Boolean, f"vote_{op}")
        self.append(ir.Vote(result, op, predicate, mask, location))
        return result

    def match(
        self,
        op: ir.MatchOp,
        value: ir.Value,
        mask: ir.Value,
        location: Location | None = None,
    ) -> ir.Value:
        """The lanes of the mask that have the same value."""
        result = ir.Value(Uint32, f"match_{op}")
        self.append(ir.Match(result, op, value, mask, location))
        return result

    def atomic(
        self,
        op: ir.AtomicOp,
        tensor: ir.Value,
        indices: tuple[ir.Value, ...],
        value: ir.Value,
        compare: ir.Value | None = None,
        *,
        sem: ir.MemoryOrder = "relaxed",
        scope: ir.MemoryScope = "gpu",
        location: Location | None = None,
    ) -> ir.Value:
        """Changes an element atomically; returns its old value."""
        result = ir.Value(tensor.tensor.dtype, f"atomic_{op}")
        self.append(ir.Atomic(result, op, tensor, indices, value, compare, sem, scope, location))
        return result

    # ---- tensor cores and copies ----

    def mma(
        self,
        d: ir.Value,
        a: ir.Value,
        b: ir.Value,
        c: ir.Value,
        mask: ir.Value,
        location: Location | None = None,
    ) -> None:
        """`d = a @ b + c` of fragments."""
        self.append(ir.Mma(d, a, b, c, mask, location))

    def load_matrix(
        self,
        target: ir.Value,
        source: ir.Value,
        mask: ir.Value,
        location: Location | None = None,
        *,
        transposed: bool = False,
    ) -> None:
        """Loads matrices of 8 rows of 16 bytes into a fragment."""
        self.append(ir.LoadMatrix(target, source, transposed, mask, location))

    def async_copy(
        self,
        target: ir.Value,
        source: ir.Value,
        count: int,
        cache: ir.CacheMode = "always",
        holds: ir.Value | None = None,
    ) -> None:
        """Copies elements to shared memory in the background."""
        self.append(ir.AsyncCopy(target, source, count, cache, holds))

    def store_matrix(
        self,
        target: ir.Value,
        source: ir.Value,
        mask: ir.Value,
        location: Location | None = None,
        *,
        transposed: bool = False,
    ) -> None:
        """Stores a warp's matrices to shared memory."""
        self.append(ir.StoreMatrix(target, source, transposed, mask, location))

    def mbarrier(
        self,
        kind: ir.MBarrierKind,
        barrier: ir.Value,
        amount: ir.Value | None = None,
        peer: ir.Value | None = None,
    ) -> None:
        """An operation on a barrier in shared memory."""
        self.append(ir.MBarrier(kind, barrier, amount, peer))

    def mbarrier_wait(
        self, barrier: ir.Value, phase: ir.Value, location: Location | None = None
    ) -> None:
        """Waits until a phase has ended."""
        self.append(ir.MBarrierWait(barrier, phase, location))

    def bulk_copy(
        self, target: ir.Value, source: ir.Value, size: ir.Value, barrier: ir.Value
    ) -> None:
        """Copies bytes to shared memory; they arrive at a barrier."""
        self.append(ir.BulkCopy(target, source, size, barrier))

    def mbarrier_try(
        self, barrier: ir.Value, phase: ir.Value, location: Location | None = None
    ) -> ir.Value:
        """Whether a phase has ended, after waiting for a while."""
        result = ir.Value(Boolean, "ended")
        self.append(ir.MBarrierTry(result, barrier, phase, location))
        return result

    def control(self, kind: ir.ControlKind, amount: int = 0) -> None:
        """An asynchronous control op without operands."""
        self.append(ir.Control(kind, amount))

    # ---- branches ----

    def if_(
        self, condition: ir.Value, then: ir.Region, otherwise: ir.Region, hints: tuple[str, ...]
    ) -> tuple[ir.Value, ...]:
        """One of two regions; the results are their yields."""
        results = tuple(
            ir.Value(value.type, hint) for value, hint in zip(then.yields, hints, strict=True)
        )
        self.append(ir.If(results, condition, then, otherwise))
        return results
