"""The memory layout of C structs, read from debugging information.

The names of members are not known here, and no expression of C shows the type of a member without
its name.  So the compiler is asked for the debugging information of a pointer to the function: it
contains all types that the function takes and returns, with the members of structs (DWARF 4 and 5,
chapter 7).
"""

from __future__ import annotations

import os
import struct
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from functools import cached_property
from pathlib import Path
from typing import Final, TypeAlias

from ferrule.specs.deferred import dataclass

_FLAGS: Final = ("-g", "-gdwarf-4", "-gz=none", "-gno-split-dwarf", "-fno-lto", "-w", "-fPIC", "-c")
_LINE: Final = 7_654_321
"""The line of the pointer, by which it is found: another variable may have its name."""

# Numbers of DWARF 5: tags (7.5.3), attributes (7.5.4), forms (7.5.6) and encodings (7.8).
_ARRAY, _CLASS, _ENUM, _PARAMETER, _MEMBER = 0x01, 0x02, 0x04, 0x05, 0x0D
_POINTERS: Final = (0x0F, 0x10, 0x42)
_CONST: Final = 0x26
_STRUCT, _FUNCTION, _TYPEDEF, _UNION, _BASE_CLASS = 0x13, 0x15, 0x16, 0x17, 0x1C
_RANGE, _BASE, _SUBPROGRAM, _VARIABLE, _RESTRICT = 0x21, 0x24, 0x2E, 0x34, 0x37
_SAME: Final = (_TYPEDEF, _CONST, 0x35, _RESTRICT, 0x47)
"""Typedefs, const, volatile, restrict, _Atomic."""

_NAME, _LINKAGE, _SPECIFICATION = 0x03, 0x6E, 0x47
_UNIT: Final = 0x11
_SIZE, _BIT_SIZE, _UPPER, _CONVENTION, _COUNT = 0x0B, 0x0D, 0x2F, 0x36, 0x37
_PLACE, _DECLARED, _LINE_OF, _ENCODING, _TYPE = 0x38, 0x3C, 0x3B, 0x3E, 0x49
_ALIGN, _VECTOR = 0x88, 0x2107
_ENUMERATOR, _DOTS, _VALUE, _PROTOTYPED = 0x28, 0x18, 0x1C, 0x27
_SIGNED_LEB: Final = 0x0D
_BY_REFERENCE: Final = 4
_ENCODINGS: Final = {
    2: "bool", 4: "float", 5: "int", 6: "int", 7: "uint", 8: "uint", 16: "uint",
}  # fmt: skip
_COMPLEX: Final = 3
_FIXED: Final = {
    0x01: 8, 0x05: 2, 0x06: 4, 0x07: 8, 0x0B: 1, 0x0C: 1, 0x0E: 4, 0x10: 4, 0x11: 1, 0x12: 2,
    0x13: 4, 0x14: 8, 0x17: 4, 0x1E: 16, 0x1F: 4, 0x20: 8, 0x25: 1, 0x26: 2, 0x28: 4, 0x29: 1,
    0x2A: 2, 0x2C: 4,
}  # fmt: skip
"""The sizes in bytes of the forms with a fixed width."""
_LEBS: Final = (0x0D, 0x0F, 0x15, 0x1A, 0x1B, 0x22, 0x23)
_BLOCKS: Final = {0x0A: 1, 0x03: 2, 0x04: 4}
_MOST: Final = 4096
"""The greatest number of leaves of a struct that are compared."""


