"""Lowers the body of one function of a program: every op of the IR to LLVM instructions.

`FunctionLowering` holds what the ops of one function need: the LLVM value of each IR value, the
symbols, the coordinates of the running thread.  Some integers are also known in 64 bits (`wide`):
loop counters and what a kernel's thread loop proved not to wrap.  Addresses use those, so that
LLVM sees a plain counter.

Sizes that need no check are computed once, in the entry block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from llvmlite import ir

from ferrule.compiler import halves
from ferrule.compiler.artefacts import MAX_FAULT_VALUES, Fault
from ferrule.compiler.sizes import Sizes
from ferrule.language.codegen import (
    approximate,
    arithmetic,
    casts,
    devicemaths,
    fragments,
    fused,
    hints,
    loops,
)
from ferrule.language.codegen.alignment import Multiples
from ferrule.language.codegen.device_lines import LineInfo
from ferrule.language.codegen.device_output import DeviceOutput
from ferrule.language.codegen.errors import CodegenError
from ferrule.language.codegen.scalars import constant, dtype_of, memory_type, value_type
from ferrule.language.ir import ops
from ferrule.language.ir.types import HandleType
from ferrule.language.ir.walk import Work, drive, operands_of
from ferrule.runtime.llvm.emitter import LIKELY, Emitter
from ferrule.runtime.llvm.layouts import I1, I8, I32, I64, PTR
from ferrule.specs import Boolean, Dim, DType, Int32, Sym, TFloat32, symbols_of

Coordinates = dict[tuple[ops.Register, int], ir.Value]
"""The i64 value of each register of a kernel's thread."""

HostOp = ops.Parallel | ops.Launch | ops.Alloc | ops.CallDevice | ops.Outgoing | ops.ObjectOp
HostOps = Callable[["FunctionLowering", HostOp], "Work | None"]
"""Lowers the ops that only a host function has."""


class Watch(Protocol):
    """Emits what looks after the loops of a function while they run."""

    def round(self, loop: ops.For) -> int | None:
        """After how many iterations it looks; None for never."""

    def look(self, lowering: FunctionLowering) -> None:
        """Emits a look, between two rounds."""

    def count(self, lowering: FunctionLowering, loop: ops.While) -> None:
        """Emits what is to be done at the end of an iteration."""


ThreadOp = ops.Cooperation | ops.CooperationEffect
ThreadOps = Callable[["FunctionLowering", ThreadOp], None]
"""Lowers the ops by which threads work together, and gives their results their values."""


@dataclass(slots=True)
class Faults:
    """The faults of a program, numbered from 1 in the order of the code."""

    known: dict[Fault, int] = field(default_factory=dict)

    def number(self, fault: Fault) -> int:
        return self.known.setdefault(fault, len(self.known) + 1)


