"""The reference interpreter of the kernel IR: runs a program, op by op, straight from its meaning.

What the IR leaves open is chosen by the caller: the order of the blocks and threads of a launch
and of the iterations of a `Parallel`.  What it leaves undefined (a coordinate outside of a tensor,
a size that overflows and has no fault) is an error here, an AssertionError.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from typing import Any, Final, TypeAlias, TypeGuard, assert_never, get_args

import numpy as np

from ferrule.compiler.artefacts import Fault
from ferrule.language.ir import ops
from ferrule.language.ir.facts import all_ops
from ferrule.language.ir.operation import Effect
from ferrule.language.ir.rules import divergence
from ferrule.specs import DEVICE_CODES, Dim, DType, Sym, evaluate, symbols_of
from interpreter import atomics, boxes, declared, foreign, scalars, warpgroups
from interpreter.mbarriers import copy_bytes
from interpreter.memory import Memory, OutOfBounds
from interpreter.scalars import Scalar
from interpreter.stops import Endless, Stopped, Undefined
from interpreter.teams import Block, Run, Team, Thread, waits_for

Order: TypeAlias = Callable[[Iterable[tuple[int, ...]]], Iterable[tuple[int, ...]]]
"""The order in which coordinates come to their turn, from that in which they count up."""

Values: TypeAlias = "dict[ops.Value, Any]"

Place: TypeAlias = "tuple[list[int], list[int], int]"
"""The shape and strides of a tensor, and the bytes of its elements."""

ScalarOp: TypeAlias = "ops.Constant | ops.Size | ops.Arithmetic"

_SCALAR: Final = frozenset((ops.Constant, ops.Size, *get_args(ops.Arithmetic)))


@dataclass(frozen=True, slots=True)
class Plan:
    """How to run a scalar op again: most ops that run have run before, in another thread or
    iteration, and looking up what an op is takes longer than to compute it."""

    result: ops.Value
    compute: Callable[[Values], Scalar]
    is_alike: bool


HOST = Thread({}, Block(Memory.undefined(0)))
"""What host code has for a thread."""


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
        machine.region(program.host.body, values, HOST)
    return "".join(machine.printed)


@dataclass
class Machine:
    """A program that is running."""

    program: ops.Program
    symbols: Mapping[Sym, int]
    order: Order
    fuel: int
    dims: dict[Dim, int] = field(default_factory=dict)
    places: dict[ops.Value, Place] = field(default_factory=dict)
    printed: list[str] = field(default_factory=list)
    returned: list[Any] = field(default_factory=list)
    waiting: dict[int, bool] = field(default_factory=dict)
    plans: dict[int, Plan] = field(default_factory=dict)
    """By the id of a scalar op of the program, which lives as long as the machine."""
    functions: Mapping[str, Callable[..., Any]] = field(default_factory=dict)
    """What calls of functions reach, by their names."""

    def dim(self, dim: Dim) -> int:
        """The value of a size that must have one."""
        if type(dim) is int:
            return dim
        if dim not in self.dims:
            try:
                self.dims[dim] = evaluate(dim, self.symbols)
            except (OverflowError, ZeroDivisionError) as error:
                raise Undefined(f"a size without a fault: {error}") from error
        return self.dims[dim]

    def forget(self) -> None:
        """Forgets what was computed of symbols: one has got a value."""
        self.dims.clear()
        self.places.clear()

    def region(self, region: ops.Region, values: Values, thread: Thread) -> list[Any]:
        """Runs the ops of a region; gives what it yields."""
        for op in region.ops:
            self.fuel -= 1
            if self.fuel < 0:
                raise Endless
            self.op(op, values, thread)
        return [values[value] for value in region.yields]

    def op(self, op: ops.Op, values: Values, thread: Thread) -> None:
        """Runs one op, which does no more than it declares."""
        if (plan := self.plans.get(id(op))) is not None:
            values[plan.result] = plan.compute(values)
            if plan.is_alike and thread.is_compared:
                declared.same_for_all(op, values, thread.block.uniform)
            return
        if op.nests:
            self.run_op(op, values, thread)
            return
        declared.begins(op)
        try:
            self.run_op(op, values, thread)
        except Stopped:
            if not isinstance(op, ops.Launch):  # an op of its kernel has said so
                declared.seen("fails")
            raise
        finally:
            declared.ends()
        if _is_alike(op) and thread.is_compared:
            declared.same_for_all(op, values, thread.block.uniform)

    def run_op(self, op: ops.Op, values: Values, thread: Thread) -> None:
        """Runs one op."""
        if is_scalar(op):
            values[op.result] = self.planned(op).compute(values)
            return
        match op:
            case ops.Load() | ops.Store():
                self.element(op, values)
            case ops.Check(condition, fault, found):
                if not values[condition]:
                    raise Stopped(fault, [values[value] for value in found])
            case ops.Print(text, found):
                declared.seen("shows")
                declared.seen("blocks")
                self.printed.append(scalars.c_format(text, [values[value] for value in found]))
            case ops.Launch():
                self.launch(op, values)
            case ops.If():
                self.if_(op, values, thread)
            case ops.For():
                self.for_(op, values, thread)
            case ops.While():
                self.while_(op, values, thread)
            case ops.Parallel():
                self.parallel(op, values, thread)
            case ops.View(result, tensor, indices):
                offset = self.offset(tensor, indices, values) if indices else 0
                values[result] = values[tensor].at(offset)
            case ops.Fragment() | ops.Shared() | ops.DynamicShared() | ops.Table():
                values[op.result] = self.room(op, thread.block)
            case ops.Special(result, register, axis):
                values[result] = thread.registers[register][axis]
            case (
                ops.Atomic()
                | ops.AsyncCopy()
                | ops.MBarrier()
                | ops.BulkCopy()
                | ops.BulkStore()
                | ops.TensorCopy()
                | ops.PeerLoad()
                | ops.PeerStore()
                | ops.BarrierArrive()
                | ops.MapCopy()
                | ops.MapEdit()
            ):
                self.shared(op, values, thread)
            case ops.Fence() | ops.Control():
                declared.seen("orders")
                thread.copies.run(op, values)
            case ops.Alloc() | ops.Shrink() | ops.Define():
                self.sized(op, values)
            case ops.Item() | ops.Field() | ops.Peek() | ops.IsInstance():
                values[op.result] = foreign.looked_up(op, values)
            case ops.Call() | ops.CallBody() | ops.Receive() | ops.Received():
                self.outgoing(op, values)
            case ops.Return(found):
                declared.seen("ends")
                self.returned = [values[value] for value in found]
            case ops.Text() | ops.CallDevice() | ops.Address() | ops.Pointer():
                values[op.result] = self.host_value(op, values)
            case _:
                raise NotImplementedError(f"the interpreter does not know {type(op).__name__}")

    def planned(self, op: ScalarOp) -> Plan:
        """How to run a scalar op, now and again."""
        plan = Plan(op.result, self.scalar(op, dtype_of(op.result)), _is_alike(op))
        if not isinstance(op, ops.Size):  # that can fail, which is held against what it declares
            self.plans[id(op)] = plan
        return plan

    def element(self, op: ops.Load | ops.Store, values: Values) -> None:
        """Reads or writes an element of a tensor."""
        offset = self.offset(op.tensor, op.indices, values)
        memory, dtype = values[op.tensor], op.tensor.tensor.dtype
        if isinstance(op, ops.Load):
            values[op.result] = memory.read(dtype, offset)
        else:
            memory.write(dtype, offset, values[op.value])

    def host_value(
        self, op: ops.Text | ops.CallDevice | ops.Address | ops.Pointer, values: Values
    ) -> Any:
        """A text, a device or an address, which is the memory that is there."""
        match op:
            case ops.Text(_, data):
                return data
            case ops.CallDevice():
                return DEVICE_CODES["cpu"]
            case ops.Address(_, operand):
                return values[operand]
            case ops.Pointer(_, address):
                return values[address]

    def shared(
        self,
        op: ops.Atomic
        | ops.AsyncCopy
        | ops.MBarrier
        | ops.BulkCopy
        | ops.BulkStore
        | ops.TensorCopy
        | ops.PeerLoad
        | ops.PeerStore
        | ops.BarrierArrive
        | ops.MapCopy
        | ops.MapEdit,
        values: Values,
        thread: Thread,
    ) -> None:
        """Runs an op on memory that threads share."""
        match op:
            case ops.Atomic():
                self.atomic(op, values)
            case ops.AsyncCopy():
                declared.seen("orders")
                thread.copies.run(op, values)
            case ops.MBarrier() | ops.BulkCopy():
                declared.seen("orders")
                if isinstance(op, ops.MBarrier) and op.kind == "copies_arrive":
                    thread.copies.finish()
                thread.block.barriers.run(op, values)
            case ops.PeerLoad(result, source):
                values[result] = values[source].read(source.tensor.dtype, 0)
            case ops.PeerStore(target, value):
                values[target].write(target.tensor.dtype, 0, values[value])
            case ops.BarrierArrive(number, count):
                declared.seen("orders")
                thread.block.arrive(values[number], values[count])
            case ops.MapCopy() | ops.MapEdit():
                declared.seen("orders")
                boxes.run_map(op, values)
            case ops.BulkStore(target, source, size):
                declared.seen("orders")
                copy_bytes(values[source], values[target], values[size])
            case ops.TensorCopy(tensor=tensor):
                shape, strides, _ = self.place(tensor)
                boxes.run(op, values, shape, strides, thread.block.barriers)

    def room(
        self, op: ops.Fragment | ops.Shared | ops.DynamicShared | ops.Table, block: Block
    ) -> Memory:
        """The memory of a tensor of the thread or of its block, or of constants."""
        match op:
            case ops.Table(_, data):
                return Memory(np.frombuffer(data, np.uint8))
            case ops.Fragment(result):
                declared.seen("makes")
                return self.fragment(result)
            case ops.Shared(result):
                if result not in block.static:
                    room = self.fragment(result)
                    # Threads may read what nobody wrote of extra memory, and do not use it.
                    block.static[result] = Memory(room.bytes) if op.extra else room
                return block.static[result]
            case ops.DynamicShared(_, offset):
                return block.dynamic.at(offset)

    def atomic(self, op: ops.Atomic, values: Values) -> None:
        """Changes an element; the result is what it was."""
        dtype, memory = op.tensor.tensor.dtype, values[op.tensor]
        offset = self.offset(op.tensor, op.indices, values)
        old = values[op.result] = memory.read(dtype, offset)
        compare = None if op.compare is None else values[op.compare]
        new = atomics.updated(op.op, dtype, old, values[op.value], compare)
        memory.write(dtype, offset, new)

    def scalar(self, op: ScalarOp, dtype: DType) -> Callable[[Values], Scalar]:
        """What computes an op that depends on its operands and the symbols alone."""
        match op:
            case ops.Binary(_, name, lhs, rhs):
                binary = scalars.operator_of(name, dtype)
                return lambda values: binary(values[lhs], values[rhs])
            case ops.Constant(_, value):
                constant = scalars.number(dtype, value)
                return lambda values: constant
            case ops.Size(_, dim, fault):
                return lambda values: self.size(dim, dtype, fault)
            case ops.Unary(_, name, operand):
                return lambda values: scalars.unary(name, dtype, values[operand])
            case ops.Fma(_, x, y, z):
                return lambda values: scalars.fma(dtype, values[x], values[y], values[z])
            case ops.Compare(_, name, lhs, rhs):
                return lambda values: scalars.compare(name, values[lhs], values[rhs])
            case ops.Cast(_, operand, saturate):
                cast = partial(scalars.cast, dtype_of(operand), dtype, saturate=saturate)
                return lambda values: cast(values[operand])
            case ops.Bitcast(_, operand):
                source = dtype_of(operand)
                return lambda values: scalars.bitcast(source, dtype, values[operand])
            case ops.Select(_, condition, on_true, on_false):
                return lambda values: values[on_true if values[condition] else on_false]
        assert_never(op)

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

    def sized(self, op: ops.Alloc | ops.Shrink | ops.Define, values: Values) -> None:
        """What gives symbols their values."""
        if isinstance(op, ops.Define):
            declared.seen("writes")
            self.define(op, {op.symbol: values[op.value]})
            return
        for effect in ("makes", "asks"):
            declared.seen(effect)
        declared.owned("objects", 1, op)
        self.make(op, values)

    def define(self, op: ops.Op, found: Mapping[Sym, int]) -> None:
        """Gives symbols their values."""
        for symbol in found:
            declared.defined(symbol, op)
        self.symbols = {**self.symbols, **found}
        self.forget()

    def make(self, op: ops.Alloc | ops.Shrink, values: Values) -> None:
        """New memory or a part of one's own, and the values of the symbols that are its sizes."""
        type_, operands = op.result.tensor, op.sizes if isinstance(op, ops.Alloc) else (op.size,)
        sizes = [values[value] for value in operands]
        named = zip(type_.shape, sizes, strict=False)
        made = {dim: size for dim, size in named if dim in self.program.made}
        self.define(op, made)
        if isinstance(op, ops.Shrink):
            declared.seen("reads")
            values[op.result] = values[op.tensor].at(0)
        else:
            declared.seen("blocks")
            values[op.result] = Memory.undefined(math.prod(sizes) * type_.dtype.itemsize)

    def outgoing(
        self, op: ops.Call | ops.CallBody | ops.Receive | ops.Received, values: Values
    ) -> None:
        """Calls a function, or reads what one returned."""
        values[op.result], made = foreign.run(op, values, self.functions)
        if made:
            self.define(op, made)

    def offset(self, tensor: ops.Value, indices: Sequence[ops.Value], values: Values) -> int:
        """How many bytes an element is from the first."""
        shape, strides, itemsize = self.places.get(tensor) or self.place(tensor)
        coordinates = [values[index] for index in indices]
        steps = 0
        for at, size, stride in zip(coordinates, shape, strides, strict=True):
            if not 0 <= at < size:
                raise OutOfBounds(f"%{tensor.hint}{coordinates}, but its shape is {shape}")
            steps += at * stride
        return steps * itemsize

    def place(self, tensor: ops.Value) -> Place:
        """The shape, the strides and the bytes of an element of a tensor."""
        dims = (tensor.tensor.shape, tensor.tensor.strides)
        shape, strides = ([self.dim(dim) for dim in each] for each in dims)
        self.places[tensor] = shape, strides, tensor.tensor.dtype.itemsize
        return self.places[tensor]

    def parallel(self, op: ops.Parallel, values: Values, thread: Thread) -> None:
        """A region for all coordinates."""
        declared.seen("blocks", op)
        declared.seen("calls", op)
        for coordinates in self.order(product(*(range(values[each]) for each in op.extents))):
            values.update(zip(op.indices, coordinates, strict=True))
            self.region(op.body, values, thread)

    def if_(self, op: ops.If, values: Values, thread: Thread) -> None:
        """One of two regions."""
        taken = op.then if values[op.condition] else op.otherwise
        values.update(zip(op.results, self.region(taken, values, thread), strict=True))

    def for_(self, op: ops.For, values: Values, thread: Thread) -> None:
        """A loop over Python's range; a step of 0 has no iterations."""
        declared.seen("blocks", op)
        start, stop, step = (values[value] for value in (op.start, op.stop, op.step))
        carried = [values[value] for value in op.initial]
        for index in range(start, stop, step) if step else ():
            values[op.index] = index
            values.update(zip(op.carried, carried, strict=True))
            carried = self.region(op.body, values, thread)
        values.update(zip(op.results, carried, strict=True))

    def while_(self, op: ops.While, values: Values, thread: Thread) -> None:
        """A loop with a test before each iteration."""
        declared.seen("blocks", op)
        carried = [values[value] for value in op.initial]
        while True:
            values.update(zip(op.carried, carried, strict=True))
            if not self.region(op.test, values, thread)[0]:
                break
            carried = self.region(op.body, values, thread)
        values.update(zip(op.results, carried, strict=True))

    def launch(self, op: ops.Launch, values: Values) -> None:
        """Runs a kernel for each thread of each block, each with values of its own."""
        declared.seen("blocks")
        declared.seen("calls")
        kernel = self.program.kernel(op.kernel)
        grid, block = (tuple(values[v] for v in sizes) for sizes in (op.grid, op.block))
        given = dict(zip(kernel.params, (values[value] for value in op.arguments), strict=True))
        dynamic = 0 if op.smem is None else values[op.smem]
        whole = math.prod(block) % ops.WARP_SIZE == 0
        multiplies = any(isinstance(op, ops.Mma | ops.LoadMatrix) for op in all_ops(kernel.body))
        for block_idx in self.order(product(*map(range, grid))):
            if multiplies and not whole:
                raise Stopped(divergence.partial_warps(kernel.name), [math.prod(block)])
            shared = Block(Memory.undefined(dynamic))
            runs: dict[int, Run] = {}
            for at in self.order(product(*map(range, block))):
                known = {"block_idx": block_idx, "thread_idx": at}
                alone = {"cluster_idx": block_idx, "cluster_dim": grid}
                alone |= {"block_in_cluster_idx": (0, 0, 0), "block_in_cluster_dim": (1, 1, 1)}
                known = {**known, **alone, "block_dim": block, "grid_dim": grid}
                thread = Thread(known, shared)
                if self.waits(kernel.body):
                    number = at[0] + block[0] * (at[1] + block[1] * at[2])
                    runs[number] = self.walk(kernel.body, dict(given), thread)
                else:
                    self.region(kernel.body, dict(given), thread)
            if runs:
                Team(kernel.name, block_idx, block, runs, shared.arrived).run(list(runs))

    # ---- threads that wait ----

    def waits(self, region: ops.Region) -> bool:
        """Whether a region has an op that waits for other threads."""
        if id(region) not in self.waiting:
            found = any(map(_waits, all_ops(region)))
            self.waiting[id(region)] = found
        return self.waiting[id(region)]

    def is_walked(self, op: ops.Op) -> bool:
        """Whether an op waits for other threads, or has one that does."""
        if id(op) not in self.waiting:
            self.waiting[id(op)] = _waits(op) or any(map(self.waits, op.regions))
        return self.waiting[id(op)]

    def walk(self, region: ops.Region, values: Values, thread: Thread) -> Run:
        """Runs a region as `region` does, and stops at each op that waits."""
        for op in region.ops:
            self.fuel -= 1
            if self.fuel < 0:
                raise Endless
            if not self.is_walked(op):
                self.op(op, values, thread)
                continue
            if _waits(op):
                for effect in _meeting(op):
                    declared.seen(effect, op)
            match op:
                case ops.Barrier() | ops.WarpBarrier():
                    yield waits_for(op, values)
                case ops.Control("cluster_wait"):
                    yield waits_for(ops.Barrier(), values)
                case ops.Shuffle() | ops.Vote() | ops.Match() | ops.InlinePtx():
                    values[op.result] = yield waits_for(op, values)
                case (
                    ops.Mma(d=target)
                    | ops.LoadMatrix(target=target)
                    | ops.StoreMatrix(target=target)
                ):
                    found = yield waits_for(op, values, thread.number % ops.WARP_SIZE)
                    with declared.running(op):
                        _write_all(values[target], target.tensor.dtype, found)
                case ops.WarpgroupMma(target):
                    parts = yield waits_for(op, values)
                    with declared.running(op):
                        found = warpgroups.product(op, thread.number, values, parts)
                        _write_all(values[target], target.tensor.dtype, found)
                case ops.MBarrierTry(result, barrier, phase, location):
                    wait = ops.MBarrierWait(barrier, phase, location)
                    yield wait, (thread.block.barriers.at(values[barrier]), values[phase])
                    values[result] = True
                case ops.MBarrierWait(barrier, phase):
                    yield op, (thread.block.barriers.at(values[barrier]), values[phase])
                case ops.If():
                    taken = op.then if values[op.condition] else op.otherwise
                    found = yield from self.walk(taken, values, thread)
                    values.update(zip(op.results, found, strict=True))
                case ops.For():
                    yield from self.walk_for(op, values, thread)
                case ops.While():
                    yield from self.walk_while(op, values, thread)
                case _:
                    self.op(op, values, thread)
        return [values[value] for value in region.yields]

    def walk_for(self, op: ops.For, values: Values, thread: Thread) -> Run:
        """As `for_`."""
        start, stop, step = (values[value] for value in (op.start, op.stop, op.step))
        carried = [values[value] for value in op.initial]
        for index in range(start, stop, step) if step else ():
            values[op.index] = index
            values.update(zip(op.carried, carried, strict=True))
            carried = yield from self.walk(op.body, values, thread)
        values.update(zip(op.results, carried, strict=True))
        return []

    def walk_while(self, op: ops.While, values: Values, thread: Thread) -> Run:
        """As `while_`."""
        carried = [values[value] for value in op.initial]
        while True:
            values.update(zip(op.carried, carried, strict=True))
            (goes_on,) = yield from self.walk(op.test, values, thread)
            if not goes_on:
                break
            carried = yield from self.walk(op.body, values, thread)
        values.update(zip(op.results, carried, strict=True))
        return []


