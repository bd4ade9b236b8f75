"""wmma, written as PTX: addresses, `ld`, `st`, and `mma.sync`.

Which element of a matrix which register has is left open by the PTX manual. Here registers have
what those of `mma.sync` have (`instructions.products.tensor_cores`), of as many products as the
shape needs; of m8n32k16 both factors change places, and the result is turned. Fragments that have
more registers than elements, as those of float16, have each element several times.

`wmma.start` is where the threads of a warp meet; `wmma.check` holds address and stride to what the
manual asks of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from ferrule.emulator.ptx.cursor import BYTES
from ferrule.emulator.ptx.module import (
    Address,
    Group,
    Immediate,
    Instruction,
    Label,
    Operand,
    PtxError,
    Register,
    Symbol,
)
from ferrule.specs.deferred import dataclass

Items = list["Instruction | Label"]

_BITS: Final = {
    "f16": 16, "bf16": 16, "tf32": 32, "f64": 64, "s8": 8, "u8": 8, "s4": 4, "u4": 4, "b1": 1,
    "f32": 32, "s32": 32,
}  # fmt: skip
_WIDE: Final = frozenset({"m16n16k16", "m32n8k16", "m8n32k16"})
_FACTORS: Final = {
    "f16": _WIDE, "bf16": _WIDE, "s8": _WIDE, "u8": _WIDE,
    "tf32": frozenset({"m16n16k8"}), "f64": frozenset({"m8n8k4"}),
    "s4": frozenset({"m8n8k32"}), "u4": frozenset({"m8n8k32"}), "b1": frozenset({"m8n8k128"}),
}  # fmt: skip
"""The shapes of each type of A and B."""
_SUMS: Final = {
    "f16": _WIDE, "f32": _WIDE | {"m16n16k8"}, "s32": _WIDE | {"m8n8k32", "m8n8k128"},
    "f64": frozenset({"m8n8k4"}),
}  # fmt: skip
"""The same of C and D."""
_ROW_BYTES: Final = 16
"""CUDA C++ asks for rows that begin at multiples of so many bytes, the PTX manual of whole
fragments; what either allows is allowed."""

_SPACE: Final = r"(?:\.(?P<space>global|shared|shared::cta))?"
_LOAD: Final = re.compile(
    r"load\.(?P<of>[abc])\.sync\.aligned\.(?P<by>row|col)\.(?P<shape>\w+)"
    + _SPACE
    + r"\.(?P<t>\w+)"
)
_STORE: Final = re.compile(
    r"store\.(?P<of>d)\.sync\.aligned\.(?P<by>row|col)\.(?P<shape>\w+)" + _SPACE + r"\.(?P<t>\w+)"
)
_ORDERS: Final = r"sync\.aligned\.(?P<a_by>row|col)\.(?P<b_by>row|col)\.(?P<shape>\w+)"
_PRODUCTS: Final = tuple(
    re.compile(text)
    for text in (
        rf"mma\.{_ORDERS}\.(?P<d>f16|f32)\.(?P<c>f16|f32)",
        rf"mma\.{_ORDERS}\.(?P<d>f32)\.(?P<t>bf16|tf32)\.(?P=t)\.(?P<c>f32)",
        rf"mma\.{_ORDERS}(?:\.rn)?\.(?P<d>f64)\.(?P<t>f64)\.f64\.(?P<c>f64)(?:\.rn)?",
        rf"mma\.{_ORDERS}\.(?P<d>s32)\.(?P<t>[su][48])\.(?P=t)\.(?P<c>s32)(?P<sat>\.satfinite)?",
        rf"mma\.(?P<op>xor|and)\.popc\.{_ORDERS}\.(?P<d>s32)\.(?P<t>b1)\.b1\.(?P<c>s32)",
    )
)

_BASE, _STRIDE, _LANE, _COLUMN, _PART = (
    Register(f"#wmma:{each}") for each in ("base", "stride", "lane", "column", "part")
)
_ROWS: Final = tuple(Register(f"#wmma:row{i}") for i in range(8))
_BYTES: Final = tuple(Register(f"#wmma:byte{i}") for i in range(4))
_PAIRS: Final = tuple(Register(f"#wmma:pair{i}") for i in range(2))
_HALVES: Final = tuple(Register(f"#wmma:half{i}") for i in range(2))
_WORDS: Final = tuple(Register(f"#wmma:word{i}") for i in range(16))
_LONGS: Final = tuple(Register(f"#wmma:long{i}") for i in range(2))
REGISTERS: Final = {
    **{each.name: "b64" for each in (_BASE, _STRIDE, *_ROWS, _PART, *_LONGS)},
    **{each.name: "b32" for each in (_LANE, _COLUMN, *_BYTES, *_PAIRS, *_WORDS)},
    **{each.name: "b16" for each in _HALVES},
}  # fmt: skip
"""What kernels with wmma have, besides those of their text."""


def expanded(items: Items, registers: Mapping[str, str]) -> Items:
    """The items, with the instructions for which a wmma stands in its place. PtxError for a wmma
    that is not emulated."""
    found: Items = []
    for item in items:
        if isinstance(item, Instruction) and item.opcode == "wmma":
            found += [replace(each, part_of=item) for each in _written(item, registers)]
        else:
            found.append(item)
    return found


def _written(item: Instruction, registers: Mapping[str, str]) -> list[Instruction]:
    name = ".".join(item.modifiers)
    for pattern in (_LOAD, _STORE):
        match = pattern.fullmatch(name)
        if match is not None and len(item.operands) in (2, 3):
            return _Move(item, match.groupdict(), registers).written()
    if len(item.operands) == 4:
        for pattern in _PRODUCTS:
            match = pattern.fullmatch(name)
            if match is not None:
                return _product(item, {"t": "f16", "op": None, "sat": None} | match.groupdict())
    raise _refused(item)


def _refused(item: Instruction, why: str = "") -> PtxError:
    text = f"{item.name} is not emulated"
    return PtxError(f"{text}: {why}" if why else text, item.line)


def _new(item: Instruction, name: str, *operands: Operand) -> Instruction:
    opcode, *modifiers = name.split(".")
    return Instruction(opcode, tuple(modifiers), operands, None, item.line, item.place)


def _sizes(shape: str) -> tuple[int, int, int]:
    m, n, k = map(int, re.findall(r"\d+", shape))
    return m, n, k


def _parts(item: Instruction, operand: Operand, count: int) -> tuple[Operand, ...]:
    """The registers of a fragment."""
    whole = isinstance(operand, Group) and operand.kind == "{"
    parts = operand.items if isinstance(operand, Group) and whole else (operand,)
    if len(parts) != count:
        raise _refused(item, f"a fragment has {len(parts)} registers, not {count}")
    return parts


# ---- fragments ----


@dataclass(frozen=True, slots=True)
class _Fragment:
    """Of a matrix: lane `4 g + t` has, in register i, the elements of row `g + rows[i]` from column
    `width * t + columns[i]` on, `each` of them; B counts as turned, its columns are its rows."""

    bits: int
    each: int
    width: int
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    count: int
    """The registers that an instruction has; those beyond have the elements again."""

    @property
    def bytes(self) -> int:
        """The bytes of all of a thread's registers."""
        return self.count * max(32, self.bits * self.each) // 8


