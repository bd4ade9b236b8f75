"""The state of one function of a program during its lowering to LLVM.

`FunctionLowering` holds the LLVM value of each IR value, the symbols, the coordinates of the
running thread, and the callbacks of the target.  Some integers are also known in 64 bits (`wide`):
loop counters, and values that a kernel's thread loop proved not to wrap.  Addresses use those, so
that LLVM sees a plain counter.

Sizes that need no check are computed once, in the entry block.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import field
from typing import TYPE_CHECKING, Any, Literal, Protocol

from llvmlite import ir

from ferrule.compiler.artefacts import MAX_FAULT_VALUES, Fault
from ferrule.compiler.host.flow import failed, number_of
from ferrule.compiler.sizes import Sizes
from ferrule.compiler.wrapper.hot import PREDICATES
from ferrule.language.codegen.errors import CodegenError
from ferrule.language.codegen.facts.alignment import Multiples
from ferrule.language.codegen.functions import hints
from ferrule.language.codegen.values import casts
from ferrule.language.codegen.values.scalars import dtype_of, value_type
from ferrule.language.ir import ops
from ferrule.language.ir.walk import Work
from ferrule.runtime.llvm.emitter import LIKELY, Emitter
from ferrule.runtime.llvm.layouts import I1, I32, I64
from ferrule.specs import Dim, DType, Sym, symbols_of
from ferrule.specs.conditions import Comparison
from ferrule.specs.deferred import dataclass

if TYPE_CHECKING:
    from ferrule.language.codegen.facts.offsets import Reach
    from ferrule.specs.implied import Product

Coordinates = dict[tuple[ops.Register, int], ir.Value]
"""The i64 value of each register of a kernel's thread."""

HostOps = Callable[["FunctionLowering", ops.HostOp], "Work | None"]
"""Lowers the ops that only host functions have."""


class Watch(Protocol):
    """Emits checks for signals in the loops of a function."""

    def round(self, loop: ops.For) -> int | None:
        """The number of iterations between checks; None for never."""

    def look(self, lowering: FunctionLowering) -> None:
        """Emits a check, between two rounds."""

    def count(self, lowering: FunctionLowering, loop: ops.While) -> None:
        """Emits the code for the end of an iteration."""


LoopKind = Literal["kernel", "launch", "threads", "strips", "masks", "elements", "loop"]
"""What a loop in LLVM is of: the threads of a block, the elements of a tensor, a loop of the
program, or one with a loop over threads, in strips of them, in it, or over threads that end it at
different times.  The code of a kernel and its launch have loops in them."""


class Lines(Protocol):
    """Emits source locations, and takes what is decided about loops."""

    def enter(self, function: ops.Function) -> None:
        """The code that follows is the beginning of this function."""

    def at(self, op: ops.Op) -> None:
        """The code that follows belongs to this op."""

    def inside(
        self, loop: ops.Op | ops.Region, kind: LoopKind, name: str = ""
    ) -> AbstractContextManager[None]:
        """The code in the block is a loop; `name` is that of the kernel."""

    def say(self, words: str) -> None:
        """This was decided about the innermost loop that is being emitted."""

    def along(self, body: ops.Region, known: Mapping[ops.Value, int] | None) -> None:
        """The innermost loop, over threads, goes along rows of them: `known` is how much values
        grow there.  None if it is unrolled, and its accesses are near."""

    def where(self, op: ops.Op) -> str:
        """The place of an op, as the end of a sentence."""

    def finish(self) -> None:
        """The module is complete."""


class Output(Protocol):
    """Emits the target's code for printing and failing."""

    def print_(self, emitter: Emitter, format_: str, values: Sequence[ir.Value]) -> None:
        """Prints with a format of `ops.Print`."""

    def check(
        self, emitter: Emitter, ok: ir.Value, fault: Fault, values: Sequence[ir.Value]
    ) -> None:
        """Fails if `ok` is false."""


class Maths(Protocol):
    """Functions of numbers that a target has."""

    def keeps(self, op: ops.Unary | ops.Binary | ops.Cast) -> bool:
        """Whether the target has the function, or the conversion of a narrow float, of an op."""

    def emit(
        self,
        emitter: Emitter,
        op: ops.Unary | ops.Binary | ops.Cast,
        dtype: DType,
        given: Sequence[ir.Value],
    ) -> ir.Value:
        """The value of such an op."""