@dataclass(slots=True)
class _Entry:
    """A type, variable or member in the debugging information."""

    tag: int
    values: dict[int, int]
    name: str = ""
    symbol: str = ""
    """The linkage name, if it differs."""
    around: _Entry | None = None
    children: list[_Entry] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Leaf:
    """A number or an address in a struct: its offset, its size, and its kind: "int", "uint",
    "bool", "enum", "float", "pointer", or another word for a kind that a `Struct` cannot have.

    For a pointer: the leaf that it points to (None for void and for an incomplete type), whether
    that is const, whether the pointer is `restrict`, and the alignment of the address; the type of
    the function that it points to.  For an enum: its least and greatest value.  `named` is the
    typedef that a member of this type has.
    """

    at: int
    size: int
    kind: str
    pointee: Leaf | None = None
    is_const: bool = False
    is_restrict: bool = False
    aligned: int = 1
    code: Code | None = None
    values: tuple[int, int] | None = None
    named: str = ""


@dataclass(frozen=True, slots=True)
class Code:
    """The type of a function that is called by its address: what it takes, None for an incomplete
    type, and what it returns, None for void.  `is_open` is one with `...`."""

    parameters: tuple[Layout | None, ...]
    result: Layout | None
    is_open: bool = False


@dataclass(frozen=True, slots=True)
class Layout:
    """A type: its size, its alignment if it is given, and its leaves."""

    size: int
    align: int | None
    leaves: tuple[Leaf, ...]
    is_struct: bool

    @property
    def enum(self) -> Leaf | None:
        """The leaf of an enum; None for another type."""
        leaf = self.leaves[0] if len(self.leaves) == 1 and not self.is_struct else None
        return leaf if leaf is not None and leaf.kind == "enum" else None


@dataclass(frozen=True, slots=True)
class Layouts:
    """The types of a function: of its result (None for void), of each parameter, and of the memory
    to which the addresses among these point (None for an incomplete type).  `aligned` is the
    alignment of each address, 1 for a parameter that is none; `codes` are the types of functions
    whose addresses it takes, None for other parameters and for those without a prototype."""

    result: Layout | None
    parameters: tuple[Layout | None, ...]
    pointees: tuple[Layout | None, ...]
    aligned: tuple[int, ...]
    codes: tuple[Code | None, ...]


class Debugging:
    """The debugging information that a compiler makes of a source.  For C++ it is read once, on the
    first query: the functions' own entries contain everything."""

    def __init__(self, command: Sequence[str], source: str, language: str) -> None:
        self._command, self._source, self._language = command, source, language

    def layouts(self, function: str, symbol: str) -> Layouts | None:
        """The types of a function by its name in the source and its linker `symbol`; None if the
        compiler does not show them."""
        told = self._functions(symbol) if self._language == "c++" else []
        if told:
            return _layouts(self._entries, max(told, key=lambda each: len(_parameters(each))))
        entries = self._pointed_at(function)
        return _layouts(entries, _pointed(entries))

    def code(self, function: str) -> Code | None:
        """The type of a function that the source declares; None if the compiler shows none."""
        entries = self._pointed_at(function)
        found = _pointed(entries)
        try:
            return None if found is None else _code(entries, found)
        except (KeyError, ValueError):
            return None

    def _pointed_at(self, function: str) -> Mapping[int, _Entry]:
        line = f'#line {_LINE} "asked"\n__typeof__({function}) *ferrule_asked = 0;'
        return _asked(self._command, f"{self._source}\n{line}\n", self._language) or {}

    def restricted_parameters(self, symbol: str) -> tuple[bool, ...] | None:
        """For each parameter of a function that the source defines whether it is a `restrict`
        pointer, which is not a part of the function's type; None if the compiler does not show
        it."""
        found: tuple[bool, ...] | None = None
        for each in self._functions(symbol):  # a declaration may lack `restrict`
            said = tuple(_is_restrict(self._entries, inner) for inner in _parameters(each))
            found = said if found is None or any(said) else found
        return found or None

    def qualified_name(self, symbol: str) -> str | None:
        """The qualified C++ name of the function with this linker symbol, with its namespaces and
        classes; None if the compiler does not show it."""
        for each in self._entries.values():
            if _symbol_of(each) == symbol:
                return "::".join(reversed([*_names_around(each)]))
        return None

    @cached_property
    def _entries(self) -> Mapping[int, _Entry]:
        return _asked(self._command, self._source, self._language) or {}

    def _functions(self, symbol: str) -> list[_Entry]:
        """The entries of a function whose parameters have types."""
        return [
            each
            for each in self._entries.values()
            if _symbol_of(_declared(self._entries, each)) == symbol
            and all(_TYPE in inner.values for inner in _parameters(each))
        ]