def _factor(t: str, rows: int, depth: int, tile: int) -> _Fragment:
    """A, in tiles of 8 or 16 rows, or B, in tiles of 8 columns."""
    bits = _BITS[t]
    each = max(1, 32 // bits)
    places = [
        (first + low, column)
        for first in range(0, rows, tile)
        for column in range(0, depth, 4 * each)
        for low in range(0, tile, 8)
    ]
    count = 8 if t == "f16" else len(places)
    at, columns = zip(*places, strict=True)
    return _Fragment(bits, each, each, at, columns, count)


def _sum(t: str, rows: int, columns: int) -> _Fragment:
    """C and D, in tiles of 16 by 8, or of 8 by 8."""
    each = 2 if t == "f16" else 1
    places = [
        (row, column + i)
        for column in range(0, columns, 8)
        for row in range(0, rows, 8)
        for i in range(0, 2, each)
    ]
    at, found = zip(*places, strict=True)
    return _Fragment(_BITS[t], each, 2, at, found, len(places))


def _fragment(of: str, t: str, shape: str) -> _Fragment:
    m, n, k = _sizes(shape)
    if shape == "m8n32k16":
        m, n = n, m
        of = {"a": "b", "b": "a"}.get(of, of)
    if of == "a":
        return _factor(t, m, k, min(m, 16))
    return _factor(t, n, k, 8) if of == "b" else _sum(t, m, n)


def _straight(of: str, by: str, shape: str) -> bool:
    """Whether what is a row of `_Fragment` lies side by side in memory."""
    turned = shape == "m8n32k16" if of in "cd" else of == "b"
    return (by == "col") is turned


def _default_stride(of: str, by: str, shape: str) -> int:
    m, n, k = _sizes(shape)
    rows, columns = {"a": (m, k), "b": (k, n)}.get(of, (m, n))
    return columns if by == "row" else rows


# ---- loads and stores ----


class _Move:
    """One load or store."""

    def __init__(
        self, item: Instruction, named: Mapping[str, str | None], registers: Mapping[str, str]
    ) -> None:
        of, by, shape, t = (named[each] or "" for each in ("of", "by", "shape", "t"))
        known = _FACTORS if of in "ab" else _SUMS
        if shape not in known.get(t, ()) or (
            _BITS[t] < 8 and by != ("col" if of == "b" else "row")
        ):
            raise _refused(item)
        self._item = item
        self._kind = registers
        self._loads = of != "d"
        self._space = f".{named['space']}" if named["space"] else ""
        self._is = _fragment(of, t, shape)
        self._is_straight = _straight(of, by, shape)
        fragment, self._place = item.operands[:2] if self._loads else item.operands[1::-1]
        self._stride = (
            item.operands[2]
            if len(item.operands) == 3
            else Immediate(_default_stride(of, by, shape))
        )
        parts = _parts(item, fragment, self._is.count)
        distinct = len(self._is.rows)
        self._registers = parts[:distinct]
        self._copies = parts[distinct:]

    def written(self) -> list[Instruction]:
        moves = self._straight_moves() if self._is_straight else self._crossed_moves()
        copies = [
            self._do("mov.b32", each, self._registers[i % len(self._registers)])
            for i, each in enumerate(self._copies)
        ]
        return [self._do("wmma.start"), *self._begin(), *moves, *copies]

    def _do(self, name: str, *operands: Operand) -> Instruction:
        return _new(self._item, name, *operands)

    def _begin(self) -> list[Instruction]:
        """The address, the stride in bytes, and the first of what each lane has."""
        whole = self._is.bytes
        row = min(whole, _ROW_BYTES)
        scaled = self._do("mul.wide.u32", _STRIDE, self._stride, Immediate(self._is.bits))
        lane = self._do("mov.u32", _LANE, Register("%laneid"))
        found = [
            *self._based(),
            scaled,
            self._do("shr.u64", _STRIDE, _STRIDE, Immediate(3)),
            self._do(f"wmma.check.{whole}.{row}", _BASE, _STRIDE),
            lane,
            self._do("and.b32", _COLUMN, _LANE, Immediate(3)),
            self._do("shr.u32", _LANE, _LANE, Immediate(2)),
        ]
        step = self._is.width * self._is.bits // 8
        by_row, by_column = (_LANE, _COLUMN) if self._is_straight else (_COLUMN, _LANE)
        far = 1 if self._is_straight else self._is.width
        near = step if self._is_straight else self._is.bits // 8
        return [
            *found,
            self._do("cvt.u64.u32", _PART, by_row),
            self._do("mul.lo.u64", _PART, _PART, _STRIDE),
            self._do("mul.lo.u64", _PART, _PART, Immediate(far)),
            self._do("add.u64", _BASE, _BASE, _PART),
            self._do("mul.wide.u32", _PART, by_column, Immediate(near)),
            self._do("add.u64", _BASE, _BASE, _PART),
        ]

    def _based(self) -> list[Instruction]:
        place = self._place
        if not isinstance(place, Address):
            raise _refused(self._item, "wanted an address in [ ]")
        base = place.base
        if base is None:
            return [self._do("mov.u64", _BASE, Immediate(place.offset))]
        if isinstance(base, Symbol) and self._space:
            return [self._do("mov.u64", _BASE, Symbol(base.name, base.offset + place.offset))]
        kind = self._kind.get(base.name, "") if isinstance(base, Register) else ""
        bits = 8 * BYTES.get(kind, 0)
        if bits != 64 and (bits != 32 or not self._space.startswith(".shared")):
            raise _refused(self._item, f"the address {base.name} has {bits} bits")
        name = "mov.u64" if bits == 64 else "cvt.u64.u32"
        first = self._do(name, _BASE, base)
        return [first, self._do("add.u64", _BASE, _BASE, Immediate(place.offset))]

    def _lines(self, numbers: Sequence[int]) -> tuple[list[Instruction], dict[int, Register]]:
        """Registers with the address so many strides further."""
        found: list[Instruction] = []
        places = {}
        for register, number in zip(_ROWS, sorted(set(numbers)), strict=False):
            places[number] = register
            found.append(self._do("mad.lo.u64", register, _STRIDE, Immediate(number), _BASE))
        return found, places

    def _move(self, kind: str, value: Operand, base: Register, offset: int) -> Instruction:
        if self._loads:
            return self._do(f"ld{self._space}.{kind}", value, Address(base, offset))
        return self._do(f"st{self._space}.{kind}", Address(base, offset), value)

    def _straight_moves(self) -> list[Instruction]:
        """A register's elements together, and of C two registers where these lie together."""
        is_ = self._is
        found, lines = self._lines(is_.rows)
        bits = is_.bits * is_.each
        pairs = is_.width // is_.each if is_.each == 1 and is_.width == 2 else 1
        kind = f"v2.b{bits}" if pairs == 2 else f"b{bits}"
        for i in range(0, len(self._registers), pairs):
            value = self._registers[i] if pairs == 1 else Group("{", self._registers[i : i + 2])
            offset = is_.columns[i] * is_.bits // 8
            found.append(self._move(kind, value, lines[is_.rows[i]], offset))
        return found

    def _crossed_moves(self) -> list[Instruction]:
        """One element at a time."""
        is_ = self._is
        wanted = [column + e for column in is_.columns for e in range(is_.each)]
        found, lines = self._lines(wanted)
        for register, row, column in zip(self._registers, is_.rows, is_.columns, strict=True):
            elements = self._elements(register)
            offset = row * is_.bits // 8
            moves = [
                self._move(f"b{is_.bits}", each, lines[column + e], offset)
                for e, each in enumerate(elements)
            ]
            found += [*moves, *self._packed(register)] if self._loads else [
                *self._unpacked(register), *moves
            ]  # fmt: skip
        return found

    def _elements(self, register: Operand) -> Sequence[Operand]:
        """Where the elements of a register are while they are moved."""
        return {1: (register,), 2: _HALVES, 4: _BYTES}[self._is.each]

    def _packed(self, register: Operand) -> list[Instruction]:
        if self._is.each == 2:
            return [self._do("mov.b32", register, Group("{", _HALVES))]
        if self._is.each == 4:
            two = [
                # Byte 0 of the first register, then byte 0 of the second, which is number 4.
                self._do("prmt.b32", pair, _BYTES[2 * i], _BYTES[2 * i + 1], Immediate(0x0040))
                for i, pair in enumerate(_PAIRS)
            ]
            # Bytes 0 and 1 of each register.
            return [*two, self._do("prmt.b32", register, *_PAIRS, Immediate(0x5410))]
        return []

    def _unpacked(self, register: Operand) -> list[Instruction]:
        if self._is.each == 2:
            return [self._do("mov.b32", Group("{", _HALVES), register)]
        return []


# ---- products ----


def _product(item: Instruction, named: Mapping[str, str | None]) -> list[Instruction]:
    shape, t, d, c = (named[each] or "" for each in ("shape", "t", "d", "c"))
    small = _BITS[t] < 8 and (named["a_by"], named["b_by"]) != ("row", "col")
    if shape not in _FACTORS[t] or small:
        raise _refused(item)
    kinds = {"a": t, "b": t, "c": c, "d": d}
    parts = {}
    for of, operand in zip("dabc", item.operands, strict=True):
        fragment = _fragment(of, kinds[of], shape)
        found = _parts(item, operand, fragment.count)
        parts[of] = found[: len(fragment.rows)]
    if shape == "m8n32k16":
        parts["a"], parts["b"] = parts["b"], parts["a"]
    return [_new(item, "wmma.start"), *_tiled(item, named, parts)]


def _tiled(
    item: Instruction, named: Mapping[str, str | None], parts: Mapping[str, tuple[Operand, ...]]
) -> list[Instruction]:
    """One product after the other; the results go into their registers when all are done, because
    these may be the registers of the factors."""
    shape, t, d, c = (named[each] or "" for each in ("shape", "t", "d", "c"))
    m, n, k = _sizes(shape)
    if m < n:
        m, n = n, m
    name, tile = _instruction(named, t, min(m, 16), k, d, c)
    count = (m // tile) * (n // 8)
    sums = _Sums(item, d, c, count)
    for number in range(count):
        i, j = number % (m // tile), number // (m // tile)
        factors = [
            Group("{", _share(parts[of], part, whole))
            for of, part, whole in (("a", i, m // tile), ("b", j, n // 8))
        ]
        sums.add(name, factors, _share(parts["c"], number, count))
    return [*sums.items, *sums.given(parts["d"])]


def _share(parts: tuple[Operand, ...], number: int, whole: int) -> tuple[Operand, ...]:
    each = len(parts) // whole
    return parts[number * each : (number + 1) * each]


def _instruction(
    named: Mapping[str, str | None], t: str, rows: int, depth: int, d: str, c: str
) -> tuple[str, int]:
    """The name of `mma.sync`, and the rows of its tile."""
    wide = "f32" if "f32" in (d, c) else d
    ints = named["sat"] or ""
    last = f".{named['op']}.popc" if named["op"] else ""
    return f"mma.sync.aligned.m{rows}n8k{depth}.row.col{ints}.{wide}.{t}.{t}.{wide}{last}", rows


class _Sums:
    """The products of one instruction, each with its part of C."""

    def __init__(self, item: Instruction, d: str, c: str, count: int) -> None:
        self.items: list[Instruction] = []
        self._item = item
        self._d, self._c = d, c
        self._found: list[Register] = []
        self._fresh = iter(_LONGS if d == "f64" else _WORDS)

    def add(self, name: str, factors: Sequence[Operand], c: Sequence[Operand]) -> None:
        """One product."""
        given = self._widened(c) if (self._d, self._c) == ("f32", "f16") else list(c)
        count = 2 * len(c) if (self._d, self._c) == ("f32", "f16") else len(c)
        found = [next(self._fresh) for _ in range(count)]
        operands = (Group("{", tuple(found)), *factors, Group("{", tuple(given)))
        self.items.append(_new(self._item, name, *operands))
        self._found += found

    def _widened(self, c: Sequence[Operand]) -> list[Operand]:
        """float16 as float32, each in a register."""
        wide: list[Operand] = []
        for each in c:
            self.items.append(_new(self._item, "mov.b32", Group("{", _HALVES), each))
            for half in _HALVES:
                register = next(self._fresh)
                self.items.append(_new(self._item, "cvt.f32.f16", register, half))
                wide.append(register)
        return wide

    def given(self, d: Sequence[Operand]) -> list[Instruction]:
        """Put results into their registers."""
        if (self._d, self._c) == ("f16", "f32"):
            halves = zip(self._found[::2], self._found[1::2], strict=True)
            return [
                _new(self._item, "cvt.rn.f16x2.f32", register, high, low)
                for register, (low, high) in zip(d, halves, strict=True)
            ]
        kind = "mov.b64" if self._d == "f64" else "mov.b32"
        pairs = zip(d, self._found, strict=True)
        return [_new(self._item, kind, register, found) for register, found in pairs]
