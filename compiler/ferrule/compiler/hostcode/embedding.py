"""Embeds a foreign object file into the objects of functions, without a linker.

Its sections become assembly that copies their bytes, with a directive for each relocation.  So the
code is in every place where a body is: in this process, and in every exported file.  None of its
symbols is visible outside of the object that it becomes a part of.

It supports ELF and the processor of this process.  The code and data of an object are copied;
frames for unwinding are omitted, so code that throws and catches exceptions is refused, and so is
code that must run before the first call.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from hashlib import sha256
from types import MappingProxyType
from typing import Final

from ferrule.compiler.artefacts import Embedded
from ferrule.compiler.errors import CompileError, Diagnostic
from ferrule.compiler.hostcode import advice
from ferrule.compiler.support.placement import as_ascii
from ferrule.compiler.support.precompiled import RELOCATIONS
from ferrule.runtime.binaries import elf
from ferrule.runtime.binaries.elf import Machine, ObjectFileError
from ferrule.runtime.binaries.objectfile import HAS_THREAD_LOCAL, read_object
from ferrule.specs.deferred import dataclass

PREFIX: Final = "ferrule_code_"
"""The prefix of embedded symbols; the digest of the code follows."""

SYMBOL: Final = re.compile(r"[A-Za-z_.$][\w.$]*", re.ASCII)
"""Names that an assembler accepts without quotes."""

# SHT_PROGBITS; SHF_WRITE and SHF_EXECINSTR; STT_FUNC, STT_TLS and STT_GNU_IFUNC: see elf.h.
_PROGBITS: Final = 1
_WRITE, _EXECUTE = 1, 4
_FUNCTION, _THREAD_LOCAL, _IFUNC = 2, 6, 10
_THROWS: Final = ("__cxa_throw", "__cxa_rethrow", "__cxa_begin_catch")
"""Functions of the C++ ABI (Itanium, exception handling, 2.4): without frames to unwind, they end
the process."""
_TABLE: Final = ".gcc_except_table"
"""The tables of exceptions; that of `.text.f` is `.gcc_except_table.f`."""
_RAN_BEFORE: Final = (".init_array", ".fini_array", ".preinit_array", ".ctors", ".dtors")

_KINDS: Final = MappingProxyType(
    {
        **RELOCATIONS,
        (62, 9): "R_X86_64_GOTPCREL",
        (62, 24): "R_X86_64_PC64",
        (62, 25): "R_X86_64_GOTOFF64",
        (62, 27): "R_X86_64_GOT64",
        (62, 29): "R_X86_64_GOTPC64",
        (62, 31): "R_X86_64_PLTOFF64",
        (62, 41): "R_X86_64_GOTPCRELX",
        (62, 42): "R_X86_64_REX_GOTPCRELX",
        (183, 260): "R_AARCH64_PREL64",
        (183, 280): "R_AARCH64_CONDBR19",
        (183, 311): "R_AARCH64_ADR_GOT_PAGE",
        (183, 312): "R_AARCH64_LD64_GOT_LO12_NC",
    }
)
"""Relocations by ELF machine and number, of the ABI supplements of the two processors."""

_BY_SLOT: Final = MappingProxyType(
    {
        "R_X86_64_GOT64": "R_X86_64_GOTOFF64",
        "R_X86_64_GOTPCREL": "R_X86_64_PC32",
        "R_X86_64_GOTPCRELX": "R_X86_64_PC32",
        "R_X86_64_REX_GOTPCRELX": "R_X86_64_PC32",
        "R_AARCH64_ADR_GOT_PAGE": "R_AARCH64_ADR_PREL_PG_HI21",
        "R_AARCH64_LD64_GOT_LO12_NC": "R_AARCH64_LDST64_ABS_LO12_NC",
    }
)
"""Relocations to the slot of an address in a linker's table, and the relocation to a slot of
ours."""

_BY_JUMP: Final = MappingProxyType({"R_X86_64_PLTOFF64": "R_X86_64_GOTOFF64"})
"""Relocations to a linker's jump, and the relocation to the function or to our jump."""

_RESOLVED: Final = frozenset({31})
_JUMP: Final = "\\377\\045"
"""x86-64's jump to the address at the distance in its next four bytes."""

_ADDRESS: Final = MappingProxyType({62: "R_X86_64_64", 183: "R_AARCH64_ABS64"})
_DIRECT: Final = frozenset(
    {"R_X86_64_PC32", "R_X86_64_PC64", "R_X86_64_GOTOFF64", "R_AARCH64_ADR_PREL_PG_HI21"}
)
"""Relocations that cannot reach a symbol of another library."""


