"""Writes a shared library whose functions jump through a table: ELF64, without a C compiler.

The file has what the system's loader and a linker read: segments, the dynamic section, a hash table
of symbols, and headers of sections. It needs no other library and has no relocations. The table is
a symbol of its own, zeroed; whoever loads the library fills it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from typing import Final

from ferrule.runtime.binaries.elf import (
    HEADER,
    PT_DYNAMIC,
    PT_LOAD,
    SECTION,
    SEGMENT,
    SHF_ALLOC,
    SHT_DYNSYM,
    SHT_NOBITS,
    SHT_STRTAB,
    SYMBOL,
    FileType,
    Machine,
)
from ferrule.specs.deferred import dataclass

TABLE: Final = "ferrule_functions"
"""The symbol of the table: an address for each function, in their order."""

MACHINES: Final = (Machine.X86_64, Machine.AARCH64)
"""The processors whose code is known here."""

_PAGE: Final = 1 << 16
"""The largest page of the processors above."""

# Without this segment glibc makes the stacks of the process executable, or refuses the library.
_PT_GNU_STACK: Final = 0x6474E551
_EXECUTE, _WRITE, _READ = 1, 2, 4
_SHT_PROGBITS, _SHT_HASH, _SHT_DYNAMIC = 1, 5, 6
_SHF_WRITE, _SHF_EXECUTE = 1, 4
_FUNCTION, _OBJECT = 0x12, 0x11  # STB_GLOBAL << 4 | STT_FUNC, STT_OBJECT
_DT_HASH, _DT_STRTAB, _DT_SYMTAB, _DT_STRSZ, _DT_SYMENT, _DT_SONAME = 4, 5, 6, 10, 11, 14
_SEGMENTS: Final = 4


@dataclass(frozen=True, slots=True)
class _Part:
    """A section: its bytes at an address, which is its offset in the file too."""

    name: str
    kind: int
    flags: int
    address: int
    size: int
    data: bytes = b""
    link: int = 0
    info: int = 0
    entry: int = 0


@dataclass(frozen=True, slots=True)
class _Plan:
    """Where everything lies: addresses are offsets, since the file is mapped as it is."""

    symbols: int
    hashes: int
    strings: int
    code: int
    dynamic: int
    table: int
    end: int


def shared_library(soname: str, functions: Sequence[str], machine: Machine) -> bytes:
    """The file of a library of this name with these functions and `TABLE`.

    ValueError for a processor that is none of `MACHINES`.
    """
    if machine not in MACHINES:
        known = ", ".join(each.name.lower() for each in MACHINES)
        raise ValueError(f"the machine must be one of {known}, but got {machine.name.lower()}")
    names = [*functions, TABLE]
    strings, places = _strings([soname, *names])
    hashes = _hash_table(names)
    plan = _plan(len(functions), len(hashes), len(strings))
    symbols = SYMBOL.pack(0, 0, 0, 0, 0, 0) + b"".join(
        SYMBOL.pack(places[name], _FUNCTION, 0, 4, plan.code + i * STUB_SIZE, STUB_SIZE)
        for i, name in enumerate(functions)
    )
    symbols += SYMBOL.pack(places[TABLE], _OBJECT, 0, 6, plan.table, 8 * len(functions))
    code = b"".join(
        stub(machine, plan.code + i * STUB_SIZE, plan.table + 8 * i) for i in range(len(functions))
    )
    dynamic = _dynamic(plan, places[soname], len(strings))
    parts = _parts(plan, symbols, hashes, strings, code, dynamic, len(functions))
    return _file(machine, plan, parts)


def _strings(texts: Iterable[str]) -> tuple[bytes, dict[str, int]]:
    data, places = bytearray(b"\0"), {}
    for text in texts:
        places[text] = len(data)
        data += text.encode() + b"\0"
    return bytes(data), places


def _hash(name: str) -> int:
    """The hash of System V's ABI."""
    value = 0
    for byte in name.encode():
        value = (value << 4) + byte
        high = value & 0xF0000000
        value = (value ^ high >> 24) & ~high & 0xFFFFFFFF
    return value


