"""Checks the tables of a shared library that the system's loader follows.

The loader trusts its file and crashes on a damaged one. So this module follows the tables first,
like the loader, unless a digest confirms the file. An offset or address outside of the library is
an `ObjectFileError`. Code, data and constructors are not checked.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Final

from ferrule.runtime.binaries import elf
from ferrule.runtime.binaries.dynamic import Dynamic, Tag, read_dynamic, symbol_count
from ferrule.runtime.binaries.elf import Machine, ObjectFileError, Segment

_ADDRESS: Final = struct.Struct("<Q")
_WORD: Final = struct.Struct("<I")
_HALF: Final = struct.Struct("<H")
_HEAD: Final = struct.Struct("<IIII")
_NEED: Final = struct.Struct("<HHIII")
_NEEDED: Final = struct.Struct("<IHHII")
_DEFINED: Final = struct.Struct("<HHHHIII")

_X, _W, _R = 1, 2, 4
_PT_TLS: Final = 7
_IN_MEMORY: Final = (_PT_TLS, elf.PT_DYNAMIC, elf.PT_NOTE, 0x6474E553, 0x6474E552)
"""Segments that the loader reads in memory; the numbers are PT_GNU_PROPERTY and PT_GNU_RELRO."""
_RELRO: Final = 0x6474E552
_MOST: Final = 1 << 40
_TEXT_CHANGES: Final = 4
_HIDDEN: Final = 0x7FFF

_RELATIVE: Final = {Machine.X86_64: 8, Machine.AARCH64: 1027, Machine.RISCV64: 3}
_INDIRECT: Final = {Machine.X86_64: 37, Machine.AARCH64: 1032, Machine.RISCV64: 58}
"""Relocations whose addend is an address; for `_INDIRECT`, the loader calls a function there."""

_STRINGS: Final = (Tag.SONAME, Tag.RPATH, Tag.RUNPATH)
_CALLED: Final = (Tag.INIT, Tag.FINI)
_ARRAYS: Final = ((Tag.INIT_ARRAY, Tag.INIT_ARRAYSZ), (Tag.FINI_ARRAY, Tag.FINI_ARRAYSZ))
_TABLES: Final = (
    (Tag.RELA, Tag.RELASZ, elf.RELOCATION.size),
    (Tag.JMPREL, Tag.PLTRELSZ, elf.RELOCATION.size),
    (Tag.RELR, Tag.RELRSZ, _ADDRESS.size),
)


def check_library(data: bytes) -> None:
    """ObjectFileError if a table would lead the loader outside of this library."""
    header = elf.read_header(data, elf.FileType.LIBRARY)
    segments = elf.read_segments(data, header)
    _check_segments(segments)
    library = read_dynamic(data, segments)
    _check_strings(library)
    _check_symbols(library)
    _check_hash(library)
    _check_versions(library)
    _check_called(library)
    _check_relocations(library, header.machine)


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise ObjectFileError(f"the library is damaged: {what}")


# ---- segments ----


def _check_segments(segments: Sequence[Segment]) -> None:
    loads = [each for each in segments if each.kind == elf.PT_LOAD]
    _require(bool(loads), "nothing of it is loaded")
    end = 0
    for load in loads:
        power = load.align & (load.align - 1) == 0
        _require(power and load.align < _MOST, f"a segment is aligned to {load.align}")
        fits = load.size <= load.memory and load.address + load.memory < _MOST
        _require(fits, f"a segment takes {load.memory} bytes at {load.address:#x}")
        _require(load.address >= end, "its segments overlap")
        _require(load.memory == load.size or bool(load.flags & _W), "zeros are read-only")
        end = load.address + load.memory
    dynamic = [each for each in segments if each.kind == elf.PT_DYNAMIC]
    _require(len(dynamic) == 1, f"it has {len(dynamic)} dynamic sections")
    _require(sum(each.kind == _PT_TLS for each in segments) <= 1, "it has two of thread-local data")
    for each in segments:
        if each.kind in _IN_MEMORY and each.memory:
            _check_in_memory(loads, each)


def _check_in_memory(loads: Sequence[Segment], segment: Segment) -> None:
    """Check that a segment which the loader reads in memory is part of a loaded segment."""
    home = next((load for load in loads if _holds(load, segment.address, segment.memory)), None)
    if home is None and segment.kind == _PT_TLS:  # zeros of thread-local data are in no segment
        home = next((load for load in loads if _holds(load, segment.address, segment.size)), None)
    what = f"a segment of type {segment.kind:#x} at {segment.address:#x}"
    if home is None:
        # The part that becomes read-only (RELRO) extends to the end of a page.
        known = segment.kind == _RELRO and any(_holds(e, segment.address, 1) for e in loads)
        _require(known and segment.memory < _MOST, f"{what} is not loaded")
        return
    _require(bool(home.flags & _R), f"{what} cannot be read")
    same = segment.offset - home.offset == segment.address - home.address
    _require(same or not segment.size, f"{what} is at another place of the file")
    if segment.kind == elf.PT_DYNAMIC:
        _require(not segment.flags & _W or bool(home.flags & _W), f"{what} cannot be written")
    if segment.kind == _PT_TLS:
        _require(segment.align & (segment.align - 1) == 0, f"{what} is aligned to {segment.align}")
        _require(segment.size <= segment.memory, f"{what} has {segment.size} bytes")


def _holds(load: Segment, address: int, size: int) -> bool:
    return load.address <= address and address + size <= load.address + load.memory


# ---- tables ----


def _check_strings(library: Dynamic) -> None:
    size = library.values.get(Tag.STRSZ, 0)
    at = library.table(Tag.STRTAB, size)
    _require(at is not None and size > 0, "it has no strings")
    assert at is not None
    _require(library.data[at + size - 1] == 0, "its strings have no end")
    given = [library.values[tag] for tag in _STRINGS if tag in library.values]
    _require(all(each < size for each in (*library.needed, *given)), "a name is not in its strings")


def _check_symbols(library: Dynamic) -> None:
    _require(library.values.get(Tag.SYMENT) == elf.SYMBOL.size, "its symbols have another size")
    _require(Tag.REL not in library.values, "its relocations have another form")
    count, limit = symbol_count(library), library.values.get(Tag.STRSZ, 0)
    at = library.table(Tag.SYMTAB, count * elf.SYMBOL.size)
    _require(at is not None, "it has no symbols")
    assert at is not None
    table = memoryview(library.data)[at : at + count * elf.SYMBOL.size]
    loads = library.loads
    for name, info, _, where, value, _ in elf.SYMBOL.iter_unpack(table):
        _require(name < limit, "a symbol's name is not in its strings")
        if where in (elf.SHN_UNDEF, elf.SHN_ABS) or info & 15 in (3, 4, 6):
            continue  # sections, files and thread-local data are at no address
        inside = any(load.address <= value <= load.address + load.memory for load in loads)
        _require(inside, f"a symbol is at {value:#x}")
        # STT_GNU_IFUNC: the loader calls the function to find the symbol's address.
        if info & 15 == 10:
            _require(_is_code(library, value), f"a function to be called is at {value:#x}")


def _check_hash(library: Dynamic) -> None:
    """Check both kinds of hash tables: entries must be symbols, and chains must end."""
    plain = library.values.get(Tag.HASH)
    if plain is not None:
        buckets, count = struct.unpack("<II", _bytes(library, plain, 8))
        _require(buckets > 0, "its hash table is empty")
        words = _bytes(library, plain + 8, 4 * (buckets + count))
        links = [word for (word,) in _WORD.iter_unpack(words)]
        _require(all(link < count for link in links), "its hash table leads nowhere")
        _check_chains(links[:buckets], links[buckets:])
    table = library.values.get(Tag.GNU_HASH)
    if table is not None:
        buckets, first, bloom, shift = _HEAD.unpack(_bytes(library, table, _HEAD.size))
        power = bloom > 0 and bloom & (bloom - 1) == 0
        _require(power and buckets > 0 and shift < 64, "its hash table is empty")
        words = _bytes(library, table + _HEAD.size + 8 * bloom, 4 * buckets)
        starts = (word for (word,) in _WORD.iter_unpack(words))
        _require(all(at == 0 or at >= first for at in starts), "its hash table leads nowhere")


def _check_chains(starts: Sequence[int], following: Sequence[int]) -> None:
    """Check that each chain ends: all together have at most as many links as entries."""
    left = len(following) + len(starts)
    for at in starts:
        while at and left:
            at, left = following[at], left - 1
    _require(left > 0, "its hash table has no end")


def _check_versions(library: Dynamic) -> None:
    # 0 and 1 are symbols without a version, local and global.
    known = {0, 1, *_needed_versions(library), *_defined_versions(library)}
    address = library.values.get(Tag.VERSYM)
    if address is not None:
        words = _bytes(library, address, 2 * symbol_count(library))
        numbers = {word & _HIDDEN for (word,) in _HALF.iter_unpack(words)}
        _require(numbers <= known, "a symbol has a version that there is not")


def _needed_versions(library: Dynamic) -> Iterator[int]:
    limit = library.values.get(Tag.STRSZ, 0)
    at = library.values.get(Tag.VERNEED, 0)
    for left in range(library.values.get(Tag.VERNEEDNUM, 0) if at else 0, 0, -1):
        form, count, file, aux, following = _NEED.unpack(_bytes(library, at, _NEED.size))
        names = {_name(library, each) for each in library.needed}
        _require(form == 1 and _name(library, file) in names, "a version is of no library")
        inner = at + aux
        for more in range(count, 0, -1):
            _, _, number, name, step = _NEEDED.unpack(_bytes(library, inner, _NEEDED.size))
            _require(name < limit, "a version's name is not in its strings")
            _require((step > 0) == (more > 1), "its versions end early")
            yield number & _HIDDEN
            inner += step
        _require((following > 0) == (left > 1), "its versions end early")
        at += following


def _defined_versions(library: Dynamic) -> Iterator[int]:
    limit = library.values.get(Tag.STRSZ, 0)
    at = library.values.get(Tag.VERDEF, 0)
    for left in range(library.values.get(Tag.VERDEFNUM, 0) if at else 0, 0, -1):
        form, _, number, _, _, aux, following = _DEFINED.unpack(_bytes(library, at, _DEFINED.size))
        (name,) = _WORD.unpack(_bytes(library, at + aux, _WORD.size))
        _require(form == 1 and name < limit, "a version's name is not in its strings")
        _require((following > 0) == (left > 1), "its versions end early")
        yield number & _HIDDEN
        at += following


def _name(library: Dynamic, at: int) -> bytes:
    start = library.place(library.values[Tag.STRTAB] + at, 1, "a name")
    return library.data[start : library.data.index(b"\0", start)]


def _bytes(library: Dynamic, address: int, size: int) -> bytes:
    at = library.place(address, size, "a table")
    return library.data[at : at + size]


# ---- what is called, and what is changed ----


def _check_called(library: Dynamic) -> None:
    for tag in _CALLED:
        at = library.values.get(tag, 0)
        _require(not at or _is_code(library, at), f"{tag.name} is no code")
    for tag, size_tag in _ARRAYS:
        size = library.values.get(size_tag, 0)
        _require(size % _ADDRESS.size == 0, f"{tag.name} has {size} bytes")
        if size:
            library.table(tag, size)
        _require(not size or tag in library.values, f"there is no {tag.name}")


def _is_code(library: Dynamic, address: int) -> bool:
    return any(
        load.flags & _X and load.address <= address < load.address + load.memory
        for load in library.loads
    )


def _check_relocations(library: Dynamic, machine: Machine) -> None:
    for tag, size_tag, step in _TABLES:
        size = library.values.get(size_tag, 0)
        _require(size % step == 0, f"{tag.name} has {size} bytes")
        if not size:
            continue
        at = library.table(tag, size)
        _require(at is not None, f"there is no {tag.name}")
        assert at is not None
        part = library.data[at : at + size]
        if tag is Tag.RELR:
            _check_packed(library, part)
        else:
            # The loader adds the base to so many without looking at their kind.
            leading = library.values.get(Tag.RELACOUNT, 0) if tag is Tag.RELA else 0
            _check_each(library, machine, part, leading)
    entry = library.values.get(Tag.RELAENT, elf.RELOCATION.size)
    _require(entry == elf.RELOCATION.size, "its relocations have another size")
    _require(library.values.get(Tag.PLTREL, Tag.RELA) == Tag.RELA, "they have another form")


def _check_each(library: Dynamic, machine: Machine, part: bytes, leading: int) -> None:
    relative, indirect = _RELATIVE[machine], _INDIRECT[machine]
    arrays = [(library.values.get(at, 0), library.values.get(n, 0)) for at, n in _ARRAYS]
    writable = _writable(library)
    symbols = library.values.get(Tag.SYMTAB, 0)
    named: set[int] = set()
    for i, (at, info, addend) in enumerate(elf.RELOCATION.iter_unpack(part)):
        kind = info & 0xFFFFFFFF
        inside = any(first <= at and at + _ADDRESS.size <= end for first, end in writable)
        _require(inside or kind == 0, f"a relocation changes {at:#x}")
        _require(i >= leading or kind == relative, "its relocations are not in order")
        named.add(info >> 32)
        is_called = kind == relative and any(0 <= at - first < size for first, size in arrays)
        if kind == indirect or is_called:
            _require(_is_code(library, addend), f"what is called at {addend:#x} is no code")
    for number in named:
        place = library.place(symbols + number * elf.SYMBOL.size, elf.SYMBOL.size, "a symbol")
        (name,) = _WORD.unpack_from(library.data, place)
        _require(name < library.values.get(Tag.STRSZ, 0), "a symbol's name is not in its strings")


def _check_packed(library: Dynamic, part: bytes) -> None:
    writable, at = _writable(library), 0
    for (word,) in _ADDRESS.iter_unpack(part):
        changed = [word]
        # DT_RELR: an even word is an address, an odd one says which of the next 63 words change.
        if word & 1:
            changed = [at + 8 * bit for bit in range(63) if word >> bit + 1 & 1]
        for each in changed:
            inside = any(first <= each and each + 8 <= end for first, end in writable)
            _require(inside, f"a relocation changes {each:#x}")
        at = at + 63 * 8 if word & 1 else word + 8


def _writable(library: Dynamic) -> list[tuple[int, int]]:
    """The address ranges that the loader may write; with text relocations, all of them."""
    flags = library.values.get(Tag.FLAGS, 0)
    anywhere = Tag.TEXTREL in library.values or flags & _TEXT_CHANGES
    return [
        (load.address, load.address + load.memory)
        for load in library.loads
        if anywhere or load.flags & _W
    ]
