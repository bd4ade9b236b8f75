"""Writes LLVM for the instructions of one block: registers as vectors, results under a mask.

A register that no other block needs is never in memory. A register's value in lanes that are not
here is never changed: what is put back into the frame is chosen by the mask.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ferrule.emulator.checks.watch import Watch
from ferrule.emulator.ptx.cursor import BYTES
from ferrule.emulator.ptx.initial import single
from ferrule.emulator.ptx.module import (
    Address,
    FloatImmediate,
    Group,
    Immediate,
    Instruction,
    Negated,
    Operand,
    PtxError,
    Register,
    Symbol,
)
from ferrule.emulator.warps import layout
from ferrule.emulator.warps.frames import END

SCALARS: Final = {
    "pred": "i1", "f32": "float", "f64": "double", "f16": "half",
    **{f"{k}{n}": f"i{n}" for k in "bsu" for n in (8, 16, 32, 64)},
    "bf16": "i16", "f16x2": "i32", "bf16x2": "i32",
}  # fmt: skip
"""LLVM's type of a lane's value; bf16 and pairs are handled as their bits."""


def bits_of(kind: str) -> int:
    """The bits of a PTX type."""
    return 1 if kind == "pred" else BYTES[kind] * 8


def vector(kind: str) -> str:
    """LLVM's vector of a PTX type."""
    return f"<32 x {SCALARS[kind]}>"


def splat(llvm: str, value: str) -> str:
    """A constant in all lanes."""
    return f"splat ({llvm} {value})"


_UNIFORM: Final = {
    "%ctaid": layout.CTAID, "%ntid": layout.NTID, "%nctaid": layout.NCTAID,
    "%cluster_ctaid": layout.CLUSTER_CTAID,
}  # fmt: skip
"""Where a block has each of the registers with three parts."""

_OF_CLUSTER: Final = {
    "%clusterid": layout.C_ID, "%nclusterid": layout.C_COUNTS, "%cluster_nctaid": layout.C_DIM,
    "%cluster_nctarank": layout.C_SIZE, "%is_explicit_cluster": layout.C_EXPLICIT,
}  # fmt: skip
"""Where the cluster has them."""

_SINGLE: Final = {
    "%nwarpid": layout.WARPS, "%total_smem_size": layout.TOTAL_SHARED,
    "%dynamic_smem_size": layout.DYNAMIC_SHARED,
    "%aggr_smem_size": layout.TOTAL_SHARED, "%cluster_ctarank": layout.RANK,
    # The upper half and the lower half, as the headers of cooperative groups read them.
    "%envreg1": layout.GRID_WORKSPACE + 4, "%envreg2": layout.GRID_WORKSPACE,
}  # fmt: skip

_CONSTANT: Final = {
    "%smid": 0, "%nsmid": 1, "%gridid": 0, "%current_graph_exec": 0,
    **{f"%envreg{i}": 0 for i in (0, *range(3, 32))},
    **{f"%pm{i}{wide}": 0 for i in range(8) for wide in ("", "_64")},
}  # fmt: skip
"""What the driver would say, and counters of events: of none there is anything to tell."""