def _hash_table(names: Sequence[str]) -> bytes:
    """Buckets and chains over the symbols; symbol 0 stands for no symbol."""
    count = max(1, len(names) // 2)
    buckets, chains = [0] * count, [0] * (len(names) + 1)
    for index, name in enumerate(names, 1):
        at = _hash(name) % count
        chains[index], buckets[at] = buckets[at], index
    words = (count, len(chains), *buckets, *chains)
    return struct.pack(f"<{len(words)}I", *words)


def _aligned(value: int, to: int) -> int:
    return -(-value // to) * to


def _plan(count: int, hashes: int, strings: int) -> _Plan:
    symbols = HEADER.size + _SEGMENTS * SEGMENT.size
    hash_at = symbols + (count + 2) * SYMBOL.size
    strings_at = hash_at + hashes
    code = _aligned(strings_at + strings, 32)
    dynamic = _aligned(code + count * STUB_SIZE, _PAGE)
    # Seven entries of 16 bytes: the six of `_DT_…`, and the one that ends them.
    table = dynamic + 7 * 16
    return _Plan(symbols, hash_at, strings_at, code, dynamic, table, table + 8 * count)


def _dynamic(plan: _Plan, soname: int, strings: int) -> bytes:
    entries = (
        (_DT_SONAME, soname),
        (_DT_HASH, plan.hashes),
        (_DT_STRTAB, plan.strings),
        (_DT_SYMTAB, plan.symbols),
        (_DT_STRSZ, strings),
        (_DT_SYMENT, SYMBOL.size),
        (0, 0),
    )
    return b"".join(struct.pack("<QQ", *each) for each in entries)


def _parts(
    plan: _Plan,
    symbols: bytes,
    hashes: bytes,
    strings: bytes,
    code: bytes,
    dynamic: bytes,
    count: int,
) -> list[_Part]:
    alloc, write = SHF_ALLOC, SHF_ALLOC | _SHF_WRITE
    of = len
    return [
        _Part(".dynsym", SHT_DYNSYM, alloc, plan.symbols, of(symbols), symbols, 3, 1, SYMBOL.size),
        _Part(".hash", _SHT_HASH, alloc, plan.hashes, of(hashes), hashes, 1, 0, 4),
        _Part(".dynstr", SHT_STRTAB, alloc, plan.strings, of(strings), strings),
        _Part(".text", _SHT_PROGBITS, alloc | _SHF_EXECUTE, plan.code, of(code), code),
        _Part(".dynamic", _SHT_DYNAMIC, write, plan.dynamic, of(dynamic), dynamic, 3, 0, 16),
        _Part(".bss", SHT_NOBITS, write, plan.table, 8 * count),
    ]


def _file(machine: Machine, plan: _Plan, parts: Sequence[_Part]) -> bytes:
    """The segments, then the sections' names and headers, which are not mapped."""
    names, places = _strings([*(part.name for part in parts), ".shstrtab"])
    names_at = plan.table
    headers = _aligned(names_at + len(names), 8)
    count = len(parts) + 2
    identity = b"\x7fELF" + bytes((2, 1, 1))
    data = bytearray(headers + count * SECTION.size)
    HEADER.pack_into(
        data, 0, FileType.LIBRARY, machine, 1, 0, HEADER.size, headers, 0,
        HEADER.size, SEGMENT.size, _SEGMENTS, SECTION.size, count, count - 1,
    )  # fmt: skip
    data[: len(identity)] = identity
    for i, segment in enumerate(_segments(plan)):
        SEGMENT.pack_into(data, HEADER.size + i * SEGMENT.size, *segment)
    for part in parts:
        data[part.address : part.address + len(part.data)] = part.data
    data[names_at : names_at + len(names)] = names
    last = _Part(".shstrtab", SHT_STRTAB, 0, 0, len(names))
    for i, part in enumerate((*parts, last), 1):
        offset = names_at if part is last else part.address
        SECTION.pack_into(
            data, headers + i * SECTION.size, places[part.name], part.kind, part.flags,
            part.address, offset, part.size, part.link, part.info, 8, part.entry,
        )  # fmt: skip
    return bytes(data)


def _segments(plan: _Plan) -> tuple[tuple[int, ...], ...]:
    code_end = plan.code + (plan.end - plan.table) // 8 * STUB_SIZE
    dynamic = plan.table - plan.dynamic
    memory = plan.end - plan.dynamic
    at = plan.dynamic
    return (
        (PT_LOAD, _READ | _EXECUTE, 0, 0, 0, code_end, code_end, _PAGE),
        (PT_LOAD, _READ | _WRITE, at, at, at, dynamic, memory, _PAGE),
        (PT_DYNAMIC, _READ | _WRITE, at, at, at, dynamic, dynamic, 8),
        # Without it the loader would make the stacks of the process executable.
        (_PT_GNU_STACK, _READ | _WRITE, 0, 0, 0, 0, 0, 16),
    )


DEINITIALIZED: Final = 4
STUB_SIZE: Final = 32
"""Bytes of one function's code, on every processor."""

_PAGE_BITS: Final = 12


def stub(machine: Machine, at: int, place: int) -> bytes:
    """The code at address `at`, which goes where the table says at address `place`."""
    code = _x86_64(at, place) if machine is Machine.X86_64 else _aarch64(at, place)
    return code.ljust(STUB_SIZE, b"\xcc" if machine is Machine.X86_64 else b"\0")


def _x86_64(at: int, place: int) -> bytes:
    load = b"\xf3\x0f\x1e\xfa\x48\x8b\x05"  # endbr64; mov rax, [rip + distance]
    behind = at + len(load) + 4
    test = b"\x48\x85\xc0\x74\x02\xff\xe0"  # test rax, rax; jz over the jump; jmp rax
    gone = b"\xb8" + struct.pack("<I", DEINITIALIZED) + b"\xc3"  # mov eax, DEINITIALIZED; ret
    return load + struct.pack("<i", place - behind) + test + gone


def _aarch64(at: int, place: int) -> bytes:
    # adrp counts pages from its own, and it is the second instruction.
    pages = (place >> _PAGE_BITS) - ((at + 4) >> _PAGE_BITS)
    low, high = pages & 3, (pages >> 2) & 0x7FFFF
    words = (
        0xD503245F,  # bti c
        0x90000010 | low << 29 | high << 5,  # adrp x16, the table's page
        0xF9400210 | (place & 0xFFF) >> 3 << 10,  # ldr x16, [x16, the place in it]
        0xB4000050,  # cbz x16, over the jump
        0xD61F0200,  # br x16
        0x52800000 | DEINITIALIZED << 5,  # mov w0, DEINITIALIZED
        0xD65F03C0,  # ret
    )
    return struct.pack("<7I", *words)