def embed(data: bytes, what: str, functions: tuple[str, ...] = ()) -> Embedded:
    """An object, ready to be a part of others; `what` names it in errors.

    With `functions` only the sections that these need are kept: what a compiler puts into sections
    of their own (`-ffunction-sections`, `-fdata-sections`) and is not needed goes, together with
    its undefined symbols.  Raises CompileError for bytes that are not an object for this processor,
    are not position-independent, or need a linker or a loader.
    """
    context = "".join(f"{name} of " for name in functions)
    return Piece.of(data, what, context).embedded(functions=functions)


@dataclass(frozen=True, slots=True)
class Piece:
    """An object that may be used together with others; `what` names it in errors.

    `defined` are the labels of its visible symbols, `weak` those of them that another object's
    replaces, and `undefined` the symbols that it needs.
    """

    what: str
    data: bytes = field(repr=False)
    digest: str
    machine: Machine
    defined: Mapping[str, str]
    weak: frozenset[str]
    undefined: tuple[str, ...]

    @classmethod
    def of(cls, data: bytes, what: str, context: str = "") -> Piece:
        """Read an object; `context` makes its names differ from those of the same object with
        others.  Raises CompileError if it is not sound."""
        digest = sha256(context.encode() + data).hexdigest()[:16]
        with _refusing(data, what):
            header = read_object(data, _RESOLVED, thread_local=True)
            reader = _Reader(data, header.machine, digest)
            defined, weak = reader.defined(), reader.weak()
            return cls(what, data, digest, header.machine, defined, weak, header.undefined)

    def functions(self) -> tuple[str, ...]:
        """The functions that can be called."""
        with _refusing(self.data, self.what):
            return _Reader(self.data, self.machine, self.digest).functions()

    def embedded(
        self,
        elsewhere: Mapping[str, str] = MappingProxyType({}),
        functions: tuple[str, ...] = (),
    ) -> Embedded:
        """This object, ready to be a part of others; `elsewhere` are labels of symbols that other
        pieces define, or that of its own symbol; with `functions` only what these need.  Raises
        CompileError as `embed`."""
        with _refusing(self.data, self.what):
            reader = _Reader(self.data, self.machine, self.digest, elsewhere)
            needed = reader.keep(functions) if functions else frozenset(self.undefined)
            undefined = (each for each in self.undefined if each in needed)
            return reader.embedded(tuple(name for name in undefined if name not in elsewhere))


@contextmanager
def _refusing(data: bytes, what: str) -> Iterator[None]:
    try:
        yield
    except ObjectFileError as error:
        hint = advice.for_object(data, str(error))
        raise CompileError(Diagnostic(f"{what} cannot be embedded: {error}", hint=hint)) from None


@dataclass(frozen=True, slots=True)
class _Section:
    name: str
    at: elf.Section

    @property
    def is_carried(self) -> bool:
        """Whether it is code or data at run time."""
        loaded = self.at.kind in (_PROGBITS, elf.SHT_NOBITS) and self.at.flags & elf.SHF_ALLOC
        return bool(loaded and self.name != ".eh_frame")


@dataclass(frozen=True, slots=True)
class _Symbol:
    name: str
    kind: int
    is_global: bool
    is_weak: bool
    section: int
    value: int


