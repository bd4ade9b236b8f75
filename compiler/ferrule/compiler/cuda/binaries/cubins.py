"""Reads cubins, NVIDIA's ELF files of machine code: architecture, kernels, their parameters.

There is no public description.  These facts were found by comparing the output of ptxas 12.9, 13.0
and 13.4 and NVRTC 13.5 for kernels that differ in one thing, for architectures from sm_75 to
sm_121:

* e_machine is 190.  The number of the architecture is the low byte of e_flags if EI_OSABI is 51
  (ABI version 7, CUDA 12), the second byte if it is 65 (version 8, CUDA 13, and 12 for sm_100 and
  newer).  The suffix `a` sets 0x800 in the former and, with ptxas 12.9, 0x8 in the latter; ptxas 13
  sets no flag for `a` and `f`, but the note of the tool, of type 2000, has its command line: `-arch
  sm_90a`.
* A kernel is a function's symbol with 0x10 in st_other.
* Sections of type 0x70000000 with sh_info have the facts about the function whose code is in that
  section: entries of a format, a code and a 16-bit value, which for format 4 is a length.
* A parameter is an index, the ordinal, the offset and a word.  In this word, the low byte is the
  logarithm of the pointee's alignment, the four bits above it are its state space (1 local, 2
  shared, 4 global and constant, 5 any), and the upper 14 bits are the size.  If parameters take
  more than 4 KB, and in cubins of tileiras, the size is the low half, and the other two are a byte
  each above it.
* Variables are symbols of type object: uninitialised ones are in a section of type NOBITS without
  sh_info, those of constant memory in a section with bytes, which are 0 without an initial value.
  A cubin does not show which kernel uses them.
* Shared memory is a section of type NOBITS with sh_info.  If the symbol `.nv.reservedSmem` is
  referred to (sm_90 and newer), it includes 1024 bytes that CUDA reserves.

The reader does not rely on the position or name of any section.
"""

from __future__ import annotations

import re
import struct
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from enum import IntEnum
from functools import lru_cache
from typing import Final

from ferrule.compiler.cuda.binaries.parameters import (
    Dims,
    KernelParameter,
    KernelParameters,
    Variable,
)
from ferrule.runtime.binaries import elf
from ferrule.runtime.binaries.elf import ObjectFileError, Section
from ferrule.specs.deferred import dataclass

# EM_CUDA.
MACHINE: Final = 190
FATBIN: Final = b"\x50\xed\x55\xba"

_OS_ABI: Final = 7
"""The position of EI_OSABI."""
_OLD_ABI: Final = 51
_NEW_ABI: Final = 65
_OLD_SPECIAL: Final = 0x800
_NEW_SPECIAL: Final = 0x8
_ENTRY: Final = 0x10
_FUNCTION: Final = 2
_OBJECT: Final = 1
_OWN: Final = ("$", ".", "__nv_", "__cuda")
"""Prefixes of a compiler's own variables."""
_INFO: Final = 0x70000000
_TOOL_NOTE: Final = 2000
_RESERVED: Final = 1024
_RESERVING: Final = ".nv.reservedSmem."
_NAMED_ARCH: Final = re.compile(rb"-arch[ =](sm_\d+[af]?)\b")
_HEAD: Final = struct.Struct("<BBH")
_SIZED: Final = 4


class Info(IntEnum):
    """The meanings of the codes of information entries about a kernel."""

    MAX_BLOCK = 0x05
    REQUIRED_BLOCK = 0x10
    PARAMETER = 0x17
    REGISTERS = 0x2F
    CLUSTER = 0x3D
    LONG_PARAMETER = 0x45


_DIMS: Final = struct.Struct("<III")
_PARAMETER: Final = struct.Struct("<IHHI")
"""An index, the ordinal, the offset, and the word with the size."""
_SIZE_SHIFT: Final = 18
_LONG_SIZE: Final = 0xFFFF
"""The mask of the size in a long parameter's word; above it are facts about the pointee."""
_REGISTERS: Final = struct.Struct("<II")


@dataclass(frozen=True, slots=True)
class Cubin:
    """The content of a cubin: its architecture, and its kernels in the order of their symbols."""

    arch: str
    kernels: tuple[KernelParameters, ...]