def is_scalar(op: ops.Op) -> TypeGuard[ScalarOp]:
    """Whether `scalar` knows an op, as it does most of a program: a `match` tests one class after
    the other, this tests all of these at once."""
    return type(op) in _SCALAR


def _is_alike(op: ops.Op) -> bool:
    """Whether an op gives all threads with the same operands the same."""
    return op.is_uniform and not op.effects


def _write_all(memory: Memory, dtype: DType, found: Sequence[Scalar]) -> None:
    for position, value in enumerate(found):
        memory.write(dtype, position * dtype.itemsize, value)


def _waits(op: ops.Op) -> bool:
    """Whether an op waits for other threads; a cluster is one block."""
    in_cluster = isinstance(op, ops.Control) and op.kind == "cluster_wait"
    return in_cluster or isinstance(op, ops.Synchronising | ops.MBarrierTry)


def _meeting(op: ops.Op) -> tuple[Effect, ...]:
    """The effects of a wait itself."""
    match op:
        case ops.MBarrierTry():
            return ("reads", "orders")
        case ops.MBarrierWait():
            return ("reads", "waits", "orders")
        case ops.Control():
            return ("waits", "orders")
        case ops.InlinePtx(text=text):
            return foreign.effects_of(text)
    return ("waits",)


def dtype_of(value: ops.Value) -> DType:
    """The dtype of a scalar."""
    assert isinstance(value.type, DType), f"%{value.hint} is no scalar"
    return value.type