class _Reader:
    """The sections and symbols of one object with valid headers."""

    def __init__(
        self,
        data: bytes,
        machine: Machine,
        digest: str,
        elsewhere: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._data: Final = data
        self._machine: Final = machine
        self._digest: Final = digest
        self._elsewhere: Final = elsewhere
        self._sections: Final = list(self._read_sections())
        self._symbols: Final = list(self._read_symbols())
        self._unneeded: frozenset[int] = frozenset()
        self._slots: Final[dict[str, str]] = {}
        self._stubs: Final[dict[str, str]] = {}

    def embedded(self, undefined: tuple[str, ...]) -> Embedded:
        self._check()
        lines = [*self._contents(), *self._relocations(), *self._jumps(), *self._words()]
        lines += [*self._names(), ".text"]
        return Embedded(
            self._digest,
            self._machine.name.lower(),
            self.functions(),
            undefined,
            "\n".join(lines),
        )

    def keep(self, functions: tuple[str, ...]) -> frozenset[str]:
        """Keep only the sections that these functions need, over any number of steps; returns the
        undefined symbols that they need.  Keeps all if it does not have one of them."""
        first = [each for each in self._functions() if each.name in functions]
        # One of them is not in this object: what is needed cannot be known, so all is kept.
        if len(first) < len(set(functions)):
            return frozenset(each.name for each in self._symbols if not each.section)
        uses, undefined = self._uses(), set[str]()
        reached = {each.section for each in first}
        todo = list(reached)
        while todo:
            for symbol in uses.get(todo.pop(), ()):
                if symbol.section == elf.SHN_UNDEF:
                    undefined.add(symbol.name)
                elif symbol.section not in reached:
                    reached.add(symbol.section)
                    todo.append(symbol.section)
        self._unneeded = frozenset(range(len(self._sections))) - reached
        return frozenset(undefined)

    def _uses(self) -> dict[int, list[_Symbol]]:
        """The symbols to which each section refers."""
        uses: dict[int, list[_Symbol]] = {}
        for rows in self._sections:
            if rows.at.kind == elf.SHT_RELA:
                entries = elf.entries(elf.RELOCATION, self._data, rows.at)
                found = [self._symbols[info >> 32] for _, info, _ in entries]
                uses.setdefault(rows.at.info, []).extend(found)
        return uses

    def _read_sections(self) -> Iterator[_Section]:
        header = elf.read_header(self._data, elf.FileType.OBJECT)
        rows = [elf.read_section(self._data, offset) for offset in header.sections]
        (index,) = elf.HEADER.unpack_from(self._data)[-1:]
        table = elf.section_at(rows, index, elf.SHT_STRTAB, "the names of sections")
        names = self._data[table.offset : table.offset + table.size]
        for row, offset in zip(rows, header.sections, strict=True):
            at = int.from_bytes(self._data[offset : offset + 4], "little")
            yield _Section(_text(names, at), row)

    def _read_symbols(self) -> Iterator[_Symbol]:
        rows = [section.at for section in self._sections]
        for table in rows:
            if table.kind != elf.SHT_SYMTAB:
                continue
            strings = elf.section_at(rows, table.link, elf.SHT_STRTAB, "the names of symbols")
            names = self._data[strings.offset : strings.offset + strings.size]
            for at, info, _, where, value, _ in elf.entries(elf.SYMBOL, self._data, table):
                is_global, is_weak = info >> 4 != elf.STB_LOCAL, info >> 4 == elf.STB_WEAK
                yield _Symbol(_text(names, at), info & 15, is_global, is_weak, where, value)

    def functions(self) -> tuple[str, ...]:
        """The names of functions that can be called from outside."""
        return tuple(symbol.name for symbol in self._functions())

    def defined(self) -> Mapping[str, str]:
        """The labels of symbols that other objects see."""
        seen = (each for each in self._symbols if each.is_global and each.name)
        return {each.name: self._place(each) for each in seen if self._is_carried(each.section)}

    def weak(self) -> frozenset[str]:
        """The symbols that a definition of another object replaces."""
        return frozenset(each.name for each in self._symbols if each.is_weak)

    def _place(self, symbol: _Symbol) -> str:
        return f"{self._label(symbol.section)}{symbol.value:+d}"

    def _functions(self) -> Iterator[_Symbol]:
        """The functions that can be called from outside."""
        for symbol in self._symbols:
            if symbol.is_global and symbol.kind == _FUNCTION and SYMBOL.fullmatch(symbol.name):
                if self._is_carried(symbol.section):
                    yield symbol

    def _is_carried(self, index: int) -> bool:
        is_there = 0 < index < len(self._sections) and index not in self._unneeded
        return is_there and self._sections[index].is_carried

    def _check(self) -> None:
        names = [section.name for section in self._sections]
        if any(name.startswith(_RAN_BEFORE) for name in names):
            raise ObjectFileError("it has code that runs when it is loaded (a constructor)")
        used = {
            each for at, found in self._uses().items() if self._is_carried(at) for each in found
        }
        throws = any(symbol.name.startswith(_THROWS) for symbol in used)
        if throws or any(map(self._is_table_of_exceptions, range(len(names)))):
            raise ObjectFileError("it throws or catches C++ exceptions (-fno-exceptions)")
        if any(self._is_thread_local(each) for each in used):
            raise ObjectFileError(f"{HAS_THREAD_LOCAL}: link the object into a shared library")
        mine = (each for each in self._symbols if self._is_carried(each.section))
        if any(symbol.kind == _IFUNC for symbol in (*mine, *used)):
            raise ObjectFileError("it has functions that are chosen when it is loaded (ifunc)")

    def _is_table_of_exceptions(self, index: int) -> bool:
        """Whether a section says how exceptions go through functions, one that is kept among
        them."""
        head, table, function = self._sections[index].name.partition(_TABLE)
        if head or not table:
            return False
        names = [section.name for section in self._sections]
        of = f".text{function}"
        return not function or of not in names or self._is_carried(names.index(of))

    def _is_thread_local(self, symbol: _Symbol) -> bool:
        """Whether this is thread-local data, or a section of it."""
        inside = 0 < symbol.section < len(self._sections)
        flags = self._sections[symbol.section].at.flags if inside else 0
        return symbol.kind == _THREAD_LOCAL or bool(flags & elf.SHF_TLS)

    def _label(self, index: int) -> str:
        return f".L{PREFIX}{self._digest}_{index}"

    def _contents(self) -> Iterator[str]:
        """The bytes of each section."""
        for index, section in enumerate(self._sections):
            if not self._is_carried(index):
                continue
            at = section.at
            yield _directive(at)
            yield f".balign {max(1, at.align)}"
            yield f"{self._label(index)}:"
            if at.kind == elf.SHT_NOBITS:
                yield f".zero {at.size}"
                continue
            yield from as_ascii(self._data[at.offset : at.offset + at.size])

    def _relocations(self) -> Iterator[str]:
        for rows in self._sections:
            if rows.at.kind != elf.SHT_RELA or not self._is_carried(rows.at.info):
                continue
            for offset, info, addend in elf.entries(elf.RELOCATION, self._data, rows.at):
                # ELF64_R_TYPE and ELF64_R_SYM.
                kind, target = self._reference(info & 0xFFFFFFFF, info >> 32, addend)
                if kind:
                    yield f".reloc {self._label(rows.at.info)}{offset:+d}, {kind}, {target}"

    def _reference(self, number: int, index: int, addend: int) -> tuple[str, str]:
        """The name of a relocation, and its target."""
        if number == 0:
            return "", ""
        symbol, kind = self._symbols[index], _KINDS.get((self._machine, number))
        if kind is None:
            raise ObjectFileError(f"it has a relocation of kind {number}, which is not known here")
        target = self._elsewhere.get(symbol.name) if symbol.is_global else None
        if target is None and symbol.section == elf.SHN_UNDEF:
            if not SYMBOL.fullmatch(symbol.name):
                raise ObjectFileError(f"it needs a symbol of the name {symbol.name!r}")
            if kind in _DIRECT:
                raise ObjectFileError(
                    f"wanted position-independent code, got a {kind} to {symbol.name}"
                )
            if kind in _BY_JUMP:
                number = len(self._stubs)
                jump = self._stubs.setdefault(symbol.name, f"{self._label(0)}_jump_{number}")
                return _BY_JUMP[kind], f"{jump}{addend:+d}"
            return kind, f"{symbol.name}{addend:+d}"
        if target is None and not self._is_carried(symbol.section):
            raise ObjectFileError(f"it refers to {symbol.name or 'a place'} in no section of code")
        target = target or self._place(symbol)
        if kind in _BY_SLOT:
            return _BY_SLOT[kind], f"{self._word(target)}{addend:+d}"
        return _BY_JUMP.get(kind, kind), f"{target}{addend:+d}"

    def _word(self, target: str) -> str:
        """The slot with the address of a target."""
        return self._slots.setdefault(target, f"{self._label(0)}_{len(self._slots)}")

    def _jumps(self) -> Iterator[str]:
        """Jumps to functions of other libraries, for code that uses their distance."""
        for symbol, label in self._stubs.items():
            yield '.section .text,"ax",@progbits'
            yield f"{label}:"
            yield f'.ascii "{_JUMP}"'
            yield ".zero 4"
            yield f".reloc {label}+2, R_X86_64_PC32, {self._word(symbol)}-4"

    def _words(self) -> Iterator[str]:
        """The slots of addresses, in place of a linker's table."""
        if not self._slots:
            return
        yield '.section .data.rel.ro,"aw",@progbits'
        yield ".balign 8"
        for target, word in self._slots.items():
            yield f"{word}:"
            yield ".zero 8"
            yield f".reloc {word}, {_ADDRESS[self._machine]}, {target}"

    def _names(self) -> Iterator[str]:
        for symbol in self._functions():
            name = f"{PREFIX}{self._digest}.{symbol.name}"
            yield f".set {name}, {self._place(symbol)}"
            yield f".type {name},@function"


def _text(names: bytes, at: int) -> str:
    end = names.find(b"\0", at)
    if at >= len(names) or end < 0:
        raise ObjectFileError("a name is outside the table of names")
    return names[at:end].decode("utf-8", "backslashreplace")


def _directive(at: elf.Section) -> str:
    if at.flags & _EXECUTE:
        return '.section .text,"ax",@progbits'
    if at.kind == elf.SHT_NOBITS:
        return '.section .bss,"aw",@nobits'
    # Constants with relocations go here too: the section becomes read-only after relocation.
    return (
        '.section .data,"aw",@progbits' if at.flags & _WRITE else '.section .rodata,"a",@progbits'
    )
