"""Puts pieces of precompiled code into an object: as assembly that only copies their bytes.

An assembler takes as long for a line of assembly as for a thousand bytes of data.  An object gets
the pieces that it can reach.  Read-only code and constants are in one section, whose relative
references are resolved here; other references become directives for the linker.

Invariant: every label begins with `.Lferrule_` and the name of the code, and no symbol is visible
outside of the object.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from ferrule.compiler.support.precompiled import RELATIVE, Piece, Precompiled, Reference
from ferrule.specs.deferred import dataclass

Implied: TypeAlias = "Callable[[str], Iterable[str]]"
"""The symbols that a symbol needs besides its references."""

_CALL: Final = "R_X86_64_PLT32"
_JUMP: Final = b"\xe9\0\0\0\0"
"""x86-64's jump by the distance in its last four bytes, relative to its end."""
_DISTANCE: Final = struct.Struct("<i")
_CODE: Final = '.text.unlikely.,"ax"'
_CHUNK: Final = 4096
_OCTAL: Final = tuple(f"\\{byte:03o}" for byte in range(256))


@dataclass(frozen=True, slots=True)
class Wanted:
    """The parts of precompiled code that an object needs.

    `symbols` are the symbols that it calls.  `tables` are tables of handler offsets: pieces that
    only a table refers to are omitted and have offset 0, and a table ends with its last present
    handler.
    """

    symbols: frozenset[str]
    implied: Implied
    tables: tuple[str, ...] = ()


def as_data(code: Precompiled, name: str, entries: Sequence[str], wanted: Wanted) -> str:
    """Assembly for the wanted parts; the needed ones of `entries` get their names.

    `name` distinguishes the labels from those of other code in one object.
    """
    tables = {code.symbols[table][0] for table in wanted.tables if table in code.symbols}
    reached = _reached(code, wanted, tables)
    pieces = {
        number: _cut(piece, reached) if number in tables else piece
        for number, piece in code.pieces.items()
        if number in reached
    }
    layout = _Layout(f".Lferrule_{name}", _with_stubs(pieces))
    lines = [*layout.sections(), *layout.relocations()]
    for entry in entries:
        number, offset = code.symbols[entry]
        if entry in wanted.symbols:
            lines += [f".set {entry}, {layout.place(number, offset)}", f".type {entry},@function"]
    return "\n".join([*lines, ".text"])


def _reached(code: Precompiled, wanted: Wanted, tables: set[int]) -> frozenset[int]:
    """The numbers of the pieces that the object gets."""
    named: dict[int, list[str]] = {}
    for symbol, (number, _) in code.symbols.items():
        named.setdefault(number, []).append(symbol)
    reached: set[int] = set()
    left = [code.symbols[symbol][0] for symbol in wanted.symbols]
    while left:
        number = left.pop()
        if number in reached:
            continue
        reached.add(number)
        if number not in tables:
            left += [each.piece for each in code.pieces[number].references if not each.symbol]
        more = (symbol for own in named.get(number, ()) for symbol in wanted.implied(own))
        left += [code.symbols[symbol][0] for symbol in more]
    return frozenset(reached)


def _cut(table: Piece, reached: frozenset[int]) -> Piece:
    """The table, reduced to the present handlers."""
    there = (each for each in table.references if not each.symbol)
    kept = tuple(each for each in there if each.piece in reached)
    end = max((each.offset + _DISTANCE.size for each in kept), default=0)
    return Piece(table.section, table.data[:end], table.align, table.is_written, kept)


def _with_stubs(pieces: dict[int, Piece]) -> dict[int, Piece]:
    """The pieces, with one jump for each outside function that they call more than once.

    On x86-64 a jump takes 5 bytes, and the relocation of a call takes 24.
    """
    references = [each for piece in pieces.values() for each in piece.references]
    calls = Counter(each.symbol for each in references if each.kind == _CALL and each.symbol)
    repeated = (symbol for symbol, count in calls.items() if count > 1)
    numbers = {symbol: number for number, symbol in enumerate(repeated, max(pieces) + 1)}

    def redirected(each: Reference) -> Reference:
        if each.kind != _CALL or each.symbol not in numbers:
            return each
        return replace(each, symbol="", piece=numbers[each.symbol])

    placed = dict(pieces)
    for number, piece in pieces.items():
        if any(each.symbol in numbers for each in piece.references):
            placed[number] = replace(piece, references=tuple(map(redirected, piece.references)))
    for symbol, number in numbers.items():
        end = Reference(len(_JUMP) - _DISTANCE.size, _CALL, symbol, 0, -_DISTANCE.size)
        placed[number] = Piece(".text", _JUMP, 1, False, (end,))
    return placed


class _Layout:
    """The places of the pieces: constant ones in one section, written ones in sections of their
    own."""

    def __init__(self, label: str, pieces: dict[int, Piece]) -> None:
        self._label = label
        self._pieces = pieces
        self._offsets: dict[int, int] = {}
        end = 0
        for number, piece in pieces.items():
            if not piece.is_written:
                end = -(-end // piece.align) * piece.align
                self._offsets[number] = end
                end += len(piece.data)
        self._end = end

    def place(self, number: int, offset: int) -> str:
        """A place in a piece, for the assembler."""
        if number in self._offsets:
            return f"{self._label}{self._offsets[number] + offset:+d}"
        return f"{self._label}_{number}{offset:+d}"

    def sections(self) -> Iterator[str]:
        """The bytes."""
        constant = [self._pieces[number] for number in self._offsets]
        align = max((piece.align for piece in constant), default=1)
        yield from _contents(_CODE, align, self._label, bytes(self._filled()))
        for number, piece in self._pieces.items():
            if piece.is_written:
                section = f'{piece.section},"aw"'
                yield from _contents(section, piece.align, f"{self._label}_{number}", piece.data)

    def relocations(self) -> Iterator[str]:
        """The references that the linker resolves."""
        for number, piece in self._pieces.items():
            for each in piece.references:
                if not self._is_known(number, each):
                    target = f"{each.symbol}{each.addend:+d}"
                    if not each.symbol:
                        target = self.place(each.piece, each.addend)
                    yield f".reloc {self.place(number, each.offset)}, {each.kind}, {target}"

    def _filled(self) -> bytearray:
        """The section of constant pieces."""
        data = bytearray(self._end)
        for number, start in self._offsets.items():
            piece = self._pieces[number]
            data[start : start + len(piece.data)] = piece.data
            for each in piece.references:
                if self._is_known(number, each):
                    place = start + each.offset
                    target = self._offsets[each.piece] + each.addend
                    _DISTANCE.pack_into(data, place, target - place)
        return data

    def _is_known(self, number: int, each: Reference) -> bool:
        inside = number in self._offsets and each.piece in self._offsets
        return inside and not each.symbol and each.kind in RELATIVE


def _contents(section: str, align: int, label: str, data: bytes) -> Iterator[str]:
    yield f".section {section},@progbits"
    yield f".balign {align}"
    yield f"{label}:"
    yield from as_ascii(data)


def as_ascii(data: bytes) -> Iterator[str]:
    """Directives for arbitrary bytes."""
    for start in range(0, len(data), _CHUNK):
        chunk = data[start : start + _CHUNK]
        yield '.ascii "' + "".join(map(_OCTAL.__getitem__, chunk)) + '"'