ThreadOp = ops.Cooperation | ops.CooperationEffect
ThreadOps = Callable[["FunctionLowering", ThreadOp], None]
"""Lowers the ops of cooperating threads, and defines their results."""
EmitOp = Callable[["FunctionLowering", Any], "ir.Value | None"]
"""Emits an op of one class; returns the value of its result, if it has one."""


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
    """Ends the function with a status, if it must do more than return it."""
    fault_values: ir.Value | None = None
    coordinates: Coordinates = field(default_factory=dict)
    values: dict[ops.Value, ir.Value] = field(default_factory=dict)
    wide: dict[ops.Value, ir.Value] = field(default_factory=dict)
    group: hints.Group | None = None
    """The access group of loads and stores that run in parallel."""
    multiples: Multiples = field(default_factory=Multiples)
    objects: dict[ops.Value, ir.Value] = field(default_factory=dict)
    """The handles of tensors that the function owns."""
    owned: frozenset[ops.Value] = frozenset()
    """Tensors with a handle, including results of branches and loop-carried ones."""
    made: dict[Dim, ir.Value] = field(default_factory=dict)
    """The addresses of symbols that get their values in the function."""
    results: ir.Value | None = None
    """The address for the parts of the result."""
    maths: Maths | None = None
    """The functions of a GPU target."""
    unwritten: Set[ops.Value] = frozenset()
    """The tensors whose memory is not written while the function runs."""
    lines: Lines | None = None
    """The source lines, where they are wanted."""
    tensor_maps: dict[tuple[ops.Value, ops.Boxes], ir.Value] = field(default_factory=dict)
    """The addresses of tensor maps, on a GPU."""
    narrow: bool = False
    """Whether offsets of elements are computed in 32 bits where they are known to fit: a GPU
    multiplies 64 bits in several instructions."""
    measured: Container[Reach] = ()
    """The layouts that each launch measures, whose offsets fit 32 bits."""
    limits: Sequence[Product] = ()
    """Of products of sizes, which the call has checked."""
    sizes: Set[Sym] = frozenset()
    """Symbols that are sizes of tensors, which are never negative."""
    least: dict[ops.Value, int] = field(default_factory=dict)
    """Signed integers that are never negative, with a lower bound of each."""
    numbers: Mapping[ops.Value, Sequence[int]] = field(default_factory=dict)
    """Parameters of a function of phases, with what each may be."""
    constant_space: int = 0
    """The address space of constant tables."""
    spaces: tuple[int, int] = (0, 0)
    """The address spaces of global and of shared memory."""
    output: Output | None = None
    """Printing and failing in a kernel on a GPU."""
    masks: dict[tuple[str, str, int], ir.Value] = field(default_factory=dict)
    """Constants that LLVM does not know, by function, type and value."""
    unmasked: dict[int, ir.Value] = field(default_factory=dict)
    """The values of indices without masks that LLVM knows, by identity."""
    chained: Mapping[ops.Value, bool] = field(default_factory=dict)
    """Integers in registers of vectors, see `chains`."""
    compared: dict[ops.Value, ops.Compare] = field(default_factory=dict)
    """The comparisons of choices among these."""
    chains: dict[ops.Value, ir.Value] = field(default_factory=dict)
    """What is known of these."""
    _sizes: Sizes | None = None

    @property
    def b(self) -> ir.IRBuilder:
        """llvmlite's builder at the insertion point."""
        return self.emitter.builder

    def assume_bounds(self, facts: Iterable[Comparison] = ()) -> None:
        """Tell LLVM what the call has checked of the symbols, at the entry: their bounds and
        divisors, and `facts`."""
        for symbol, value in self.symbols.items():
            for predicate, bound in ((">=", symbol.min), ("<=", symbol.max)):
                if bound is not None:
                    limit = ir.Constant(I64, bound)
                    self.b.assume(self.b.icmp_signed(predicate, value, limit))
            if zeros := (symbol.divisibility & -symbol.divisibility) - 1:
                low = self.b.and_(value, ir.Constant(I64, zeros))
                self.b.assume(self.b.icmp_signed("==", low, ir.Constant(I64, 0)))
        for fact in facts:
            self._assume(fact)

    def _assume(self, fact: Comparison) -> None:
        """Tell LLVM a relation between symbols that this function has, if no side can overflow."""
        symbols = {*symbols_of(fact.lhs), *symbols_of(fact.rhs)}
        if len(symbols) < 2 or not symbols <= self.symbols.keys():
            return
        sizes = self.new_sizes()
        left, right = sizes.lower(fact.lhs), sizes.lower(fact.rhs)
        if left.undefined is None and right.undefined is None:
            holds = self.emitter.icmp(PREDICATES[fact.op], left.value, right.value)
            self.b.assume(holds)

    # ---- values ----

    def define_integer(self, value: ops.Value, wide: ir.Value, *, fits: bool = True) -> None:
        """Defines an integer from its 64-bit value; `fits`: it is in the range of its dtype."""
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
        # Such a symbol has no value yet in the entry block.
        if self.made and not self.made.keys().isdisjoint(symbols_of(dim)):
            return self.new_sizes().lower(dim).value
        if self._sizes is None:
            self._sizes = self.new_sizes()
        with self.b.goto_entry_block():
            return self._sizes.lower(dim).value

    def new_sizes(self) -> Sizes:
        """A lowering of sizes that has emitted nothing yet."""
        ranges = {symbol: symbol.interval() for symbol in self.symbols}
        return Sizes(self.emitter, self.symbols, ranges)

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Definitions inside are dropped after it."""
        values, wide, coordinates = dict(self.values), dict(self.wide), dict(self.coordinates)
        yield
        self.values, self.wide, self.coordinates = values, wide, coordinates

    # ---- lines ----

    def inside(
        self, loop: ops.Op | ops.Region, kind: LoopKind, name: str = ""
    ) -> AbstractContextManager[None]:
        """The code in the block is a loop, see `Lines`."""
        return nullcontext() if self.lines is None else self.lines.inside(loop, kind, name)

    def say(self, words: str) -> None:
        """This was decided about the innermost loop, see `Lines`."""
        if self.lines is not None:
            self.lines.say(words)

    # ---- faults ----

    def check(self, ok: ir.Value, fault: Fault, values: Sequence[ir.Value]) -> None:
        """Ends the function with the fault's number if `ok` is false."""
        if isinstance(ok, ir.Constant) and ok.constant:
            return
        if self.output is not None:
            self.output.check(self.emitter, ok, fault, values)
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

    def require(
        self,
        status: ir.Value,
        faults: Sequence[Fault],
        passed: str,
        shown: ir.Value | None = None,
    ) -> None:
        """Ends a host function unless a status, i32, is 0: it is `RAISED`, or from 1 on the number
        of one of these faults.

        Otherwise execution continues in a block with the name `passed`; `shown` is the address of
        the int64 that the messages show.
        """
        numbers = [self.faults.number(fault) for fault in faults]
        with failed(self.emitter, status, passed):
            if shown is not None and self.fault_values is not None:
                self.emitter.store(self.emitter.load(shown, I64), self.fault_values)
            self.emitter.ret(number_of(self.emitter, status, numbers))

    def end(self, status: ir.Value) -> None:
        """Ends the function with this status."""
        (self.leave or self.emitter.ret)(status)

    def checked_size(self, op: ops.Size) -> ir.Value:
        """A size with a check of every step; its fault's values are those of its symbols."""
        assert op.fault is not None
        dtype = dtype_of(op.result)
        size = self.new_sizes().lower(op.dim)
        ok = ir.Constant(I1, 1) if size.undefined is None else self.b.not_(size.undefined)
        if dtype.bits < 64:
            back = self.b.sext(self.b.trunc(size.value, value_type(dtype)), I64)
            ok = self.b.and_(ok, self.b.icmp_signed("==", back, size.value))
        symbols = dict.fromkeys(symbols_of(op.dim))
        self.check(ok, op.fault, tuple(self.symbols[symbol] for symbol in symbols))
        return size.value