@lru_cache(maxsize=32)  # a launch asks for kernels, sizes and parameters, one by one
def read_cubin(data: bytes) -> Cubin:
    """Read a cubin.  ObjectFileError, a ValueError, for data that is not a cubin, is damaged or not
    linked."""
    flags, sections = _read_headers(data)
    arch = _arch(data, flags, sections)
    symbols = [
        symbol
        for table in sections
        if table.kind == elf.SHT_SYMTAB
        for symbol in _symbols(data, sections, table)
    ]
    registers = _registers(data, sections)
    reserved = _RESERVED if any(each.name.startswith(_RESERVING) for each in symbols) else 0
    about = _by_code(sections)
    variables = tuple(_variables(data, sections, symbols))
    kernels = (
        _described(
            KernelParameters(
                symbol.name,
                arch,
                (),
                registers=registers.get(symbol.index),
                variables=variables,
            ),
            _facts(data, about[symbol.section]),
            max(0, _shared(about[symbol.section]) - reserved),
        )
        for symbol in symbols
        if symbol.is_kernel and elf.section_at(sections, symbol.section, None, symbol.name)
    )
    return Cubin(arch, tuple(kernels))


def _read_headers(data: bytes) -> tuple[int, list[Section]]:
    """The flags, and the sections, each within the file."""
    if data.startswith(FATBIN):
        raise ObjectFileError(
            "wanted a cubin, got a fatbin, which has several: take them out of it with "
            "cuobjdump -xelf all, or the PTX with cuobjdump -xptx all"
        )
    if data[:4] != b"\x7fELF" and b".version" in data[:4096] and b".target" in data[:4096]:
        raise ObjectFileError("wanted a cubin, got PTX: that is for DeviceCode.from_ptx")
    try:
        elf.check_magic(data)
    except ObjectFileError as error:
        said = str(error).replace("wanted an ELF object", "wanted a cubin")
        raise ObjectFileError(said) from None
    kind, machine, _, _, segments_at, at, flags, _, segment_size, segments, size, count, _ = (
        elf.unpack(elf.HEADER, data, 0, "the ELF header")
    )
    if machine != MACHINE:
        known = {each.value: f"code for {each.name.lower()}" for each in elf.Machine}
        got = known.get(machine, f"ELF machine {machine}")
        raise ObjectFileError(f"wanted a cubin (ELF machine {MACHINE}), got {got}")
    if kind == elf.FileType.OBJECT:
        raise ObjectFileError(
            "wanted a linked cubin, got relocatable device code: compile it without -rdc=true and "
            "-dc, or link it with nvcc -dlink -cubin"
        )
    if size != elf.SECTION.size or not count:
        raise ObjectFileError(f"wanted section headers of {elf.SECTION.size} bytes, got {size}")
    elf.check_inside(data, at, size * count, "the section headers")
    elf.check_inside(data, segments_at, segment_size * segments, "the program headers")
    sections = [elf.read_section(data, at + size * number) for number in range(count)]
    for section in sections:
        if section.kind not in (0, elf.SHT_NOBITS):
            elf.check_inside(data, section.offset, section.size, "a section")
    return flags, sections


def _arch(data: bytes, flags: int, sections: Sequence[Section]) -> str:
    """The architecture, such as sm_90a; see the description of this module."""
    version = data[_OS_ABI]
    if version not in (_OLD_ABI, _NEW_ABI):
        raise ObjectFileError(
            f"wanted a cubin of ABI {_OLD_ABI} (CUDA 12) or {_NEW_ABI} (CUDA 13), got {version}"
        )
    old = version == _OLD_ABI
    # See the description of this module for these bits.
    number = flags & 0xFF if old else flags >> 8 & 0xFF
    arch = f"sm_{number}"
    for section in sections:
        if section.kind != elf.SHT_NOTE:
            continue
        for note in elf.read_notes(data, section.offset, section.size, section.align):
            named = _NAMED_ARCH.search(note.text) if note.kind == _TOOL_NOTE else None
            if named is not None and named[1].decode().rstrip("af") == arch:
                return named[1].decode()
    special = flags & (_OLD_SPECIAL if old else _NEW_SPECIAL)
    return f"{arch}a" if special else arch


@dataclass(frozen=True, slots=True)
class _Symbol:
    """A symbol: its position in the table, and the section that contains it."""

    name: str
    index: int
    section: int
    is_kernel: bool
    is_variable: bool
    value: int
    size: int


