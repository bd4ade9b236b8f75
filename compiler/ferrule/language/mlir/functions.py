"""The body of one function as MLIR: each op of the kernel IR is written or dispatched here.

`FunctionText` holds the state of one function: the name of each value, the symbols, the coordinates
of the running thread.  Ops that depend on where a function runs (launches, operations of several
threads, the action of a failed check) belong to a `Surroundings`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import field
from typing import Final, Protocol

from ferrule.compiler.artefacts import Fault
from ferrule.compiler.sizes import Sizes
from ferrule.language.codegen.cuda.approximate import keeps
from ferrule.language.codegen.errors import CodegenError
from ferrule.language.codegen.functions.lowering import Faults
from ferrule.language.codegen.values.scalars import dtype_of
from ferrule.language.fastmath import permissions
from ferrule.language.ir import ops
from ferrule.language.ir.builder import Builder
from ferrule.language.ir.facts import all_ops
from ferrule.language.ir.types import HandleType, TensorType
from ferrule.language.mathlib.expand import expand_fma
from ferrule.language.mlir import approximate, arithmetic, casts, control, halves, memory
from ferrule.language.mlir import requests as outside
from ferrule.language.mlir.device.lines import Lines
from ferrule.language.mlir.text import Text, escaped
from ferrule.language.mlir.types import HALVES, Spaces, value_type
from ferrule.specs import Boolean, Compound, Dim, DType, Sym, symbols_of
from ferrule.specs.deferred import dataclass
from ferrule.specs.expr import ExprOp


class Surroundings(Protocol):
    """The place where a function runs."""

    spaces: Spaces
    unwritten: Set[ops.Value]
    """The tensors whose memory is not written while the function runs."""
    approximates: bool
    """Whether `fast` ops are the target's approximations."""
    native: bool
    """Whether the target has float16 instructions and a fused multiply-add."""
    unchecked: bool
    """Whether sizes are checked elsewhere, in the text that people read."""

    def fails(self, op: ops.Op) -> bool:
        """Whether an op without regions may end the function early."""

    def check(self, f: FunctionText, ok: str, fault: Fault, values: Sequence[str]) -> None:
        """Ends the call if the i1 is false; the values of the message are i64."""

    def print_(self, f: FunctionText, op: ops.Print) -> None:
        """Emits a print."""

    def other(self, f: FunctionText, op: ops.Op) -> None:
        """Emits an op that only some functions may contain, and sets the value of its result."""


