"""ferrule's own linker: one object of its own code into this process, without LLVM.

An object's loaded sections are put behind each other into a block of memory (`codememory`), with a
global offset table and stubs for what may be far away; relocations are applied; its table for
unwinding is made known. What this linker does not know (a relocation, a kind of section, data of
threads, a symbol out of reach) raises `Unlinkable` before anything of the object can run, and LLVM
links the object instead. `read_object` has checked the object's structure.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from ferrule.runtime.binaries import elf
from ferrule.runtime.binaries.elf import Machine
from ferrule.runtime.linking import codememory, unwinding
from ferrule.runtime.linking.codememory import (
    CODE,
    CONSTANTS,
    VARIABLE,
    VARIABLES,
    Block,
    NoMemoryError,
    Sizes,
)
from ferrule.runtime.linking.relocation import U64, Site, Unlinkable

__all__ = ["Linked", "Unlinkable", "link"]

_NAMED: Final = "perfmap"
"""Asks for a map of functions, which perf looks up in anonymous memory alone."""

_WRITE, _EXECUTE = 1, 4
_KINDS: Final = frozenset((1, elf.SHT_NOTE, elf.SHT_NOBITS, 14, 15, 0x70000001))
"""Sections with bytes, notes, zeros, initialisers, finalisers, and tables for unwinding."""

_DATA: Final = frozenset((0, 1, 2, 3))
"""Symbols of no kind, of data, functions and sections; not of threads, nor resolved by code."""

_TABLE_SYMBOL: Final = "_GLOBAL_OFFSET_TABLE_"
_FRAMES: Final = b".eh_frame"
_RELOCATED: Final = b".data.rel.ro"
# The unwinder walks entries until a length of zero.
_END: Final = bytes(4)
_SLOT: Final = 8
_LARGEST: Final = 1 << 30

_Relocation = tuple[int, int, int, int, int]
"""Part, offset in the part, kind, symbol, addend."""


class Linked:
    """An object in this process: the addresses of the symbols that it defines."""

    __slots__ = ("_block", "_frames", "addresses")

    def __init__(self, block: Block, frames: tuple[int, ...], addresses: Mapping[str, int]) -> None:
        self._block = block
        self._frames = frames
        self.addresses = addresses

    def free(self) -> None:
        """Take the object out of the process; nothing may run or use it any more."""
        for frames in self._frames:
            unwinding.forget(frames)
        self._block.release()


def link(
    data: bytes, machine: Machine, imports: Mapping[str, int], names: tuple[str, ...]
) -> Linked:
    """Link an object whose undefined symbols have the addresses `imports`.

    Returns it with the addresses of these names.  Unlinkable where only LLVM can link it.
    """
    linking = _Linking(data, _rules(machine), imports)
    linked = linking.linked(names)
    if _asked():
        from ferrule.runtime.linking import jitinfo

        jitinfo.tell(data, linking.code)
    return linked


def _asked() -> str:
    return os.environ.get(VARIABLE, "")


def _rules(machine: Machine) -> Any:
    """The module with the relocations of a machine."""
    match machine:
        case Machine.X86_64:
            from ferrule.runtime.linking import x86_64

            return x86_64
        case Machine.AARCH64:
            from ferrule.runtime.linking import aarch64

            return aarch64
        case _:
            raise Unlinkable(f"there are no rules for {machine.name.lower()}")


class _Linking:
    """The state of one link.

    `_parts` are the bytes of code, constants and variables, `_homes` the part and offset of each
    section that is loaded, `_slots` and `_stubs` the offsets of a symbol's entry in the global
    offset table, which is among the constants, and of its stub, which is among the code.
    """

    def __init__(self, data: bytes, rules: Any, imports: Mapping[str, int]) -> None:
        self._data = data
        self._rules = rules
        self._imports = imports
        header = elf.read_header(data, elf.FileType.OBJECT)
        table = data[header.sections.start : header.sections.stop]
        self._sections = list(elf.SECTION.iter_unpack(table))
        self._section_names = self._bytes_of(header.names)
        self._parts = bytearray(), bytearray(), bytearray()
        self._homes: dict[int, tuple[int, int]] = {}
        self._frames: list[tuple[int, int]] = []
        self._slots: dict[int, int] = {}
        self._stubs: dict[int, int] = {}
        self._table = self._size = 0
        self._align = 1
        self._symbols = list(self._read_symbols())
        self.code: dict[int, int] = {}
        """The addresses of the sections with code, once it is linked."""

    def linked(self, names: tuple[str, ...]) -> Linked:
        """The object, linked."""
        self._place_sections()
        relocations = list(self._relocations())
        # The table and the stubs lie in the same parts, whose sizes the memory needs.
        self._place_table(relocations)
        code, constants, _ = map(len, self._parts)
        try:
            sizes = code, constants, self._size
            block = codememory.allocate(sizes, self._align, alone=_NAMED in _asked())
        except NoMemoryError as error:
            raise Unlinkable(str(error)) from None
        try:
            return self._written(block, relocations, names)
        except (Unlinkable, NoMemoryError) as error:
            block.release()
            raise Unlinkable(str(error)) from None

    def _written(
        self, block: Block, relocations: Iterable[_Relocation], names: tuple[str, ...]
    ) -> Linked:
        bases = block.addresses
        addresses = [self._address(symbol, name, bases) for name, symbol in self._symbols]
        self._write_table(bases, addresses)
        self._relocate(bases, addresses, relocations)
        # The table for unwinding is checked with its addresses, and before anything is executable.
        frames = self._checked_frames(bases)
        found = {name: at for (name, _), at in zip(self._symbols, addresses, strict=True)}
        defined = {name: _known(found.get(name)) for name in names}
        block.fill(self._parts)
        homes = self._homes.items()
        self.code = {i: bases[CODE] + at for i, (part, at) in homes if part == CODE}
        for at in frames:
            unwinding.register(at)
        return Linked(block, frames, defined)

    def _bytes_of(self, section: int) -> bytes:
        _, _, _, _, at, size, *_ = self._sections[section]
        return self._data[at : at + size]

    def _read_symbols(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        for i, (_, kind, _, _, _, _, link, *_) in enumerate(self._sections):
            if kind == elf.SHT_SYMTAB:
                names = self._bytes_of(link)
                for symbol in elf.SYMBOL.iter_unpack(self._bytes_of(i)):
                    yield elf.read_name(names, symbol[0]), symbol

    def _place_sections(self) -> None:
        """Find a place for each section that is loaded; zeros are behind all other variables."""
        loaded = [i for i, section in enumerate(self._sections) if section[2] & elf.SHF_ALLOC]
        if sum(self._sections[i][5] for i in loaded) > _LARGEST:
            raise Unlinkable("it is too large")
        zeros = [i for i in loaded if self._sections[i][1] == elf.SHT_NOBITS]
        for i in loaded:
            if i not in zeros:
                self._place(i)
        self._size = len(self._parts[VARIABLES])
        for i in zeros:
            self._place_zeros(i)

    def _place(self, i: int) -> None:
        name_at, kind, flags, _, at, size, _, _, align, _ = self._sections[i]
        if kind not in _KINDS:
            raise Unlinkable(f"it has a section of type {kind}")
        name = self._section_names[name_at : self._section_names.find(b"\0", name_at)]
        part = _part_of(flags, name)
        self._homes[i] = part, self._append(part, self._data[at : at + size], align)
        if name == _FRAMES and size:
            if part != CONSTANTS or unwinding.unwinder() is None:
                raise Unlinkable("its table for unwinding cannot be made known")
            self._frames.append((self._homes[i][1], size))
            self._append(part, _END, 1)

    def _place_zeros(self, i: int) -> None:
        _, _, flags, _, _, size, _, _, align, _ = self._sections[i]
        if _part_of(flags, b"") != VARIABLES:
            raise Unlinkable("it has constants without bytes")
        self._align = max(self._align, align)
        self._homes[i] = VARIABLES, -(-self._size // align) * align
        self._size = self._homes[i][1] + size

    def _append(self, part: int, data: bytes, align: int) -> int:
        """Put bytes at the end of a part; returns their offset."""
        self._align = max(self._align, align)
        into = self._parts[part]
        into += bytes(-len(into) % align)
        into += data
        return len(into) - len(data)

    def _relocations(self) -> Iterator[_Relocation]:
        """The relocations of sections that are loaded; Unlinkable for a kind without a rule."""
        rules = self._rules.RULES
        for i, (_, kind, _, _, _, _, _, changed, _, _) in enumerate(self._sections):
            if kind != elf.SHT_RELA or changed not in self._homes:
                continue
            part, start = self._homes[changed]
            size = self._sections[changed][5]
            for at, info, addend in elf.RELOCATION.iter_unpack(self._bytes_of(i)):
                rule = rules.get(info & 0xFFFFFFFF)
                if rule is None or at + rule[0] > size:
                    raise Unlinkable(f"it has a relocation of kind {info & 0xFFFFFFFF} at {at}")
                yield part, start + at, info & 0xFFFFFFFF, info >> 32, addend

    def _place_table(self, relocations: Iterable[_Relocation]) -> None:
        """Find places for the global offset table and for the stubs, which need its entries."""
        rules = self._rules
        slots: dict[int, None] = {}
        for _, _, kind, symbol, _ in relocations:
            if kind in rules.STUBS and self._symbols[symbol][1][3] == elf.SHN_UNDEF:
                slots[symbol] = self._stubs[symbol] = None  # type: ignore[assignment]
            elif kind in rules.SLOTS:
                slots[symbol] = None
        self._table = self._append(CONSTANTS, b"", _SLOT)
        for symbol in slots:
            self._slots[symbol] = self._append(CONSTANTS, bytes(_SLOT), _SLOT)
        for symbol in self._stubs:
            stub = bytes(rules.STUB_SIZE)
            self._stubs[symbol] = self._append(CODE, stub, rules.STUB_SIZE)

    def _address(self, symbol: tuple[int, ...], name: str, bases: Sizes) -> int | None:
        """The address of a symbol; None for one that nothing which is loaded may use."""
        _, info, _, home, value, _ = symbol
        if info & 15 not in _DATA:
            return None
        if home == elf.SHN_ABS:
            return value
        if home == elf.SHN_UNDEF:
            table = bases[CONSTANTS] + self._table if name == _TABLE_SYMBOL else None
            return self._imports.get(name, table)
        if home not in self._homes:
            return None
        part, start = self._homes[home]
        return bases[part] + start + value

    def _write_table(self, bases: Sizes, addresses: list[int | None]) -> None:
        constants, code = self._parts[CONSTANTS], self._parts[CODE]
        for symbol, at in self._slots.items():
            value = _known(addresses[symbol]) & U64
            constants[at : at + _SLOT] = value.to_bytes(_SLOT, "little")
        for symbol, at in self._stubs.items():
            slot = bases[CONSTANTS] + self._slots[symbol]
            text = self._rules.stub(bases[CODE] + at, slot)
            code[at : at + len(text)] = text

    def _relocate(
        self, bases: Sizes, addresses: list[int | None], relocations: Iterable[_Relocation]
    ) -> None:
        site, rules, slots, stubs = Site(), self._rules.RULES, self._slots, self._stubs
        site.table = bases[CONSTANTS] + self._table
        for part, at, kind, symbol, addend in relocations:
            site.code, site.at, site.place = self._parts[part], at, bases[part] + at
            site.symbol, site.addend = _known(addresses[symbol]), addend
            site.slot = bases[CONSTANTS] + slots[symbol] if symbol in slots else 0
            site.stub = bases[CODE] + stubs[symbol] if symbol in stubs else 0
            rules[kind][1](site)

    def _checked_frames(self, bases: Sizes) -> tuple[int, ...]:
        """The addresses of the tables for unwinding."""
        code = range(bases[CODE], bases[CODE] + len(self._parts[CODE]))
        for at, size in self._frames:
            table = self._parts[CONSTANTS][at : at + size]
            unwinding.check(table, bases[CONSTANTS] + at, code)
        return tuple(bases[CONSTANTS] + at for at, _ in self._frames)


def _known(address: int | None) -> int:
    if address is None:
        raise Unlinkable("it needs a symbol of a kind that only LLVM knows")
    return address


def _part_of(flags: int, name: bytes) -> int:
    """The part of a block for a section."""
    if flags & _EXECUTE:
        if flags & _WRITE:
            raise Unlinkable("it has code that writes itself")
        return CODE
    is_relocated = name == _RELOCATED or name.startswith(_RELOCATED + b".")
    return VARIABLES if flags & _WRITE and not is_relocated else CONSTANTS