@dataclass(slots=True)
class FunctionLowering:
    """The state of one function under construction."""

    emitter: Emitter
    faults: Faults
    symbols: Mapping[Sym, ir.Value] = field(default_factory=dict)
    host_op: HostOps | None = None
    watch: Watch | None = None
    thread_op: ThreadOps | None = None
    leave: Callable[[ir.Value], None] | None = None
    """How the function ends with a status, where it has more to do than to return it."""
    fault_values: ir.Value | None = None
    coordinates: Coordinates = field(default_factory=dict)
    values: dict[ops.Value, ir.Value] = field(default_factory=dict)
    wide: dict[ops.Value, ir.Value] = field(default_factory=dict)
    group: hints.Group | None = None
    """Of the loads and stores, where they run in parallel."""
    multiples: Multiples = field(default_factory=Multiples)
    objects: dict[ops.Value, ir.Value] = field(default_factory=dict)
    """The handles of tensors that the function has made."""
    owned: frozenset[ops.Value] = frozenset()
    """Tensors with a handle, those that branches choose and loops carry among them."""
    made: dict[Dim, ir.Value] = field(default_factory=dict)
    """Where the values of the symbols are that get them in the function."""
    results: ir.Value | None = None
    """Where the parts of the result go."""
    approximates: bool = False
    """Whether what is marked as fast is approximated, as on a GPU."""
    libdevice: bool = False
    """Whether functions are those of NVIDIA's library, on a GPU."""
    unwritten: Set[ops.Value] = frozenset()
    """The tensors in whose memory nobody writes while the function runs."""
    lines: LineInfo | None = None
    """The lines of the source, for a GPU."""
    tensor_maps: dict[tuple[ops.Value, ops.Boxes], ir.Value] = field(default_factory=dict)
    """Where the maps of tensors are, on a GPU."""
    device_output: DeviceOutput | None = None
    """How a kernel on a GPU prints and fails."""
    _sizes: Sizes | None = None

    @property
    def b(self) -> ir.IRBuilder:
        """llvmlite's builder at the insertion point."""
        return self.emitter.builder

    # ---- values ----

    def define_integer(self, value: ops.Value, wide: ir.Value, *, fits: bool = True) -> None:
        """Gives an integer its value, known in 64 bits; `fits`: it is in the range of its dtype."""
        kind = value_type(dtype_of(value))
        narrow = wide if kind == I64 else casts.truncate(self.b, wide, kind, value.hint)
        self.values[value] = narrow
        if fits:
            self.wide[value] = wide

    def as_i64(self, value: ops.Value) -> ir.Value:
        """An integer or bool in 64 bits."""
        if value in self.wide:
            return self.wide[value]
        return casts.widen_integer(self.b, dtype_of(value), self.values[value], I64)

    def dim(self, dim: Dim) -> ir.Value:
        """The i64 value of a size that needs no check, computed in the entry block."""
        if isinstance(dim, int):
            return ir.Constant(I64, dim)
        if self.made and not self.made.keys().isdisjoint(symbols_of(dim)):
            return self.new_sizes().lower(dim).value
        if self._sizes is None:
            self._sizes = self.new_sizes()
        with self.b.goto_entry_block():
            return self._sizes.lower(dim).value

    def new_sizes(self) -> Sizes:
        """A lowering of sizes that has emitted none yet."""
        ranges = {symbol: Int32.range for symbol in self.symbols if symbol.width == 32}
        return Sizes(self.emitter, self.symbols, ranges)

    @contextmanager
    def scope(self) -> Iterator[None]:
        """What is defined inside is forgotten after it."""
        values, wide, coordinates = dict(self.values), dict(self.wide), dict(self.coordinates)
        yield
        self.values, self.wide, self.coordinates = values, wide, coordinates

    # ---- regions and ops ----

    def region(self, region: ops.Region) -> Work:
        """Emits the ops of a region; nested regions are yielded."""
        for op in region.ops:
            work = self.op(op)
            if work is not None:
                yield work

    def op(self, op: ops.Op) -> Work | None:
        """Emits one op, or gives back the work of one that has regions."""
        if self.lines is not None:
            self.lines.at(op)
        match op:
            case ops.If():
                return self.if_(op)
            case ops.For():
                return self.for_(op)
            case ops.While():
                return self.while_(op)
            case ops.Parallel() | ops.Launch() | ops.Alloc() | ops.Call():
                assert self.host_op is not None, "only a host function has these"
                return self.host_op(self, op)
            case ops.CallBody() | ops.Receive() | ops.Received():
                assert self.host_op is not None, "only a host function has these"
                return self.host_op(self, op)
            case ops.CallDevice():
                assert self.host_op is not None, "only a host function has these"
                return self.host_op(self, op)
            case ops.Item() | ops.Field() | ops.Peek() | ops.IsInstance():
                assert self.host_op is not None, "only a host function has these"
                return self.host_op(self, op)
            case ops.Store(tensor, indices, value):
                self.store(tensor, indices, value)
            case ops.Return(values):
                self.return_(values)
            case ops.Print(format_, values):
                self.print_(format_, values)
            case ops.Check(condition, fault, values):
                stored = tuple(self.as_i64(value) for value in values)
                self.check(self.values[condition], fault, stored)
            case ops.Barrier() | ops.WarpBarrier() | ops.Fence():
                self.together(op)
            case ops.Mma() | ops.LoadMatrix() | ops.AsyncCopy() | ops.Control():
                self.together(op)
            case ops.MBarrier() | ops.MBarrierWait() | ops.BulkCopy():
                self.together(op)
            case ops.TensorCopy() | ops.BulkStore() | ops.StoreMatrix() | ops.BarrierArrive():
                self.together(op)
            case ops.PeerStore():
                self.together(op)
            case _:
                self.simple(op)
        return None

    def together(self, op: ThreadOp) -> None:
        """Emits an op by which threads work together."""
        if self.thread_op is None:
            name = type(op).__name__
            raise CodegenError(f"{name}: threads do not work together on this target yet")
        self.thread_op(self, op)

    def simple(self, op: ops.SimpleOp) -> None:
        """Emits an op with one result, unless its value is known already."""
        result = op.result
        self.multiples.note(op)
        if result in self.values:
            return
        match op:
            case ops.Size(_, dim, fault):
                wide = self.dim(dim) if fault is None else self.checked_size(dtype_of(result), op)
                self.define_integer(result, wide)
            case ops.Special(_, register, axis):
                self.define_integer(result, self.coordinates[register, axis])
            case ops.View(_, tensor, indices):
                self.values[result] = self.start(tensor, indices)
            case ops.Alloc() | ops.Call() | ops.CallDevice():
                raise TypeError("only a host function makes tensors and calls")
            case ops.CallBody() | ops.Receive() | ops.Received():
                raise TypeError("only a host function calls and receives")
            case ops.Item() | ops.Field() | ops.Peek() | ops.IsInstance():
                raise TypeError("only a host function reads containers and objects")
            case ops.Text(_, data):
                self.values[result] = self.emitter.bytes_constant(data)
            case ops.Address(_, operand):
                handle = self.objects.get(operand, self.values[operand])
                self.values[result] = self.b.ptrtoint(handle, I64)
            case ops.Fragment():
                self.values[result] = fragments.room(self.emitter, result)
            case ops.Constant() if isinstance(result.type, HandleType):
                self.values[result] = self.emitter.null()
            case ops.Shared() | ops.DynamicShared() | ops.Atomic():
                self.together(op)
            case ops.Shuffle() | ops.Vote() | ops.Match() | ops.MBarrierTry() | ops.PeerLoad():
                self.together(op)
            case _:
                self.values[result] = self.computed(op, dtype_of(result))

    def computed(
        self,
        op: ops.Constant
        | ops.Unary
        | ops.Binary
        | ops.Fma
        | ops.Compare
        | ops.Cast
        | ops.Bitcast
        | ops.Select
        | ops.Load,
        dtype: DType,
    ) -> ir.Value:
        """The value of an op that depends on its operands alone."""
        e, values = self.emitter, self.values
        match op:
            case ops.Constant(_, value):
                return constant(dtype, value)
            case ops.Unary() | ops.Binary() if self.approximates and approximate.keeps(op):
                given = [values[operand] for operand in operands_of(op)]
                return approximate.emit(e, op.op, dtype, given)
            case ops.Unary() | ops.Binary() if self.libdevice and devicemaths.keeps(op):
                given = [values[operand] for operand in operands_of(op)]
                return devicemaths.emit(e, op.op, dtype, given)
            case ops.Unary(_, name, operand):
                return arithmetic.unary(e, name, dtype, values[operand])
            case ops.Binary(_, name, lhs, rhs):
                return arithmetic.binary(e, name, dtype, values[lhs], values[rhs])
            case ops.Fma(_, x, y, z):
                operands = [values[operand] for operand in (x, y, z)]
                return fused.fma(e, dtype, operands, self.inlined)
            case ops.Compare(_, name, lhs, rhs):
                return arithmetic.compare(e, name, dtype_of(lhs), values[lhs], values[rhs])
            case ops.Cast(result, operand):
                return self.cast(result, operand)
            case ops.Bitcast(_, operand):
                return casts.bitcast(e, dtype_of(operand), dtype, values[operand])
            case ops.Select(_, condition, on_true, on_false):
                return self.b.select(values[condition], values[on_true], values[on_false])
            case ops.Load(_, tensor, indices):
                return self.load(tensor, indices)

    def inlined(self, region: ops.Region, values: dict[ops.Value, ir.Value]) -> ir.Value:
        """The value that a region of simple ops yields, of these values."""
        other = FunctionLowering(self.emitter, self.faults, values=values)
        drive(other.region(region))
        return other.values[region.yields[0]]

    def cast(self, result: ops.Value, operand: ops.Value) -> ir.Value:
        """A cast; one that widens an integer takes the 64 bits that are known."""
        source, target = dtype_of(operand), dtype_of(result)
        if operand in self.wide and target.is_integer and target.bits == 64:
            return self.wide[operand]
        return casts.cast(self.emitter, source, target, self.values[operand])

    # ---- memory ----

    def load(self, tensor: ops.Value, indices: Sequence[ops.Value]) -> ir.Value:
        """An element of a tensor."""
        address, align, kind = self.element(tensor, indices)
        loaded = self.b.load(address, name="load", align=align, typ=kind)
        self.mark(loaded, tensor)
        if tensor in self.unwritten:
            loaded.set_metadata("invariant.load", self.emitter.module.add_metadata([]))
        if tensor.tensor.dtype is Boolean:
            return self.b.icmp_unsigned("!=", loaded, ir.Constant(I8, 0))
        if tensor.tensor.dtype is TFloat32:
            return halves.narrow(self.emitter, TFloat32, loaded)
        return loaded

    def store(self, tensor: ops.Value, indices: Sequence[ops.Value], value: ops.Value) -> None:
        """Writes an element of a tensor."""
        address, align, kind = self.element(tensor, indices)
        stored = self.values[value]
        if stored.type == I1:
            stored = self.b.zext(stored, kind)
        self.mark(self.b.store(stored, address, align=align), tensor)

    def mark(self, access: ir.Instruction, tensor: ops.Value) -> None:
        """Says that a load or store runs in parallel, if it does.

        Threads that run one after the other have their own tensors at one address.
        """
        if self.group is not None and not tensor.tensor.is_own:
            hints.mark_access(access, self.group)

    def element(
        self, tensor: ops.Value, indices: Sequence[ops.Value]
    ) -> tuple[ir.Value, int, ir.Type]:
        """The address of an element, what it is aligned to, and its type in memory."""
        type_ = tensor.tensor
        kind = memory_type(type_.dtype)
        return self.address(tensor, indices, kind), self.multiples.address(tensor, indices), kind

    def start(self, tensor: ops.Value, indices: Sequence[ops.Value]) -> ir.Value:
        """Where a view begins; its elements may be of any dtype."""
        if not indices:
            return self.values[tensor]
        return self.address(tensor, indices, ir.ArrayType(I8, tensor.tensor.dtype.itemsize))

    def address(self, tensor: ops.Value, indices: Sequence[ops.Value], kind: ir.Type) -> ir.Value:
        """The address of an element; `kind` is as large as one."""
        offset: ir.Value | None = None
        for index, stride in zip(indices, tensor.tensor.strides, strict=True):
            step = self.as_i64(index) if stride == 1 else self.scaled(index, stride)
            offset = step if offset is None else self.b.add(offset, step)
        data = self.values[tensor]
        return data if offset is None else self.b.gep(data, [offset], source_etype=kind)

    def scaled(self, index: ops.Value, stride: Dim) -> ir.Value:
        """An index times the stride of its dim."""
        return self.b.mul(self.as_i64(index), self.dim(stride))

    def print_(self, format_: str, values: Sequence[ops.Value]) -> None:
        """One call of the C library, which writes at once and in order."""
        e = self.emitter
        shown = [self.values[value] for value in values]
        if self.device_output is not None:
            self.device_output.print_(e, format_, shown)
            return
        bools = any(value.type is Boolean for value in values)
        texts = (e.cstring("True"), e.cstring("False")) if bools else ()
        shown = [self.b.select(v, *texts) if v.type == I1 else v for v in shown]
        e.call("dprintf", [ir.Constant(I32, 1), e.cstring(format_), *shown])

    def return_(self, values: Sequence[ops.Value]) -> None:
        """Leaves the parts of the result in their slots."""
        assert self.results is not None, "the program has no result"
        for position, value in enumerate(values):
            part = self.values[value]
            stored = self.b.zext(part, I8) if part.type == I1 else part
            self.emitter.store(stored, self.emitter.index(self.results, I64, position))

    # ---- faults ----

    def check(self, ok: ir.Value, fault: Fault, values: Sequence[ir.Value]) -> None:
        """Ends the function with the fault's number if `ok` is false."""
        if isinstance(ok, ir.Constant) and ok.constant:
            return
        if self.device_output is not None:
            self.device_output.check(self.emitter, ok, fault, values)
            return
        if self.fault_values is None:
            raise CodegenError("a check in a kernel is not supported on this target")
        passed, failed = self.emitter.block("passed"), self.emitter.block("failed")
        self.emitter.cond_branch(ok, passed, failed, LIKELY)
        self.emitter.at(failed)
        for position, value in enumerate(values[:MAX_FAULT_VALUES]):
            slot = self.emitter.index(self.fault_values, I64, position)
            self.emitter.store(value, slot)
        self.end(ir.Constant(I32, self.faults.number(fault)))
        self.emitter.at(passed)

    def end(self, status: ir.Value) -> None:
        """Ends the function with this status."""
        (self.leave or self.emitter.ret)(status)

    def checked_size(self, dtype: DType, op: ops.Size) -> ir.Value:
        """A size of which every step is checked; its fault's values are those of its symbols."""
        assert op.fault is not None
        size = self.new_sizes().lower(op.dim)
        ok = ir.Constant(I1, 1) if size.undefined is None else self.b.not_(size.undefined)
        if dtype.bits < 64:
            back = self.b.sext(self.b.trunc(size.value, value_type(dtype)), I64)
            ok = self.b.and_(ok, self.b.icmp_signed("==", back, size.value))
        symbols = dict.fromkeys(symbols_of(op.dim))
        self.check(ok, op.fault, tuple(self.symbols[symbol] for symbol in symbols))
        return size.value

    # ---- control flow ----

    def if_(self, op: ops.If) -> Work:
        """A branch, and a phi for each result; no branch where a guard is known to hold."""
        known = self.values[op.condition]
        if isinstance(known, ir.Constant):
            taken = op.then if known.constant else op.otherwise
            yield self.region(taken)
            self.pass_on(taken.yields, op.results)
            return
        then, end = self.emitter.block("then"), self.emitter.block("endif")
        has_else = bool(op.otherwise.ops) or bool(op.results)
        otherwise = self.emitter.block("else") if has_else else end
        self.emitter.cond_branch(self.values[op.condition], then, otherwise)
        incoming = []
        for block, region in ((then, op.then), (otherwise, op.otherwise)):
            if block is end:
                continue
            self.emitter.at(block)
            yield self.region(region)
            incoming.append((self.b.block, region.yields))
            self.emitter.branch(end)
        self.emitter.at(end)
        self.merge(op.results, incoming)

    def merge(
        self,
        results: Sequence[ops.Value],
        incoming: Sequence[tuple[ir.Block, Sequence[ops.Value]]],
    ) -> None:
        """A phi for each result, of what each way brings; of a tensor that is owned two."""
        for position, result in enumerate(results):
            phi = self.b.phi(_type_of(result), name=result.hint)
            for block, values in incoming:
                phi.add_incoming(self.values[values[position]], block)
            self.values[result] = phi
        for position, result in enumerate(results):
            if result in self.owned:
                phi = self.b.phi(PTR, name=f"{result.hint}.object")
                for block, values in incoming:
                    phi.add_incoming(self.object_of(values[position]), block)
                self.objects[result] = phi

    def object_of(self, tensor: ops.Value) -> ir.Value:
        """The object of a tensor that the function owns; null of one that nobody reads."""
        return self.objects.get(tensor, self.emitter.null())

    def pass_on(self, values: Sequence[ops.Value], results: Sequence[ops.Value]) -> None:
        """Gives results the values that they are."""
        for value, result in zip(values, results, strict=True):
            self.values[result] = self.values[value]
            if value in self.objects:
                self.objects[result] = self.objects[value]

    def for_(self, op: ops.For) -> Work:
        """A counted loop."""
        b, dtype = self.b, dtype_of(op.index)
        bounds = (self.as_i64(value) for value in (op.start, op.stop, op.step))
        limits = loops.python_range(b, dtype, *bounds)
        size = None if self.watch is None else self.watch.round(op)
        if size is None:
            yield self.counted(op, limits, op.initial)
            self.pass_on(op.carried, op.results)
        else:
            yield self.rounds(op, limits, size)

    def rounds(self, op: ops.For, limits: loops.Range, size: int) -> Work:
        """A counted loop as a loop over rounds of `size` iterations, with a look after each."""
        b, watch = self.b, self.watch
        assert watch is not None
        head, body, end = (self.emitter.block(f"round.{part}") for part in ("head", "body", "end"))
        before = b.block
        self.emitter.branch(head)
        self.emitter.at(head)
        counter = b.phi(I64, name="round")
        counter.add_incoming(limits.first, before)
        self.merge(op.results, [(before, op.initial)])
        self.emitter.cond_branch(limits.more(b, counter), body, end)
        self.emitter.at(body)
        piece = limits.piece(b, counter, size)
        yield self.counted(op, piece, op.results)
        watch.look(self)
        counter.add_incoming(piece.end, b.block)
        self.close_loop(op.results, op.carried, head, end)

    def counted(self, op: ops.For, limits: loops.Range, initial: Sequence[ops.Value]) -> Work:
        """A loop with these iterations; behind it, what it carries has its last values."""
        b = self.b
        head, body, end = (self.emitter.block(f"for.{part}") for part in ("head", "body", "end"))
        before = b.block
        self.emitter.branch(head)
        self.emitter.at(head)
        counter = b.phi(I64, name=op.index.hint)
        counter.add_incoming(limits.first, before)
        self.merge(op.carried, [(before, initial)])
        self.emitter.cond_branch(limits.more(b, counter), body, end)
        self.emitter.at(body)
        self.define_integer(op.index, limits.index(b, counter))
        self.multiples.note_index(op)
        yield self.region(op.body)
        counter.add_incoming(limits.next(b, counter), b.block)
        wishes = hints.possible(op, self.iterations(op), alone=self.host_op is not None)
        self.close_loop(op.carried, op.body.yields, head, end, wishes)

    def iterations(self, op: ops.For) -> int | None:
        """How often a loop runs, where that is a constant."""
        bounds = [self.values[value] for value in (op.start, op.stop, op.step)]
        if not all(isinstance(bound, ir.Constant) for bound in bounds):
            return None
        start, stop, step = (bound.constant for bound in bounds)
        return len(range(start, stop, step)) if step else 0

    def while_(self, op: ops.While) -> Work:
        """A loop with a test before each iteration."""
        head, body, end = (self.emitter.block(f"while.{part}") for part in ("head", "body", "end"))
        before = self.b.block
        self.emitter.branch(head)
        self.emitter.at(head)
        self.merge(op.carried, [(before, op.initial)])
        yield self.region(op.test)
        self.emitter.cond_branch(self.values[op.test.yields[0]], body, end)
        self.emitter.at(body)
        yield self.region(op.body)
        if self.watch is not None:
            self.watch.count(self, op)
        self.close_loop(op.carried, op.body.yields, head, end)
        self.pass_on(op.carried, op.results)

    def close_loop(
        self,
        carried: Sequence[ops.Value],
        yields: Sequence[ops.Value],
        head: ir.Block,
        end: ir.Block,
        wishes: ops.LoopHints | None = None,
    ) -> None:
        """The way back to the head with the next values, then on behind the loop."""
        for value, following in zip(carried, yields, strict=True):
            self.values[value].add_incoming(self.values[following], self.b.block)
            if value in self.owned:
                self.objects[value].add_incoming(self.object_of(following), self.b.block)
        latch = self.b.branch(head)
        if wishes is not None:
            hints.mark_wishes(self.emitter, latch, wishes)
        self.emitter.at(end)


def _type_of(value: ops.Value) -> ir.Type:
    """The LLVM type of a value: tensors and handles are addresses."""
    return value_type(value.type) if isinstance(value.type, DType) else PTR