RESERVED: Final = "%reserved_smem_offset_"
"""How the registers begin that tell where shared memory is reserved for the system. A kernel that
reads one has such memory, behind its variables; groups of several warps of cooperative groups keep
their barriers in its second region, and expect 288 bytes of it."""
RESERVED_BYTES: Final = 1024
_RESERVED: Final = {"begin": 0, "0": 0, "1": RESERVED_BYTES // 2, "end": RESERVED_BYTES}

_CLOCKS: Final = frozenset(
    {"%clock", "%clock_hi", "%clock64", "%globaltimer", "%globaltimer_lo", "%globaltimer_hi"}
)

LANE_NUMBERS: Final = "<" + ", ".join(f"i32 {i}" for i in range(32)) + ">"
LANE_NUMBERS_64: Final = "<" + ", ".join(f"i64 {i}" for i in range(32)) + ">"


class Names:
    """What a kernel's names mean, the same for all blocks."""

    def __init__(
        self,
        registers: Mapping[str, str],
        symbols: Mapping[str, tuple[str, int]],
        slots: Mapping[str, int],
        checks: frozenset[str],
        watch: Watch | None = None,
    ) -> None:
        self.registers = registers
        self.symbols = symbols
        """(space, address or offset) of each variable."""
        self.slots = slots
        """The place in the frame of each register that outlives a block."""
        self.checked = "memory" in checks
        self.synchronised = "sync" in checks
        self.moves_approximations = "approx" in checks
        self.watch = watch
        """What is told of the code, where a check or the profile was asked for."""
        self.tables: list[str] = []
        """Constants of the kernel, as LLVM text."""
        self.most = 0
        """The values of the longest `call_many`."""


class Emitter:
    """The text of one block. `mask` names the lanes, as an i32."""

    def __init__(self, names: Names, number: int, mask: str, helpers: set[str]) -> None:
        self.names = names
        self.lines: list[str] = []
        self.mask = mask
        self.label = f"b{number}"
        self.helpers = helpers
        self.faults: list[tuple[str, int]] = []
        self._number = number
        self._count = 0
        self._values: dict[str, str] = {}
        self._before: dict[str, str] = {}
        self._changed: dict[str, None] = {}
        self._item: Instruction | None = None
        self._index = 0
        self._guard: str | None = None

    # ---- text ----

    def fresh(self) -> str:
        self._count += 1
        return f"%v{self._number}.{self._count}"

    def op(self, text: str) -> str:
        """A new value."""
        name = self.fresh()
        self.lines.append(f"  {name} = {text}")
        return name

    def do(self, text: str) -> None:
        self.lines.append(f"  {text}")

    def begin(self, label: str) -> None:
        """The next block of LLVM."""
        self.lines.append(f"{label}:")
        self.label = label

    def refuse(self, why: str = "") -> PtxError:
        """The error that says that the instruction is not emulated."""
        assert self._item is not None
        said = self._item.part_of or self._item
        text = f"{said.name} is not emulated"
        return PtxError(f"{text}: {why}" if why else text, self._item.line)

    # ---- instructions ----

    def start(self, item: Instruction, index: int) -> None:
        """What follows belongs to this instruction."""
        self._item, self._index = item, index
        self._guard = None
        if item.guard is not None:
            self._guard = self.read(Register(item.guard.name), "pred")
            if item.guard.negated:
                self._guard = self.op(f"xor <32 x i1> {self._guard}, splat (i1 true)")

    @property
    def index(self) -> int:
        """The number of the instruction, as faults have it."""
        return self._index

    @property
    def item(self) -> Instruction:
        assert self._item is not None
        return self._item

    def active(self) -> str:
        """The lanes that execute the instruction, as an i32."""
        if self._guard is None:
            return self.mask
        bits = self.op(f"bitcast <32 x i1> {self._guard} to i32")
        return self.op(f"and i32 {bits}, {self.mask}")

    def lanes(self) -> str:
        """The lanes that execute it, as a vector of bits."""
        return self.op(f"bitcast i32 {self.active()} to <32 x i1>")

    # ---- operands ----

    def kind_of(self, name: str) -> str:
        """The type of a register.  PtxError where there is none."""
        found = self.names.registers.get(name)
        if found is None:
            raise PtxError(f"there is no register {name}", self.item.line)
        return found

    def read(self, operand: Operand, kind: str, wider: bool = False) -> str:
        """An operand's value as a vector of `kind`; a register may be `wider` where that is so."""
        if isinstance(operand, Register):
            return self._register(operand.name, kind, wider)
        if isinstance(operand, Negated):
            value = self._register(operand.name, "pred", False)
            return self.op(f"xor <32 x i1> {value}, splat (i1 true)")
        if isinstance(operand, Immediate):
            return self._integer(operand.value, kind)
        if isinstance(operand, FloatImmediate):
            return self._float(operand, kind)
        raise self.refuse(f"the operand {operand}")

    def _integer(self, value: int, kind: str) -> str:
        bits = bits_of(kind)
        if kind == "pred":
            return splat("i1", "true" if value else "false")
        if kind[0] == "f" and kind != "f16x2":
            raise self.refuse(f"an integer as .{kind}")
        if not -(1 << 63) <= value < 1 << 64:
            raise self.refuse(f"{value} has more than 64 bits")
        return splat(f"i{bits}", str(value & (1 << bits) - 1))

    def _float(self, operand: FloatImmediate, kind: str) -> str:
        bits = bits_of(kind)
        value = operand.bits
        if operand.width != bits:
            if (operand.width, kind) != (64, "f32"):
                raise self.refuse(f"a float of {operand.width} bits as .{kind}")
            value = single(value, self.item.line)
        return self.cast(splat(f"i{bits}", str(value)), f"b{bits}", kind)

    def _register(self, name: str, kind: str, wider: bool) -> str:
        if name.startswith("%") and name not in self.names.registers:
            return self._special(name, kind)
        own = self.kind_of(name)
        have, want = bits_of(own), bits_of(kind)
        if have != want and not (wider and have > want):
            raise self.refuse(f"{name} has .{own}, not .{kind}")
        value = self.raw(name)
        if have != want:
            value = self.op(f"trunc <32 x i{have}> {value} to <32 x i{want}>")
        return self.cast(value, "pred" if want == 1 else f"b{want}", kind)

    def raw(self, name: str) -> str:
        """A register's bits."""
        if name not in self._values:
            self._values[name] = self._before[name] = self._from_frame(name)
        return self._values[name]

    def _from_frame(self, name: str) -> str:
        bits = bits_of(self.names.registers[name])
        slot = self.names.slots.get(name)
        if slot is None:
            return splat(f"i{bits}", "0" if bits > 1 else "false")
        place = self.op(f"getelementptr i8, ptr %w, i64 {slot}")
        if bits == 1:
            return self.op(f"bitcast i32 {self.op(f'load i32, ptr {place}')} to <32 x i1>")
        return self.op(f"load <32 x i{bits}>, ptr {place}, align 32")

    def cast(self, value: str, source: str, target: str) -> str:
        """The same bits as another type."""
        if SCALARS[source] == SCALARS[target]:
            return value
        return self.op(f"bitcast {vector(source)} {value} to {vector(target)}")

    def write(self, operand: Operand, kind: str, value: str, wider: bool = False) -> None:
        """Give a register its value; a `wider` one is extended, as `kind` says by its sign."""
        if not isinstance(operand, Register):
            raise self.refuse("the result is no register")
        if operand.name == "_":
            return
        if operand.name.startswith("%") and operand.name not in self.names.registers:
            raise self.refuse(f"{operand.name} cannot be written")
        own = self.kind_of(operand.name)
        have, want = bits_of(own), bits_of(kind)
        bits = self.cast(value, kind, "pred" if want == 1 else f"b{want}")
        if have != want:
            if not (wider and have > want):
                raise self.refuse(f"{operand.name} has .{own}, not .{kind}")
            extend = "sext" if kind[0] == "s" else "zext"
            bits = self.op(f"{extend} <32 x i{want}> {bits} to <32 x i{have}>")
        if self._guard is not None:
            old = self.raw(operand.name)
            llvm = f"<32 x i{have}>"
            bits = self.op(f"select <32 x i1> {self._guard}, {llvm} {bits}, {llvm} {old}")
        self._values[operand.name] = bits
        self._changed[operand.name] = None

    def finish(self) -> None:
        """Put what other blocks may need into the frame."""
        wanted = [name for name in self._changed if name in self.names.slots]
        if not wanted:
            return
        lanes = self.op(f"bitcast i32 {self.mask} to <32 x i1>")
        # All loads, then all stores of vectors, then the words: a load behind the store of a word
        # would begin another loop, see `chunks`.
        before = {name: self._before.get(name) or self._from_frame(name) for name in wanted}
        words = []
        for name in wanted:
            bits = bits_of(self.names.registers[name])
            place = self.op(f"getelementptr i8, ptr %w, i64 {self.names.slots[name]}")
            llvm = f"<32 x i{bits}>"
            value, old = self._values[name], before[name]
            new = self.op(f"select <32 x i1> {lanes}, {llvm} {value}, {llvm} {old}")
            if bits == 1:
                words.append((self.op(f"bitcast <32 x i1> {new} to i32"), place))
            else:
                self.do(f"store {llvm} {new}, ptr {place}, align 32")
        for word, place in words:
            self.do(f"store i32 {word}, ptr {place}")

    # ---- special registers ----

    def _special(self, name: str, kind: str) -> str:
        if name == "%warpsize":
            return self._sized(splat("i32", "32"), 32, kind)
        if name == "%laneid":
            return self._sized(LANE_NUMBERS, 32, kind)
        base, _, part = name.partition(".")
        axis = ("x", "y", "z").index(part) if part in ("x", "y", "z") else -1
        if base == "%tid" and axis >= 0:
            place = self.op(f"getelementptr i8, ptr %w, i64 {layout.TID[axis]}")
            value = self.op(f"load <32 x i32>, ptr {place}, align 32, !invariant.load !0")
            return self._sized(value, 32, kind)
        if name.startswith("%lanemask_"):
            return self._sized(self._lane_mask(name), 32, kind)
        offset = _UNIFORM.get(base) if axis >= 0 else _SINGLE.get(name)
        if offset is not None:
            return self._sized(self.spread(self.block_field(offset + 4 * max(axis, 0))), 32, kind)
        if base in _OF_CLUSTER and (axis >= 0) == (base[-2:] == "id"):
            cluster = self.block_field(layout.CLUSTER, "ptr")
            place = self.op(
                f"getelementptr i8, ptr {cluster}, i64 {_OF_CLUSTER[base] + 4 * max(axis, 0)}"
            )
            return self._sized(self.spread(self.op(f"load i32, ptr {place}")), 32, kind)
        if name == "%warpid":
            place = self.op(f"getelementptr i8, ptr %w, i64 {layout.WARP_ID}")
            return self._sized(self.spread(self.op(f"load i32, ptr {place}")), 32, kind)
        if name == END.name:
            place = self.op(f"getelementptr i8, ptr %w, i64 {layout.LOCAL_SIZE}")
            return self._sized(self.spread(self.op(f"load i64, ptr {place}"), "i64"), 64, kind)
        if name.startswith(RESERVED):
            return self._sized(splat("i32", str(self._reserved(name))), 32, kind)
        if name in _CLOCKS:
            return self._clock(name, kind)
        if name in _CONSTANT:
            number = _CONSTANT[name]
            return self._sized(splat("i32", str(number)), 32, kind)
        raise self.refuse(f"the register {name}")

    def _reserved(self, name: str) -> int:
        part = name.removeprefix(RESERVED)
        if part == "cap":
            return RESERVED_BYTES
        if part not in _RESERVED:
            raise self.refuse(f"the register {name}")
        return self.names.symbols[RESERVED][1] + _RESERVED[part]

    def _sized(self, value: str, bits: int, kind: str) -> str:
        """A special register as what is asked for: 16 and 64 bits are of PTX before 2.0."""
        want = bits_of(kind)
        if kind[0] == "f":
            raise self.refuse("a special register as a float")
        if want == bits:
            return value
        how = "trunc" if want < bits else "zext"
        return self.op(f"{how} <32 x i{bits}> {value} to <32 x i{want}>")

    def _lane_mask(self, name: str) -> str:
        masks = {
            "%lanemask_eq": [1 << i for i in range(32)],
            "%lanemask_lt": [(1 << i) - 1 for i in range(32)],
            "%lanemask_le": [(2 << i) - 1 for i in range(32)],
            "%lanemask_gt": [0xFFFFFFFF & -(2 << i) for i in range(32)],
            "%lanemask_ge": [0xFFFFFFFF & -(1 << i) for i in range(32)],
        }
        if name not in masks:
            raise self.refuse(f"the register {name}")
        return "<" + ", ".join(f"i32 {each}" for each in masks[name]) + ">"

    def _clock(self, name: str, kind: str) -> str:
        now = self.op("call i64 @llvm.readcyclecounter()")
        if name.endswith("_hi"):
            now = self.op(f"lshr i64 {now}, 32")
        bits = bits_of(kind)
        if bits < 64:
            now = self.op(f"trunc i64 {now} to i{bits}")
        return self.spread(now, f"i{bits}")

    def block_field(self, offset: int, kind: str = "i32") -> str:
        """A field of the block."""
        place = self.op(f"getelementptr i8, ptr %block, i64 {offset}")
        return self.op(f"load {kind}, ptr {place}, align 4, !invariant.load !0")

    def spread(self, value: str, kind: str = "i32") -> str:
        """A value in all lanes."""
        first = self.op(f"insertelement <32 x {kind}> poison, {kind} {value}, i32 0")
        return self.op(
            f"shufflevector <32 x {kind}> {first}, <32 x {kind}> poison, <32 x i32> zeroinitializer"
        )

    # ---- addresses ----

    def symbol(self, symbol: Symbol) -> tuple[str, str]:
        """A variable's space, and its address in that space as a vector of i64."""
        if symbol.name not in self.names.symbols:
            raise PtxError(f"there is no variable {symbol.name}", self.item.line)
        space, place = self.names.symbols[symbol.name]
        where = place + symbol.offset
        if space == "code" and symbol.offset:
            raise self.refuse(f"an address inside of the function {symbol.name}")
        if space == "param":
            return space, self.in_parameters(splat("i64", str(where)))
        return space, splat("i64", str(where))

    def in_parameters(self, value: str) -> str:
        """Addresses of the space .param, whose numbers fit 32 bits, as those of memory; which are
        so already stay as they are."""
        base = self.op(f"ptrtoint ptr {self.op('getelementptr i8, ptr %params, i64 0')} to i64")
        found = self.op(f"add <32 x i64> {value}, {self.spread(base, 'i64')}")
        small = self.op(f"icmp ult <32 x i64> {value}, {splat('i64', str(_PARAMETERS))}")
        return self.op(f"select <32 x i1> {small}, <32 x i64> {found}, <32 x i64> {value}")

    def address(self, operand: Operand, space: str) -> str:
        """An address operand as a vector of i64: where it is, of shared memory in its window."""
        if not isinstance(operand, Address):
            raise self.refuse("wanted an address in [ ]")
        base = operand.base
        if base is None:
            return splat("i64", str(operand.offset))
        if isinstance(base, Symbol):
            found, value = self.symbol(Symbol(base.name, operand.offset))
            if found != space and (found, space) not in (("global", "const"), ("const", "global")):
                remote = (found, space) == ("shared", "cluster")
                if not remote and (space != "generic" or found == "shared"):
                    raise self.refuse(f"{base.name} is in .{found}")
            return self.own(value) if found == "local" else value
        bits = bits_of(self.kind_of(base.name))
        if bits not in (32, 64) or (bits == 32 and space not in _NARROW):
            raise self.refuse(f"the address {base.name} has {bits} bits")
        value = self.raw(base.name)
        if bits == 32:
            value = self.op(f"zext <32 x i32> {value} to <32 x i64>")
        if operand.offset:
            value = self.op(f"add <32 x i64> {value}, {splat('i64', str(operand.offset))}")
        if space == "param":
            return self.in_parameters(value)
        return self.own(value) if space == "local" else value

    def own(self, value: str) -> str:
        """The addresses of bytes of the lanes' own memory."""
        return self.op(f"add <32 x i64> {value}, %locals")

    # ---- helpers ----

    def call(
        self, name: str, given: Sequence[tuple[str, str]], wanted: Sequence[str], mask: str = ""
    ) -> list[str]:
        """Call a helper: its arguments as (type, value), and the types of its results."""
        self.helpers.add(name)
        places = [f"%scratch{i}" for i in range(len(given) + len(wanted))]
        if len(places) > SCRATCH:
            raise AssertionError("too few places for a helper's values")
        for place, (kind, value) in zip(places, given, strict=False):
            self.do(f"store {kind} {value}, ptr {place}, align 32")
        pointers = "".join(f", ptr {place}" for place in places)
        lanes = mask or self.active()
        if self.names.watch is not None:
            self.names.watch.before(self, name, places, lanes)
        self.stop_if(self.op(f'call i32 @"{name}"(ptr %w, i32 {lanes}{pointers})'))
        if self.names.watch is not None:
            self.names.watch.after(self, name, places, lanes)
        return [
            self.op(f"load {kind}, ptr {place}, align 32")
            for kind, place in zip(wanted, places[len(given) :], strict=True)
        ]

    def table(self, numbers: Sequence[int]) -> str:
        """A constant array of numbers of 32 bits."""
        name = f"@table{len(self.names.tables)}"
        listed = ", ".join(f"i32 {each}" for each in numbers)
        self.names.tables.append(
            f"{name} = internal constant [{len(numbers)} x i32] [{listed}], align 4\n"
        )
        return name

    def call_many(
        self, name: str, given: Sequence[tuple[str, str]], wanted: Sequence[str], mask: str = ""
    ) -> list[str]:
        """The same with one pointer: to all values, 256 bytes each, then to the results."""
        self.helpers.add(name)
        self.names.most = max(self.names.most, len(given) + len(wanted))
        places = [
            self.op(f"getelementptr i8, ptr %many, i64 {256 * i}")
            for i in range(len(given) + len(wanted))
        ]
        for place, (kind, value) in zip(places, given, strict=False):
            self.do(f"store {kind} {value}, ptr {place}, align 32")
        lanes = mask or self.active()
        if self.names.watch is not None:
            self.names.watch.before(self, name, places, lanes)
        self.stop_if(self.op(f'call i32 @"{name}"(ptr %w, i32 {lanes}, ptr %many)'))
        if self.names.watch is not None:
            self.names.watch.after(self, name, places, lanes)
        return [
            self.op(f"load {kind}, ptr {place}, align 32")
            for kind, place in zip(wanted, places[len(given) :], strict=True)
        ]

    def stop_if(self, bad: str) -> None:
        """The warp has failed where a helper says so."""
        wrong = self.op(f"icmp ne i32 {bad}, 0")
        label = f"c{self._number}.{self._count}"
        self.faults.append((f"%{self.label}", self._index))
        self.do(f"br i1 {wrong}, label %fault, label %{label}, !prof !1")
        self.begin(label)


SCRATCH: Final = 9

_PARAMETERS: Final = 1 << 16
"""More than all parameters of a kernel have, and less than any address of memory."""

_NARROW: Final = ("shared", "local", "cluster", "param")
"""Spaces whose addresses fit 32 bits."""


def items_of(group: Operand) -> tuple[Operand, ...]:
    """The elements of a vector, or the operand alone."""
    return group.items if isinstance(group, Group) and group.kind == "{" else (group,)