@dataclass(slots=True)
class FunctionText:
    """The state of one function under construction."""

    t: Text
    where: Surroundings
    symbols: Mapping[Sym, str] = field(default_factory=dict)
    faults: Faults = field(default_factory=Faults)
    values: dict[ops.Value, str] = field(default_factory=dict)
    coordinates: dict[tuple[ops.Register, int], str] = field(default_factory=dict)
    constants: dict[ops.Value, int] = field(default_factory=dict)
    """The integers whose values are known constants."""
    exits: list[str] = field(default_factory=list)
    """The blocks through which functions and regions end with a status, the innermost last."""
    left: set[str] = field(default_factory=set)
    """The exits that are used: MLIR's conversions drop blocks that cannot be reached."""
    owned: frozenset[ops.Value] = frozenset()
    """The tensors that the function owns: `address` gives the address of their objects."""
    lines: Lines | None = None
    """The lines of the source, if the text shows them."""
    _fails: dict[ops.Op, bool] = field(default_factory=dict)

    @property
    def reads(self) -> bool:
        """Whether people read the text, so that it is folded and written as they would write it."""
        return self.t.folding is not None

    @property
    def spaces(self) -> Spaces:
        """The memory spaces of the target."""
        return self.where.spaces

    def type_of(self, value: ops.Value) -> str:
        """The MLIR type of a value."""
        return value_type(value.type, self.spaces)

    # ---- values ----

    def as_i64(self, value: ops.Value) -> str:
        """An integer or bool in 64 bits."""
        return casts.widen(self.t, dtype_of(value), self.values[value])

    def integer(self, value: ops.Value, wide: str) -> None:
        """Sets the value of an integer to the low bits of `wide`."""
        type_ = self.type_of(value)
        self.values[value] = wide if type_ == "i64" else self.t.cast("trunci", wide, type_)

    def narrowed(self, dtype: DType, value: str) -> str:
        """Rounds a float32 to a narrow float."""
        return halves.narrow(self.t, dtype, value, native=self.where.native)

    def sizes(self) -> Sizes[str]:
        """A new lowering of sizes, which has emitted none yet."""
        ranges = {symbol: symbol.interval() for symbol in self.symbols}
        return Sizes(self.t, self.symbols, ranges)

    def dim(self, dim: Dim) -> str:
        """The i64 value of a size that needs no check."""
        if self.reads and (found := plain_size(self.t, self.symbols, dim)) is not None:
            return self.t.cast("index_cast", found, "i64")
        return self.sizes().lower(dim).value

    def exit(self) -> str:
        """The block to which a status is passed that ends the region."""
        self.left.add(self.exits[-1])
        return self.exits[-1]

    def fails(self, op: ops.Op) -> bool:
        """Whether an op, or one inside it, may end the function early."""
        if op not in self._fails:
            if op.regions:
                found = any(self.where.fails(inner) for inner in all_ops(ops.Region((op,))))
            else:
                found = self.where.fails(op)
            self._fails[op] = found
        return self._fails[op]

    # ---- ops ----

    def region(self, region: ops.Region) -> None:
        """Emits the ops of a region into the current block."""
        place = self.t.place
        for op in region.ops:
            self.op(op)
        self.t.place = place

    def yielded(self, region: ops.Region) -> list[str]:
        """The names of the values that a region yields."""
        return self.carried(region.yields)

    def carried(self, values: Sequence[ops.Value]) -> list[str]:
        """The names of values that regions pass on: a tensor has the type with any offset."""
        return [self.general(value) for value in values]

    def general(self, value: ops.Value) -> str:
        """A value in the type that all values of its kind have."""
        found, kind = self.values[value], self.type_of(value)
        given = self.t.types[found]
        if given == kind or not given.startswith("memref"):
            return found
        return self.t.op(f"memref.cast {found} : {given} to {kind}", kind)

    def op(self, op: ops.Op) -> None:
        """Emits one op."""
        if self.lines is not None:
            self.t.place = self.lines.at(op)
        if self.reads:
            self.t.hint = op.result.hint if isinstance(op, ops.SimpleOp) else ""
        match op:
            case ops.If():
                control.if_(self, op)
            case ops.For():
                control.for_(self, op)
            case ops.While():
                control.while_(self, op)
            case ops.Store():
                memory.store(self, op)
            case ops.Check(condition, fault, values):
                shown = [self.as_i64(value) for value in values]
                self.where.check(self, self.values[condition], fault, shown)
            case ops.Print():
                self.where.print_(self, op)
            case ops.Size(fault=fault) if fault is not None:
                self.checked_size(op, fault)
            case ops.Size(result, dim):
                self.integer(result, self.dim(dim))
            case ops.Special(result, register, axis):
                self.integer(result, self.coordinates[register, axis])
            case ops.View(result) | ops.Load(result) | ops.Fragment(result) | ops.Table(result):
                self.values[result] = self.of_memory(op)
            case ops.Pointer(result, address):
                self.values[result] = memory.pointed(self, result.tensor, self.values[address])
            case ops.Text(result, data):
                self.values[result] = self.bytes_constant(data)
            case ops.Address(result, operand):
                self.values[result] = self.address(operand)
            case ops.Constant(result, value) if isinstance(result.type, DType):
                if isinstance(value, int) and result.type.kind != "float":
                    self.constants[result] = int(value)
                self.values[result] = casts.constant(self.t, result.type, value)
            case ops.Constant(result):
                self.values[result] = self.t.op("llvm.mlir.zero : !llvm.ptr", "!llvm.ptr")
            case ops.Fma():
                self.fma(op)
            case ops.Unary() | ops.Binary() | ops.Compare() | ops.Cast() | ops.Bitcast():
                self.values[op.result] = self.computed(op)
            case ops.Select(result, condition, on_true, on_false):
                operands = (self.values[v] for v in (condition, on_true, on_false))
                self.values[result] = self.t.select(*operands)
            case _:
                self.where.other(self, op)

    def of_memory(self, op: ops.View | ops.Load | ops.Fragment | ops.Table) -> str:
        """The value of an op that gives an element or a tensor."""
        match op:
            case ops.View():
                return memory.view(self, op)
            case ops.Load():
                return memory.load(self, op)
            case ops.Fragment(result):
                return memory.room(self, result)
            case ops.Table(result, data):
                type_ = result.tensor
                place = self.bytes_constant(data, self.spaces.of(type_), type_.align)
                return memory.at_pointer(self, type_, place)

    def computed(self, op: ops.Unary | ops.Binary | ops.Compare | ops.Cast | ops.Bitcast) -> str:
        """The value of an op on scalars."""
        t, values, native = self.t, self.values, self.where.native
        match op:
            case ops.Unary() | ops.Binary() if self.where.approximates and keeps(op):
                operands = [values[value] for value in op.operands]
                return approximate.emit(t, op.op, dtype_of(op.result), operands)
            case ops.Unary(result, name, operand):
                dtype, flags = dtype_of(result), permissions(op.flags)
                x = values[operand]
                return arithmetic.unary(t, name, dtype, x, native=native, flags=flags)
            case ops.Binary(result, name, lhs, rhs):
                dtype, flags = dtype_of(result), permissions(op.flags)
                sides = values[lhs], values[rhs]
                return arithmetic.binary(t, name, dtype, *sides, native=native, flags=flags)
            case ops.Compare(_, name, lhs, rhs):
                sides = values[lhs], values[rhs]
                return arithmetic.compare(t, name, dtype_of(lhs), *sides, native=native)
            case ops.Cast(result, operand):
                types = dtype_of(operand), dtype_of(result)
                return casts.cast(t, *types, values[operand], native=native)
            case ops.Bitcast(result, operand):
                return casts.bitcast(t, dtype_of(result), values[operand])

    def fma(self, op: ops.Fma) -> None:
        """A fused multiply-add with one rounding: an instruction where the target has one,
        otherwise ops with the same result."""
        operands = [self.values[value] for value in (op.x, op.y, op.z)]
        if self.where.native and dtype_of(op.result) not in HALVES:
            self.values[op.result] = self.t.arith("math.fma", *operands)
            return
        b = Builder()
        with b.region() as region:
            found = expand_fma(b, op.x, op.y, op.z)
        self.region(region.freeze())
        self.values[op.result] = self.values[found]

    def checked_size(self, op: ops.Size, fault: Fault) -> None:
        """A size whose every step is checked; the values of its fault are those of its symbols."""
        if self.reads and self.where.unchecked:
            self.integer(op.result, self.dim(op.dim))
            return
        t, size = self.t, self.sizes().lower(op.dim)
        if size.undefined is None and self.type_of(op.result) == "i64":
            self.integer(op.result, size.value)
            return
        ok = t.const_i1(True) if size.undefined is None else t.not_(size.undefined)
        if self.type_of(op.result) != "i64":
            back = t.cast("extsi", t.cast("trunci", size.value, "i32"), "i64")
            ok = t.binary("and", ok, t.icmp("eq", back, size.value))
        shown = [self.symbols[symbol] for symbol in dict.fromkeys(symbols_of(op.dim))]
        self.where.check(self, ok, fault, shown)
        self.integer(op.result, size.value)

    def bytes_constant(self, data: bytes, space: int = 0, align: int = 1) -> str:
        """The address of constant bytes, followed by a NUL, in a memory space."""
        symbol, known = f"bytes_{data.hex()}_{space}_{align}", self.t.declared
        if symbol not in known:
            number = sum(name.startswith("bytes_") for name in known)
            value = f"({escaped(data + bytes(1))})"
            where = f"addr_space = {space} : i32, alignment = {align} : i64"
            facts = f" {{{where}}}" if (space, align) != (0, 1) else ""
            known[symbol] = f"  llvm.mlir.global internal constant @bytes_{number}{value}{facts}"
        name = known[symbol].split("@")[1].split("(")[0]
        pointer = f"!llvm.ptr<{space}>" if space else "!llvm.ptr"
        return self.t.op(f"llvm.mlir.addressof @{name} : {pointer}", pointer)

    def address(self, operand: ops.Value) -> str:
        """The address of a handle's target, or of the first element of a tensor, as a number."""
        if operand in self.owned:
            return outside.object_of(self, operand)
        if isinstance(operand.type, TensorType):
            return memory.address(self, operand)
        return self.t.op(f"llvm.ptrtoint {self.values[operand]} : !llvm.ptr to i64", "i64")

    def receive(self, value: ops.Value, given: str) -> None:
        """Makes a value from a parameter as C code passes it."""
        match value.type:
            case TensorType() as type_:
                self.values[value] = memory.at_pointer(self, type_, given)
            case HandleType():
                self.values[value] = given
            case dtype if dtype is Boolean:
                self.values[value] = given
                if self.t.types[given] != "i1":
                    zero = self.t.integer(0, "i8")
                    self.values[value] = self.t.icmp("ne", given, zero)
            case _:
                self.values[value] = self.t.cast("bitcast", given, self.type_of(value))


def plain_size(t: Text, symbols: Mapping[Sym, str], dim: Dim) -> str | None:
    """A size in arithmetic of `index` that may wrap; None for a division by a number that is not a
    positive constant."""
    match dim:
        case Sym():
            return t.as_index(symbols[dim])
        case int():
            return t.index(dim)
        case Compound(op, lhs, rhs):
            if op in ("floordiv", "mod", "ceildiv") and not (isinstance(rhs, int) and rhs > 0):
                return None
            left, right = plain_size(t, symbols, lhs), plain_size(t, symbols, rhs)
            if left is None or right is None:
                return None
            if op == "mod":
                whole = t.arith("muli", t.arith("floordivsi", left, right), right)
                return t.arith("subi", left, whole)
            return t.arith(_SIZE_OPS[op], left, right)


_SIZE_OPS: Final[Mapping[ExprOp, str]] = {
    "add": "addi",
    "sub": "subi",
    "mul": "muli",
    "min": "minsi",
    "max": "maxsi",
    "floordiv": "floordivsi",
    "ceildiv": "ceildivsi",
}


def unknown(op: ops.Op, why: str) -> CodegenError:
    """The error for an op that has no MLIR form here."""
    return CodegenError(f"MLIR has no {type(op).__name__}: {why}")
