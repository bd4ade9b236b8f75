"""The checks of one function: a kernel or the host function."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from contextlib import ExitStack
from dataclasses import field

from ferrule.compiler.artefacts import Fault
from ferrule.language.checks import faults, sizes
from ferrule.language.checks.extents import Extents
from ferrule.language.checks.faults import Where
from ferrule.language.checks.linear import Forms
from ferrule.language.checks.memory import Index, Memory, Origin, reach
from ferrule.language.checks.places import Places
from ferrule.language.checks.proving import Prover, Sizes
from ferrule.language.checks.races import Access, Met, kind_of, watched
from ferrule.language.checks.shadow import Clock, Watch, shadow_type
from ferrule.language.codegen.facts.launched import Launched
from ferrule.language.ir import ops
from ferrule.language.ir.builder import Builder, OpenRegion
from ferrule.language.ir.facts import all_ops
from ferrule.language.ir.rewrite import with_regions
from ferrule.language.ir.types import TensorType
from ferrule.language.ir.walk import Work
from ferrule.specs import AddressSpace, DType, Int64, Uint8
from ferrule.specs.deferred import dataclass
from ferrule.specs.expr import INT64_MAX

_DONE = {
    "read": ("read", "read"),
    "write": ("written", "written"),
    "atomic": ("changed by an atomic", "changed"),
}


@dataclass(slots=True)
class Checked:
    """A function under construction: `head` has ops at its beginning, `finished` inner regions."""

    function: ops.Function
    places: Places
    prover: Prover
    memory: Memory
    extents: Extents
    b: Builder = field(default_factory=Builder)
    head: Builder = field(default_factory=Builder)
    begin: OpenRegion = field(default_factory=OpenRegion)
    finished: list[ops.Region] = field(default_factory=list)
    watched: dict[Access, Met] = field(default_factory=dict)
    shadows: dict[Hashable, ops.Value] = field(default_factory=dict)
    granule: int = 1
    clock: Clock | None = None
    counting: bool = False
    thread: tuple[ops.Value, ...] | None = None

    @classmethod
    def of(
        cls,
        program: ops.Program,
        function: ops.Function,
        places: Places,
        known: Launched,
        sizes: Sizes | None = None,
        views: Sequence[ops.Value] = (),
    ) -> Checked:
        """A function before instrumentation; `known` and `sizes` are facts about its launches.

        `views`: the parameters whose types do not determine the memory that they are in.
        """
        tensors = (p.type for p in function.params if isinstance(p.type, TensorType))
        extents = (dim for type_ in tensors for dim in type_.shape)
        prover = Prover.of(known, program.relations, sizes, extents)
        memory = Memory()
        checked = cls(function, places, prover, memory, Extents(memory, prover))
        memory.origins.update((view, Origin(view, inside=False)) for view in views)
        for op in function.facts.ops:
            checked.memory.take(op)
            if isinstance(op, ops.DynamicShared):
                checked.extents.dynamic[op.result] = op.offset
                memory.origins[op.result] = Origin(op.result, inside=False)
        return checked

    @property
    def in_kernel(self) -> bool:
        """Whether many threads run it."""
        return self.function.kind == "kernel"

    def build(self) -> ops.Region:
        """The function's body, after `region` has processed it."""
        body = self.finished.pop()
        return ops.Region((*self.begin.ops, *body.ops), body.yields)

    def start(self) -> None:
        """Begins a kernel: finds the accesses to watch, and makes shadows for them."""
        tensors = (op.result for op in self.function.facts.ops if isinstance(op, ops.SimpleOp))
        shared = [t for t in tensors if isinstance(t.type, TensorType) and t.type.is_shared]
        extra = {op.result for op in self.function.facts.each(ops.Shared) if op.extra}
        shared = [each for each in shared if self.memory.origin(each).root not in extra]
        pieces = {tensor: self.piece(tensor) for tensor in shared}
        every = [op for op in self.function.facts.ops if isinstance(op, ops.SimpleOp)]
        forms = Forms({op.result: op for op in every}, self.prover.launched.blocks)
        self.watched = watched(self.function, pieces, forms)
        if not self.watched:
            return
        self.granule = sizes.granule_of(self.function)
        with self.head.region(self.begin):
            self.clock = Clock.begin(self.head, self.function.facts.ops)
            for piece in dict.fromkeys(pieces[op.tensor] for op in self.watched):
                self.shadows[piece] = self.shadow(piece)

    def piece(self, tensor: ops.Value) -> Hashable:
        """The piece of shared memory that contains a tensor."""
        root = self.memory.origin(tensor).root
        return "dynamic" if root in self.extents.dynamic else root

    def shadow(self, piece: Hashable) -> ops.Value:
        """A shadow for a piece of shared memory."""
        b = self.head
        if isinstance(piece, ops.Value):
            known = reach(piece.tensor)
            room = known.behind if known is not None and known.behind else 1
            result = ops.Value(shadow_type(-(-room // self.granule)), "shadow")
            b.append(ops.Shared(result, lasts=True))
            return result
        assert self.extents.smem is not None, "a kernel with dynamic shared memory is told its size"
        b.append(ops.Shared(ops.Value(shadow_type(1), "shadow"), lasts=True))
        whole = TensorType(Uint8, (INT64_MAX,), (1,), 16, AddressSpace.smem)
        behind = b.view(b.dynamic_shared(whole), whole, (sizes.shadow_start(b, self.extents.smem),))
        return b.view(behind, shadow_type(None))

    # ---- traversal ----

    def region(self, region: ops.Region) -> Work:
        """Appends a region with checks to `finished`."""
        with self.b.region() as opened:
            for op in region.ops:
                if region is self.function.body and self.needs_clock(op):
                    self.count()
                match op:
                    case ops.If() | ops.For() | ops.While() | ops.Parallel():
                        yield self.structured(op)
                    case _:
                        self.simple(op)
        self.finished.append(opened.freeze(*region.yields))

    def count(self) -> None:
        """Begins to count the waits of the thread."""
        assert self.clock is not None, "a kernel begins with a clock if anything is watched"
        self.counting = True
        self.clock.start(self.b)

    def needs_clock(self, op: ops.Op) -> bool:
        """Whether an op is the first one in the body that waits, or is watched.

        The ops before it remain without effect, so that they can be vectorised.
        """
        if self.clock is None or self.counting:
            return False
        return any(
            isinstance(inner, ops.Synchronising | ops.Control) or inner in self.watched
            for inner in all_ops(ops.Region((op,)))
        )

    def structured(self, op: ops.RegionOp) -> Work:
        """An op with regions: facts that are found inside are dropped after it."""
        done: list[ops.Region] = []
        match op:
            case ops.If(_, condition, then, otherwise):
                for side, holds in ((then, True), (otherwise, False)):
                    with self.prover.under(condition, holds):
                        yield self.region(side)
                    done.append(self.finished.pop())
            case ops.While(test=test, body=body):
                with self.prover.scope():
                    yield self.region(test)
                    done.append(self.finished.pop())
                    with self.prover.under(test.yields[0], True):
                        yield self.region(body)
                    done.append(self.finished.pop())
            case ops.For(body=body) | ops.Parallel(body=body):
                with self.prover.scope():
                    self.indices(op)
                    yield self.region(body)
                done.append(self.finished.pop())
        self.b.append(with_regions(op, done))

    def indices(self, op: ops.For | ops.Parallel) -> None:
        """Records the index of a loop."""
        if isinstance(op, ops.For):
            self.prover.index(op)
            return
        for index, extent in zip(op.indices, op.extents, strict=True):
            self.prover.bounded(index, extent)

    def simple(self, op: ops.Op) -> None:
        """An op without regions, after the checks that it needs."""
        match op:
            case ops.Binary(_, "floordiv" | "mod", _, divisor) if _is_integer(divisor):
                self.division(op, divisor)
            case ops.Load(_, tensor, indices) | ops.Store(tensor, indices):
                self.access(op, tensor, indices)
            case ops.Atomic(_, _, tensor, indices):
                self.access(op, tensor, indices)
        self.b.append(op)
        self.prover.take(op)
        if self.clock is not None and self.counting:
            self.clock.passed(self.b, op)

    # ---- checks ----

    def running(self) -> tuple[ops.Value, ...]:
        """Block and thread, in a kernel."""
        if self.thread is None:
            registers: tuple[ops.Register, ...] = ("block_idx", "thread_idx") * self.in_kernel
            with self.head.region(self.begin):
                self.thread = tuple(
                    self.head.special(register, axis) for register in registers for axis in range(3)
                )
        return self.thread

    def check(self, condition: ops.Value, fault: Fault, *numbers: ops.Value) -> None:
        """A check with these numbers, and the thread that runs it."""
        self.b.append(ops.Check(condition, fault, (*numbers, *self.running()), inserted=True))

    def where(self, op: ops.Op) -> Where:
        """The place of an op."""
        at = self.places.at(op)
        return Where(self.function.name, self.in_kernel, at, self.places.stripped)

    def division(self, op: ops.Binary, divisor: ops.Value) -> None:
        """Checks a divisor that may be zero."""
        low, high = self.prover.range(divisor)
        if low > 0 or high < 0:
            return
        assert isinstance(divisor.type, DType)
        zero = self.b.constant(divisor.type, 0)
        self.check(self.b.compare("ne", divisor, zero), faults.division(self.where(op)))

    def access(self, op: Access, tensor: ops.Value, indices: tuple[ops.Value, ...]) -> None:
        """Checks an access to an element."""
        origin, where = self.memory.origin(tensor), self.where(op)
        for index in self.memory.indices(tensor, indices):
            self.index(index, where)
        if not origin.inside and not tensor.tensor.is_own:
            self.element(tensor, indices, origin.root, where)
        for view, align in origin.claims:
            self.alignment(view, align, where)
        if op in self.watched:
            self.race(op, tensor, indices, where)

    def index(self, index: Index, where: Where) -> None:
        """Checks an index along a dim."""
        b, dim = self.b, index.tensor.tensor.shape[index.axis]
        if dim == INT64_MAX:
            return
        low = self.prover.range(index.value)[0] >= 0
        if low and self.prover.is_below(index.value, dim):
            return
        at = b.cast(Int64, index.value)
        size = b.constant(Int64, dim) if isinstance(dim, int) else b.size(Int64, dim)
        below = self.prover.is_below(index.value, dim)
        sides = [] if below else [b.compare("lt", at, size)]
        negative = [] if low else [b.compare("ge", at, b.constant(Int64, 0))]
        viewed = self.memory.origin(index.tensor).root is not index.tensor
        name = f"a view of {index.tensor.hint}" if viewed else index.tensor.hint
        fault = faults.out_of_dim(where, name, index.axis)
        if negative and self.prover.may_wrap(index.value):
            # A separate check, because its message has a hint that does not apply to too large
            # indices.
            self.check(negative.pop(), faults.wrapped(where, name, index.axis), at, size)
        if sides or negative:
            each = [*sides, *negative]
            ok = each[0] if len(each) == 1 else b.binary("and", *each)
            self.check(ok, fault, at, size)
        self.prover.passed(index.value, dim)

    def element(
        self, tensor: ops.Value, indices: tuple[ops.Value, ...], root: ops.Value, where: Where
    ) -> None:
        """Checks an element that may be outside of its base tensor."""
        b, itemsize = self.b, tensor.tensor.dtype.itemsize
        found = (
            None if self.extents.is_inside(tensor, indices, root) else self.extents.base(b, root)
        )
        if found is None:
            return
        begin, size = found
        offset = b.binary("sub", sizes.address(b, tensor, indices), begin)
        last = b.binary("sub", size, b.constant(Int64, itemsize))
        low = b.compare("ge", offset, b.constant(Int64, 0))
        ok = b.binary("and", low, b.compare("le", offset, last))
        numbers = (self.divided(value, itemsize) for value in (offset, size))
        name = "dynamic shared memory" if root in self.extents.dynamic else self.name(root)
        fault = faults.out_of_memory(where, name, tensor.tensor.dtype.name)
        self.check(ok, fault, *numbers)

    def divided(self, offset: ops.Value, size: int) -> ops.Value:
        """A number of bytes as a number of elements, whose size is a power of two."""
        bits = self.b.constant(Int64, size.bit_length() - 1)
        return self.b.binary("shr", offset, bits)

    def name(self, root: ops.Value) -> str:
        """The name of a root."""
        shared = isinstance(root.type, TensorType) and root.type.is_shared
        return "shared memory" if shared else root.hint

    def alignment(self, view: ops.Value, align: int, where: Where) -> None:
        """Checks the start address of a view, which must be a multiple of `align`."""
        if view.tensor.is_own:
            return
        b = self.b
        past = b.binary("and", sizes.address(b, view), b.constant(Int64, align - 1))
        ok = b.compare("eq", past, b.constant(Int64, 0))
        self.check(ok, faults.misaligned(where, view.hint, align), past)

    # ---- races ----

    def race(
        self, op: Access, tensor: ops.Value, indices: tuple[ops.Value, ...], where: Where
    ) -> None:
        """Checks an access to shared memory that may conflict with others."""
        b, clock = self.b, self.clock
        assert clock is not None, "a kernel begins with a clock if anything is watched"
        with ExitStack() as inside:
            region = inside.enter_context(b.region()) if clock.partly else None
            self.meet(op, tensor, indices, where)
        if region is not None:
            b.if_(clock.is_watched(b), region.freeze(), ops.Region(), ())

    def meet(
        self, op: Access, tensor: ops.Value, indices: tuple[ops.Value, ...], where: Where
    ) -> None:
        """Looks up the users of an element, and records the running thread."""
        b, clock, kind, itemsize = self.b, self.clock, kind_of(op), tensor.tensor.dtype.itemsize
        found = self.extents.base(b, self.memory.origin(tensor).root)
        assert clock is not None and found is not None, "shared memory has a size"
        offset = b.binary("sub", sizes.address(b, tensor, indices), found[0])
        number, first = (self.divided(offset, size) for size in (itemsize, self.granule))
        shadow, stamp, me = self.shadows[self.piece(tensor)], clock.stamp(b), clock.name(b)
        for step in range(itemsize // self.granule):
            granule = b.binary("add", first, b.constant(Int64, step)) if step else first
            watch = Watch(b, clock, shadow, granule, stamp, me)
            for other, accesses in self.watched[op].items():
                met = watch.meet(other)
                there = [self.places.at(access) for access in accesses]
                words = (_DONE[kind][0], _DONE[other][1], faults.lines(there))
                fault = faults.race(where, self.called(tensor), *words)
                self.check(b.unary("not", met.clashes), fault, number, met.other)
            watch.record(kind)

    def called(self, tensor: ops.Value) -> str:
        """The name of a tensor's piece of shared memory."""
        return "dynamic shared memory" if self.piece(tensor) == "dynamic" else "shared memory"


def _is_integer(value: ops.Value) -> bool:
    return isinstance(value.type, DType) and value.type.is_integer