def _symbols(data: bytes, sections: Sequence[Section], table: Section) -> Iterator[_Symbol]:
    if table.entry_size != elf.SYMBOL.size or table.size % elf.SYMBOL.size:
        raise ObjectFileError(f"wanted symbols of {elf.SYMBOL.size} bytes, got another size")
    strings = elf.section_at(sections, table.link, elf.SHT_STRTAB, "the names of symbols")
    names = data[strings.offset : strings.offset + strings.size]
    for index, (at, info, other, where, value, size) in enumerate(
        elf.entries(elf.SYMBOL, data, table)
    ):
        kind = info & 0xF
        # The high half of st_info is the binding, the low half the type.
        is_kernel = info >> 4 != elf.STB_LOCAL and kind == _FUNCTION and bool(other & _ENTRY)
        name = elf.read_name(names, at)
        yield _Symbol(name, index, where, is_kernel, kind == _OBJECT, value, size)


def _variables(
    data: bytes, sections: Sequence[Section], symbols: Sequence[_Symbol]
) -> Iterator[Variable]:
    """The variables of the module, without the compiler's own, and without those in shared memory,
    which belong to the code of a kernel."""
    for symbol in symbols:
        own = symbol.name.startswith(_OWN) or not symbol.size
        if own or not symbol.is_variable or not 0 < symbol.section < len(sections):
            continue
        section = sections[symbol.section]
        if section.info and section.kind == elf.SHT_NOBITS:
            continue
        start = section.offset + symbol.value
        has_bytes = section.kind != elf.SHT_NOBITS
        is_set = has_bytes and any(data[start : start + symbol.size])
        yield Variable(symbol.name, symbol.size, is_set, is_constant=has_bytes)


def _entries(data: bytes, section: Section) -> Iterator[tuple[int, bytes]]:
    """The codes of a section of information, each with its value."""
    at, end = section.offset, section.offset + section.size
    while at + _HEAD.size <= end:
        form, code, value = _HEAD.unpack_from(data, at)
        at += _HEAD.size
        size = value if form == _SIZED else 0
        if size > end - at:
            raise ObjectFileError("the cubin is damaged: what it says of a kernel is cut off")
        yield code, data[at : at + size] if size else value.to_bytes(2, "little")
        at += size


def _by_code(sections: Sequence[Section]) -> Mapping[int, list[Section]]:
    """The sections with facts about the code in another section, by its number."""
    found: defaultdict[int, list[Section]] = defaultdict(list)
    for section in sections:
        if section.kind in (_INFO, elf.SHT_NOBITS):
            found[section.info].append(section)
    return found


def _facts(data: bytes, about: Sequence[Section]) -> list[tuple[int, bytes]]:
    """The facts about a function."""
    return [entry for each in about if each.kind == _INFO for entry in _entries(data, each)]


def _registers(data: bytes, sections: Sequence[Section]) -> dict[int, int]:
    """The registers of functions by the positions of their symbols."""
    whole = (each for each in sections if each.kind == _INFO and not each.info)
    found = (
        _unpack(_REGISTERS, value)
        for section in whole
        for code, value in _entries(data, section)
        if code == Info.REGISTERS
    )
    return {value[0]: value[1] for value in found}


def _shared(about: Sequence[Section]) -> int:
    """The bytes of static shared memory of a function."""
    return sum(each.size for each in about if each.kind == elf.SHT_NOBITS)


def _described(
    kernel: KernelParameters, facts: Sequence[tuple[int, bytes]], shared: int
) -> KernelParameters:
    """A kernel with its facts."""
    parameters: dict[int, KernelParameter] = {}
    dims: dict[int, Dims] = {}
    for code, value in facts:
        match code:
            case Info.PARAMETER | Info.LONG_PARAMETER:
                _, ordinal, offset, word = _unpack(_PARAMETER, value)
                long = code == Info.LONG_PARAMETER
                size = word & _LONG_SIZE if long else word >> _SIZE_SHIFT
                parameters[ordinal] = KernelParameter(offset, size)
            case Info.MAX_BLOCK | Info.REQUIRED_BLOCK | Info.CLUSTER:
                x, y, z = _unpack(_DIMS, value)
                dims[code] = x, y, z
    if sorted(parameters) != list(range(len(parameters))):
        raise ObjectFileError(
            f"the cubin is damaged: of the parameters of {kernel.kernel} it has "
            f"{sorted(parameters)}"
        )
    return replace(
        kernel,
        parameters=tuple(parameters[ordinal] for ordinal in sorted(parameters)),
        required_block=dims.get(Info.REQUIRED_BLOCK),
        max_block=dims.get(Info.MAX_BLOCK),
        cluster=dims.get(Info.CLUSTER),
        static_shared=shared,
    )


def _unpack(form: struct.Struct, value: bytes) -> tuple[int, ...]:
    if len(value) < form.size:
        raise ObjectFileError("the cubin is damaged: what it says of a kernel is cut off")
    return form.unpack_from(value)
