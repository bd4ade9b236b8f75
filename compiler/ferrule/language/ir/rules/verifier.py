"""Checks a program against the rules of the kernel IR.

A program that breaks one is the result of a bug in ferrule, never of a user's mistake: `verify`
raises `VerifierError`, with the rule and the op.  The rules:

values
* a value is defined once: by a parameter, a region argument or as a result;
* it is used after that, in the same region or one inside it;
* a size (`Size`, dims and strides of tensor types) uses only the program's symbols.

functions
* kernels have unique names, kind "kernel", and no Launch or Parallel; a Size in a kernel has no
  fault; the host function has kind "host" and no Special;
* inside a Parallel there is no Launch and no Parallel;
* the bodies of functions and of Parallel yield nothing;
* an Alloc, a Shrink, a Define, a Call, a Text and a Return are in the host function, outside
  Parallel;
* there is a Return if and only if the program has a result: it is the last op of the host function,
  and its values are the parts of the result;
* a Launch names a kernel, its arguments have the types of the kernel's parameters, its sizes are
  Int64, its stream is the handle of a stream, its shared memory an Int64; its cluster is empty or
  three Int64, its priority an Int32, its events are pointers.

scalars
* operands and results have the dtypes in the op's docstring: one dtype for Binary, Compare, the two
  sides of a Select, the bounds of a For; a Boolean for conditions;
* `add sub mul max min neg` take integers and floats; `floordiv mod shl shr popc clz` integers; `and
  or xor not` integers and bool; comparisons any; all other functions floats;
* an Fma that is a rest is of Float32;
* a Cast is between scalars, and saturates only to a float of fewer than 16 bits; a Bitcast is
  between dtypes of one size, not bool;
* a Constant is a number that its dtype holds, or a null handle, 0;
* a Size is an Int32 or Int64, a Special an Int32; the axis is 0, 1 or 2;
* the values of a fault are integers or bools, at most as many as a fault may have;
* a Print has a value for each conversion of its format: an Int64 for `%lld`, a Uint64 for `%llu`,
  `%llx`, `%llo`, a Float64 for `%f`, `%e`, `%g`, `%a`, a Boolean for `%s`, an Int32 and the handle
  of bytes for `%.*s`.

tensors
* there is one integer index for each dim, and one stride; the element has the tensor's dtype;
* an Alloc is a compact row-major tensor with an Int64 for each dim; a made symbol is a symbol of
  the program; a Shrink has the type of its tensor but for the first size, an Int64; a Define gives
  a made symbol an Int64;
* a Call has a name or a handle, and values of the number and types that the kinds of its arguments
  require;
* a Text is a handle of bytes; an Address is an Int64, of a handle or a tensor in memory; a
  CallDevice is an Int64 in the host function;
* a View is a tensor, of a tensor of its dtype; without indices also of one of another dtype, or of
  a pointer; it is in registers (`rmem`) or in shared memory (`smem`) if that tensor is;
* a Fragment is a tensor in registers of constant sizes and strides, none negative; no Launch takes
  a tensor in registers or shared memory, and no op inside a Parallel uses one in registers;
* a Table has the bytes of a compact row-major tensor of constant sizes, not in registers or shared
  memory; only a Load uses it.

threads
* Shared, DynamicShared, Barrier, WarpBarrier, Fence, Shuffle, Vote, Match, Atomic are in kernels;
* a Shared and a DynamicShared are tensors in shared memory; a Shared has constant sizes and
  strides, none negative; the offset of a DynamicShared is not negative;
* the number and count of a Barrier and the lane and clamp of a Shuffle are Int32, masks Uint32;
* a Shuffle has the type of its value, a scalar; the predicate of a Vote is a Boolean, its result
  one too, or a Uint32 for `ballot`; a Match has a value of 32 or 64 bits, and its result is a
  Uint32;
* an Atomic is of a tensor that is not in registers, with one dtype for element, value, comparand
  and result; `add min max exch cas` take integers of 32 and 64 bits and floats of 16, 32 and 64,
  `and or xor` the integers, `inc dec` Uint32; only `cas` has a comparand.

tensor cores and copies
* an Mma, LoadMatrix, AsyncCopy and Control are in kernels; masks are Uint32; all tensors of these
  are compact and of one dim; a fragment is a tensor in registers, of constant size;
* an Mma is of float16 to float32 or float16, of bfloat16 or tfloat32 to float32, of float8_e4m3fn
  and float8_e5m2, also mixed, to float32 or float16, or of int8 and uint8, also mixed, to int32;
  A has 2 or 4 words of 32 bits, B half as many, C and D 4 elements;
* a LoadMatrix goes from shared memory to a fragment of the same dtype, of 1, 2 or 4 bytes, with 1,
  2 or 4 words; transposed only with elements of 2 bytes;
* an AsyncCopy goes from global to shared memory of the same dtype, 4, 8 or 16 bytes, cached
  `global` only of 16, its condition a Boolean; the amount of a Control is not negative, and 0 but
  for `cp_async_wait_group`, `wgmma_wait_group` and `setmaxregister_…`;
* an MBarrier, an MBarrierWait and a BulkCopy have a barrier that is an int64 in shared memory; all
  but an `arrive` and a `copies_arrive` have an amount, phases, amounts and sizes are Int32; a
  BulkCopy goes from global to shared memory of the same dtype, a BulkStore in the other direction;
  only an `arrive` has a peer, an Int32; an MBarrierTry is a Boolean, of such a barrier and an
  Int32;
* a TensorCopy is of a tensor in global memory, with the dims of its boxes and an Int32 coordinate
  for each, none of a `prefetch_map`; a `load` and a `store` have shared memory of the same dtype,
  compact and of one dim, a `load` a barrier too, and perhaps a mask, an Int32;
* a StoreMatrix goes from a fragment to shared memory, with the rules of a LoadMatrix; the number
  and count of a BarrierArrive are Int32;
* a WarpgroupMma has fragments D and perhaps A, and else matrices in shared memory whose layout it
  gives, of dtypes that `tensor_cores` lists; D has 4 to 128 elements, a multiple of 4, A in
  registers half as many as a row; `accumulate` is a Boolean;
* an InlinePtx has scalars, and a constraint for each of them;
* a PeerLoad and a PeerStore are of shared memory and a value of its dtype; the peer is an Int32.

objects
* an Item, a Field, a Peek and an IsInstance are in the host function, outside Parallel, and read
  handles; the index of an Item is an Int64;
* the result of an Item and a Field is a handle of any value, that of a Peek has the type of the
  part, that of an IsInstance is a Boolean.

control flow
* the two sides of an If yield as many values as it has results, of the same types;
* initial, carried, next and resulting values of a loop agree in types and number; the test of a
  While yields one Boolean; the indices and extents of a Parallel are Int64, one extent for each
  index.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import field

from ferrule.language.ir import ops
from ferrule.language.ir.rules import arithmetic as arithmetic_rules
from ferrule.language.ir.rules import effects as effect_rules
from ferrule.language.ir.rules import tensors as tensor_rules
from ferrule.language.ir.rules.arithmetic import holds
from ferrule.language.ir.scalars import INTEGERS
from ferrule.language.ir.types import HandleType, TensorType, Type
from ferrule.language.ir.walk import Work, drive, is_plain, symbols_read
from ferrule.specs import Boolean, Dim, DType, Int32, Int64, symbols_of
from ferrule.specs.deferred import dataclass
from ferrule.specs.dtypes import Kind


class VerifierError(AssertionError):
    """The program breaks a rule of the kernel IR: a bug in ferrule."""


def verify(program: ops.Program) -> None:
    """Raises VerifierError if the program breaks a rule."""
    if len({kernel.name for kernel in program.kernels}) != len(program.kernels):
        raise VerifierError("two kernels have one name")
    defined: set[ops.Value] = set()
    for function in (*program.kernels, program.host):
        wanted = "host" if function is program.host else "kernel"
        if function.kind != wanted:
            raise VerifierError(f"@{function.name} is a {function.kind}, not a {wanted}")
        checker = _Checker(program, function, defined)
        checker.define(function.params)
        drive(checker.body(function.body))
    returns = any(isinstance(op, ops.Return) for op in program.host.body.ops[-1:])
    if returns != (program.result is not None):
        raise VerifierError(f"@{program.name} has a result or a Return, but not both")
    if not program.made <= program.symbols.keys():
        raise VerifierError(f"@{program.name} makes a symbol that it does not have")
    if program.made:
        _check_made(program)


def _check_made(program: ops.Program) -> None:
    """Every made symbol that something reads has an op that gives it its value: the variable that
    stands for it is 0 before."""
    given = {symbol for op in program.host.facts.ops for symbol in op.symbols}
    for function in (*program.kernels, program.host):
        for symbol in program.made & symbols_read(function) - given:
            name = program.symbols[symbol]
            raise VerifierError(f"@{function.name} reads {name}, and no op gives it a value")


@dataclass(slots=True)
class _Checker:
    """Checks one function.  `visible` are the values that may be used now."""

    program: ops.Program
    function: ops.Function
    defined: set[ops.Value]
    visible: set[ops.Value] = field(default_factory=set)
    tables: set[ops.Value] = field(default_factory=set)
    parallel: bool = False
    op: ops.Op | None = None

    # ---- helpers ----

    @property
    def in_kernel(self) -> bool:
        return self.function.kind == "kernel"

    def require(self, holds: bool, rule: str) -> None:
        if not holds:
            at = "" if self.op is None else f": {describe(self.op)}"
            raise VerifierError(f"in {self.function.kind} @{self.function.name}: {rule}{at}")

    def place(self, op: ops.Op) -> None:
        name, place = type(op).__name__, op.facts.place
        if place == "host":
            host = self.function.kind == "host" and not self.parallel
            self.require(host, f"{name} is in the host function, outside Parallel")
        self.require(
            place != "kernel" or self.in_kernel, f"only a kernel has threads, and so {name}"
        )

    def define(self, values: Iterable[ops.Value]) -> None:
        for value in values:
            if value in self.defined:
                self.require(False, f"%{value.hint} is defined twice")
            self.defined.add(value)
            self.visible.add(value)
            if isinstance(value.type, TensorType):
                self.tensor_type(value.type)

    def use(self, values: Iterable[ops.Value]) -> None:
        for value in values:
            if value not in self.visible:
                self.require(False, f"%{value.hint} is used where it is not defined")
            if self.parallel and isinstance(value.type, TensorType) and value.type.is_own:
                self.require(False, "a Parallel has no tensors in registers")

    def types(self, values: Iterable[ops.Value], wanted: Sequence[Type], what: str) -> None:
        found = [value.type for value in values]
        self.require(found == list(wanted), f"{what} have the wrong types or number")

    def scalar(self, value: ops.Value, kinds: Sequence[Kind], what: str) -> None:
        if not (isinstance(value.type, DType) and value.type.kind in kinds):
            self.require(False, f"{what} must be of kind {' or '.join(kinds)}")

    def dims(self, dims: Iterable[Dim]) -> None:
        for dim in dims:
            unknown = [str(s) for s in symbols_of(dim) if s not in self.program.symbols]
            self.require(not unknown, f"no symbol of the program: {', '.join(unknown)}")

    def tensor_type(self, type_: TensorType) -> None:
        self.require(len(type_.shape) == len(type_.strides), "a tensor needs a stride for each dim")
        self.require(type_.align >= 1, "a tensor is aligned to at least 1")
        self.dims((*type_.shape, *type_.strides))

    # ---- regions ----

    def body(self, region: ops.Region) -> Work:
        """A region that yields nothing."""
        yield self.region(region, (), "the values that a body yields")

    def region(self, region: ops.Region, yields: Sequence[Type], what: str) -> Work:
        """A region, with the types of its yields; its values are not visible after it."""
        owner, outer = self.op, set(self.visible)
        for op in region.ops:
            self.op = op
            self.use(op.operands)
            if is_plain(op):
                self.simple(op)
                self.define((op.result,))
                continue
            self.place(op)
            if not self.tables.isdisjoint(op.operands):
                self.require(False, "only a Load uses a Table")
            if isinstance(op, ops.RegionOp):
                yield self.structured(op)
            elif isinstance(op, ops.SimpleOp):
                self.simple(op)
                self.define([op.result])
                if isinstance(op, ops.Table):
                    self.tables.add(op.result)
            elif isinstance(op, effect_rules.Effect):
                effect_rules.effect(self, op, self.program)
            else:
                self.cooperates(op)
        self.op = owner
        self.use(region.yields)
        self.types(region.yields, yields, what)
        self.visible = outer

    def structured(self, op: ops.RegionOp) -> Work:
        match op:
            case ops.If():
                yield self.if_(op)
            case ops.For():
                yield self.for_(op)
            case ops.While():
                yield self.while_(op)
            case ops.Parallel():
                yield self.parallel_(op)
        self.op = op
        if not isinstance(op, ops.Parallel):
            self.define(op.results)

    def if_(self, op: ops.If) -> Work:
        self.types([op.condition], [Boolean], "conditions")
        results = [result.type for result in op.results]
        for side in (op.then, op.otherwise):
            yield self.region(side, results, "the values that a side yields")
            self.op = op

    def for_(self, op: ops.For) -> Work:
        self.scalar(op.index, INTEGERS, "the index of a loop")
        self.types([op.start, op.stop, op.step], [op.index.type] * 3, "the bounds of a loop")
        carried = self.loop(op)
        with_index = (op.index, *op.carried)
        self.define(with_index)
        yield self.region(op.body, carried, "the values that a loop yields")
        self.visible -= set(with_index)

    def while_(self, op: ops.While) -> Work:
        carried = self.loop(op)
        self.define(op.carried)
        yield self.region(op.test, [Boolean], "the values that a test yields")
        yield self.region(op.body, carried, "the values that a loop yields")
        self.visible -= set(op.carried)

    def loop(self, op: ops.For | ops.While) -> list[Type]:
        """The types that a loop carries."""
        carried = [value.type for value in op.carried]
        self.types(op.initial, carried, "the initial values of a loop")
        self.types(op.results, carried, "the results of a loop")
        return carried

    def parallel_(self, op: ops.Parallel) -> Work:
        self.types(op.extents, [Int64] * len(op.extents), "the extents of a Parallel")
        self.types(op.indices, [Int64] * len(op.extents), "the indices of a Parallel")
        self.define(op.indices)
        self.parallel = True
        yield self.body(op.body)
        self.parallel = False
        self.visible -= set(op.indices)

    # ---- simple ops ----

    def simple(self, op: ops.SimpleOp) -> None:
        result = op.result
        match op:
            case ops.Constant(_, value):
                self.require(holds(result.type, value), "the dtype does not hold the number")
            case ops.Size(_, dim, fault):
                self.require(result.type in (Int32, Int64), "a size is an Int32 or Int64")
                self.require(fault is None or self.function.kind == "host", "a kernel has no fault")
                self.dims([dim])
            case ops.Special(_, _, axis):
                self.require(0 <= axis < len(ops.AXES), "there are three axes")
                self.types([result], [Int32], "coordinates")
            case ops.Text():
                self.types([result], [HandleType("bytes")], "texts")
            case ops.Address(_, operand):
                self.address(result, operand)
            case ops.CallDevice():
                self.types([result], [Int64], "devices")
            case _ if isinstance(op, ops.Outgoing | ops.ObjectOp):
                self.receives(op)
            case _ if isinstance(op, tensor_rules.TensorOp):
                tensor_rules.simple(self, op)
            case _ if isinstance(op, ops.Cooperation):
                from ferrule.language.ir.rules import threads  # see `cooperates`

                threads.simple(self, op)
            case _:
                arithmetic_rules.simple(self, op)

    def cooperates(self, op: ops.CooperationEffect) -> None:
        # A simple kernel has no such ops, and these rules import what they are about: a first
        # compilation is done before they would be read.
        if isinstance(op, ops.BlockEffect):
            from ferrule.language.ir.rules import threads

            threads.effect(self, op)
        else:
            from ferrule.language.ir.rules import arch

            arch.effect(self, op)

    def receives(self, op: ops.Outgoing | ops.ObjectOp) -> None:
        from ferrule.language.ir.rules import calls  # for host functions that call others

        match op:
            case ops.Call():
                calls.call(self, op)
            case _ if isinstance(op, ops.Outgoing):
                calls.receive(self, op, self.program.made)
            case _:
                calls.simple(self, op)

    def address(self, result: ops.Value, operand: ops.Value) -> None:
        own = isinstance(operand.type, TensorType) and operand.type.is_own
        known = isinstance(operand.type, (HandleType, TensorType)) and not own
        self.require(known, "an address is of a handle or a tensor in memory")
        self.types([result], [Int64], "addresses")


def describe(op: ops.Op) -> str:
    """An op in one line: its kind, and the names and types of its operands."""
    operands = ", ".join(f"%{value.hint}: {_name(value.type)}" for value in op.operands)
    name = getattr(op, "op", "")
    return " ".join(part for part in (type(op).__name__, name, f"({operands})") if part)


def _name(type_: Type) -> str:
    match type_:
        case TensorType(dtype):
            return f"tensor of {dtype.name}"
        case HandleType(what):
            return what
    return type_.name