def _parameters(function: _Entry) -> list[_Entry]:
    return [each for each in function.children if each.tag == _PARAMETER]


def _names_around(entry: _Entry | None) -> Iterator[str]:
    """The name of an entry, then the names of the namespaces and classes around it, from inner to
    outer.  An anonymous namespace has no name and needs none."""
    while entry is not None and entry.tag != _UNIT:
        if entry.name:
            yield entry.name
        entry = entry.around


def _declared(entries: Mapping[int, _Entry], entry: _Entry) -> _Entry:
    """The declaration of a function that is defined outside its namespace or class."""
    return entries.get(entry.values.get(_SPECIFICATION, -1), entry)


def _symbol_of(entry: _Entry) -> str | None:
    """The linker symbol of a function."""
    if entry.tag != _SUBPROGRAM:
        return None
    return entry.symbol if _LINKAGE in entry.values else entry.name


def _asked(command: Sequence[str], source: str, language: str) -> dict[int, _Entry] | None:
    """The debugging information of a source; None if the compiler makes none."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "asked.o"
        done = subprocess.run(
            [*command, *_FLAGS, "-x", language, "-", "-o", str(target)],
            input=source.encode("utf-8", "surrogateescape"),
            capture_output=True,
            env={**os.environ, "LC_ALL": "C"},
            check=False,
        )
        if done.returncode or not target.exists():
            return None
        data = target.read_bytes()
    try:
        return _entries(_sections(data))
    except (IndexError, KeyError, ValueError, struct.error):
        return None


def _is_restrict(entries: Mapping[int, _Entry], entry: _Entry) -> bool:
    """Whether the type of an entry is a `restrict` pointer."""
    while _TYPE in entry.values:
        entry = entries[entry.values[_TYPE]]
        if entry.tag == _RESTRICT:
            return True
        if entry.tag not in _SAME:
            return False
    return False


def _pointed(entries: Mapping[int, _Entry]) -> _Entry | None:
    """The type of the function to which the pointer points."""
    found = [
        each for each in entries.values()
        if each.tag == _VARIABLE and each.values.get(_LINE_OF) == _LINE
    ]  # fmt: skip
    function = _plain(entries, _plain(entries, found[0])) if found else None
    return function if function is not None and function.tag == _FUNCTION else None


def _layouts(entries: Mapping[int, _Entry], function: _Entry | None) -> Layouts | None:
    """The types of a function, given by its entry or by the entry of its type."""
    try:
        return None if function is None else _of_function(entries, function)
    except (KeyError, ValueError):
        return None


def _of_function(entries: Mapping[int, _Entry], function: _Entry) -> Layouts:
    types = [_plain(entries, each) for each in _parameters(function)]
    gives = function if _TYPE in function.values else _declared(entries, function)
    return Layouts(
        _layout(entries, _plain(entries, gives)),
        tuple(_layout(entries, each) for each in types),
        tuple(_behind(entries, each) for each in types),
        tuple(
            _alignment(entries, each) if each is not None and each.tag in _POINTERS else 1
            for each in types
        ),
        tuple(_code(entries, _plain(entries, each)) for each in types),
    )


def _code(entries: Mapping[int, _Entry], function: _Entry | None) -> Code | None:
    """The type of a function by the entry of its type; None for another type, and for a function
    that does not declare what it takes."""
    if function is None or function.tag not in (_FUNCTION, _SUBPROGRAM):
        return None
    parameters = _parameters(function)
    is_open = any(each.tag == _DOTS for each in function.children)
    if not parameters and _PROTOTYPED not in function.values:
        return None
    return Code(
        tuple(_layout(entries, _plain(entries, each), inner=True) for each in parameters),
        _layout(entries, _plain(entries, function), inner=True),
        is_open,
    )


def _behind(entries: Mapping[int, _Entry], pointer: _Entry | None) -> Layout | None:
    """The layout of the type behind a pointer; None if the type is not a pointer."""
    if pointer is None or pointer.tag not in _POINTERS:
        return None
    apart = _is_restrict(entries, pointer)
    return _layout(entries, _plain(entries, pointer), is_restrict=apart)


def _alignment(entries: Mapping[int, _Entry], entry: _Entry) -> int:
    """The alignment that the type of an entry declares, or that a vector has; 1 for all others,
    whose numbers are aligned as their dtypes are."""
    while _TYPE in entry.values:
        entry = entries[entry.values[_TYPE]]
        if _ALIGN in entry.values:  # a typedef may require less than the type that it names
            return entry.values[_ALIGN]
        if entry.tag not in _SAME:
            break
    if entry.tag != _ARRAY:
        return 1
    return _size(entries, entry) if _VECTOR in entry.values else _alignment(entries, entry)


def _plain(entries: Mapping[int, _Entry], entry: _Entry | None) -> _Entry | None:
    """The type of an entry, without typedefs and qualifiers; None for void."""
    while entry is not None and _TYPE in entry.values:
        entry = entries[entry.values[_TYPE]]
        if entry.tag not in _SAME:
            return entry
    return None


def _layout(
    entries: Mapping[int, _Entry],
    entry: _Entry | None,
    *,
    is_restrict: bool = False,
    inner: bool = False,
) -> Layout | None:
    """The layout of a type; `inner` leaves out what functions behind its pointers take: a struct
    may have a function that takes the struct."""
    if entry is None or entry.tag == _FUNCTION or _DECLARED in entry.values:
        return None
    leaves = []
    for leaf in _leaves(entries, entry, 0, is_restrict=is_restrict, inner=inner):
        leaves.append(leaf)
        if len(leaves) > _MOST:
            return None
    is_struct = entry.tag in (_STRUCT, _CLASS, _UNION, _ARRAY)
    return Layout(_size(entries, entry), entry.values.get(_ALIGN), tuple(leaves), is_struct)


def _leaves(
    entries: Mapping[int, _Entry],
    entry: _Entry,
    at: int,
    *,
    is_restrict: bool = False,
    inner: bool = False,
) -> Iterator[Leaf]:
    size = _size(entries, entry)
    if entry.tag in (_STRUCT, _CLASS) and entry.values.get(_CONVENTION) != _BY_REFERENCE:
        for each in entry.children:
            if each.tag in (_MEMBER, _BASE_CLASS) and _is_stored(each):
                yield from _member(entries, each, at, inner=inner)
    elif entry.tag == _ARRAY and _VECTOR not in entry.values:
        item = _typed(entries, entry)
        step = _size(entries, item)
        for position in range(size // step if step else 0):
            apart = _is_restrict(entries, entry)
            place = at + position * step
            yield from _leaves(entries, item, place, is_restrict=apart, inner=inner)
    elif entry.tag == _BASE and entry.values.get(_ENCODING) == _COMPLEX:
        yield Leaf(at, size // 2, "float")
        yield Leaf(at + size // 2, size // 2, "float")
    elif entry.tag in _POINTERS:
        behind, is_const = _pointee(entries, entry), _reads(entries, entry)
        aligned = _alignment(entries, entry)
        code = None if inner else _code(entries, _plain(entries, entry))
        yield Leaf(at, size, "pointer", behind, is_const, is_restrict, aligned, code)
    else:
        yield Leaf(at, size, _kind(entry), values=_values(entry))


def _values(entry: _Entry) -> tuple[int, int] | None:
    """The least and the greatest value of an enum."""
    listed = [each.values.get(_VALUE, 0) for each in entry.children if each.tag == _ENUMERATOR]
    return (min(listed), max(listed)) if entry.tag == _ENUM and listed else None


def _pointee(entries: Mapping[int, _Entry], pointer: _Entry) -> Leaf | None:
    """The type behind a pointer, as one leaf; its own members are not examined."""
    behind = _plain(entries, pointer)
    if behind is None or _DECLARED in behind.values:
        return None
    kind = "struct" if behind.tag in (_STRUCT, _CLASS) else _kind(behind)
    if behind.tag == _BASE and behind.values.get(_ENCODING) == _COMPLEX:
        kind = "complex"
    size = _size(entries, behind) if behind.tag != _FUNCTION else 0
    return Leaf(0, size, kind, values=_values(behind))


def _reads(entries: Mapping[int, _Entry], pointer: _Entry) -> bool:
    """Whether the memory behind a pointer is const, or code."""
    entry = pointer
    while _TYPE in entry.values:
        entry = entries[entry.values[_TYPE]]
        if entry.tag in (_CONST, _FUNCTION):
            return True
        if entry.tag not in _SAME:
            return False
    return False


def _is_stored(member: _Entry) -> bool:
    """Whether each value contains the member: static members of C++ are stored elsewhere."""
    return _DECLARED not in member.values


def _member(
    entries: Mapping[int, _Entry], member: _Entry, at: int, *, inner: bool
) -> Iterator[Leaf]:
    place = at + member.values.get(_PLACE, 0)
    if _BIT_SIZE in member.values:
        yield Leaf(place, 0, "bits")
    else:
        apart = _is_restrict(entries, member)
        kind, named = _typed(entries, member), _typedef_of(entries, member)
        for leaf in _leaves(entries, kind, place, is_restrict=apart, inner=inner):
            yield leaf if leaf.named or not named else replace(leaf, named=named)


def _typedef_of(entries: Mapping[int, _Entry], member: _Entry) -> str:
    """The typedef that a member is declared with; "" if it is none."""
    entry = member
    while _TYPE in entry.values:
        entry = entries[entry.values[_TYPE]]
        if entry.tag == _TYPEDEF or entry.tag not in _SAME:
            break
    return entry.name if entry.tag == _TYPEDEF else ""


def _kind(entry: _Entry) -> str:
    if entry.tag in _POINTERS:
        return "pointer"
    if entry.tag == _ENUM:
        return "enum"
    if entry.tag == _BASE:
        return _ENCODINGS.get(entry.values.get(_ENCODING, 0), "other")
    return {_UNION: "union", _ARRAY: "vector"}.get(entry.tag, "other")


def _typed(entries: Mapping[int, _Entry], entry: _Entry) -> _Entry:
    found = _plain(entries, entry)
    if found is None:
        raise ValueError("a member without a type")
    return found


def _size(entries: Mapping[int, _Entry], entry: _Entry) -> int:
    if entry.tag in _POINTERS:
        return 8
    if entry.tag != _ARRAY:
        return entry.values.get(_SIZE, 0)
    count = 1
    for each in entry.children:
        if each.tag == _RANGE:
            count *= each.values.get(_COUNT, each.values.get(_UPPER, -1) + 1)
    return count * _size(entries, _typed(entries, entry))


# ---- the bytes ----


def _sections(data: bytes) -> dict[str, bytes]:
    """The sections of a 64-bit ELF object file."""
    if data[:6] != b"\x7fELF\x02\x01":
        raise ValueError("no ELF of 64 bits")
    # e_shoff; then e_shentsize, e_shnum and e_shstrndx of Elf64_Ehdr.
    start, width, count, names = (
        struct.unpack_from("<Q", data, 40)[0],
        *struct.unpack_from("<3H", data, 58),
    )
    heads = [struct.unpack_from("<IIQQQQ", data, start + i * width) for i in range(count)]
    texts = data[heads[names][4] :]
    found: dict[str, bytes] = {}
    for name, _, _, _, offset, size in heads:
        found.setdefault(texts[name : texts.index(b"\0", name)].decode(), data[offset:][:size])
    return found


@dataclass(slots=True)
class _Reader:
    data: bytes
    at: int = 0

    def fixed(self, size: int) -> int:
        self.at += size
        return int.from_bytes(self.data[self.at - size : self.at], "little")

    def leb(self, *, signed: bool = False) -> int:
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                # Bit 6 of the last byte is the sign (DWARF 5, 7.6).
                return value - (1 << shift) if signed and byte & 0x40 else value

    def form(self, form: int) -> int:
        """The value of an attribute; texts and blocks are only skipped."""
        if form in _FIXED:
            return self.fixed(_FIXED[form])
        if form in _LEBS:
            return self.leb(signed=form == _SIGNED_LEB)
        # DW_FORM_string, which ends with a zero.
        if form == 0x08:
            self.at = self.data.index(b"\0", self.at) + 1
        elif form in _BLOCKS:
            length = self.fixed(_BLOCKS[form])
            self.at += length
        # DW_FORM_block and DW_FORM_exprloc.
        elif form in (0x09, 0x18):
            length = self.leb()
            self.at += length
        # DW_FORM_flag_present: it is true by being there, and has no bytes.
        elif form != 0x19:
            raise ValueError(f"form {form:#x}")
        return 1


_Kinds: TypeAlias = "dict[int, tuple[int, bool, list[tuple[int, int, int]]]]"


def _kinds(data: bytes) -> _Kinds:
    """The abbreviations by number: the tag, whether there are children, and the attributes."""
    reader = _Reader(data)
    found: _Kinds = {}
    while code := reader.leb():
        tag, has_children = reader.leb(), bool(reader.fixed(1))
        attributes = []
        while True:
            name, form = reader.leb(), reader.leb()
            # DW_FORM_implicit_const: the value stands here, and not in the entries.
            constant = reader.leb(signed=True) if form == 0x21 else 0
            if not name and not form:
                break
            attributes.append((name, form, constant))
        found[code] = tag, has_children, attributes
    return found


_MOVED: Final = struct.Struct("<QQq")


def _texts(sections: Mapping[str, bytes]) -> dict[int, str]:
    """The texts that entries refer to, by the position of the reference."""
    texts = sections.get(".debug_str", b"")
    moved = _MOVED.iter_unpack(sections.get(".rela.debug_info", b""))
    return {
        at: texts[start : texts.index(b"\0", start)].decode("utf-8", "replace")
        for at, _, start in moved if 0 <= start < len(texts)
    }  # fmt: skip


def _entries(sections: Mapping[str, bytes]) -> dict[int, _Entry]:
    """The entries of the first unit, by their offsets in it."""
    kinds, reader = _kinds(sections[".debug_abbrev"]), _Reader(sections[".debug_info"])
    texts = _texts(sections)
    end = reader.fixed(4) + 4
    # The header of a unit: length, version, then offset of the abbreviations and size of an
    # address; version 5 has the type of the unit too.
    reader.at = 12 if reader.fixed(2) >= 5 else 11
    found: dict[int, _Entry] = {}
    parents: list[_Entry] = []
    while reader.at < end:
        at, code = reader.at, reader.leb()
        # 0 ends the children of an entry.
        if not code:
            parents.pop()
            if not parents:
                break
            continue
        tag, has_children, attributes = kinds[code]
        values, named = {}, {_NAME: "", _LINKAGE: ""}
        for name, form, constant in attributes:
            start = reader.at
            values[name] = constant if form == 0x21 else reader.form(form)
            if name in named:
                inline = reader.data[start : reader.at - 1].decode("utf-8", "replace")
                named[name] = inline if form == 0x08 else texts.get(start, "")
        around = parents[-1] if parents else None
        found[at] = _Entry(tag, values, named[_NAME], named[_LINKAGE], around)
        if parents:
            parents[-1].children.append(found[at])
        if has_children:
            parents.append(found[at])
    return found
