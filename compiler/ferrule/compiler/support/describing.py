"""The functions that describe an exported function, as support code for objects: see `describe`.

LLVM takes half a millisecond for the smallest function.  These two differ only in the data that
they point to, so their code is compiled once for a triple and copied.
"""

from __future__ import annotations

import re
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from llvmlite import ir

from ferrule.compiler import describe
from ferrule.compiler.support.library import Half, Support, as_module_assembly, precompiled
from ferrule.compiler.support.placement import Wanted, as_data
from ferrule.compiler.support.precompiled import Piece, Precompiled, Reference
from ferrule.runtime.binaries.metadata import NOTE_SECTION
from ferrule.runtime.llvm.emitter import COLD, Emitter
from ferrule.runtime.llvm.layouts import BYTE_ARRAY, I8, I32, I64, PACKED, PTR

_ENTRY: Final = "ferrule_describe"
_TEXT: Final = "ferrule_described"
_NOTE: Final = "ferrule_note"
_PLAIN: Final = re.compile(r"\w+", re.ASCII)


def described_data(name: str, metadata: str, doc: str | None, triple: str) -> str | None:
    """The assembly after the text of an LLVM module; None if the functions must be LLVM code in
    it."""
    code = precompiled(_DESCRIBING, triple, Half.COMMON)
    if code is None or not _PLAIN.fullmatch(name):
        return None
    entry, note = code.symbols[_ENTRY][0], code.symbols[_NOTE][0]
    pieces = {n: piece for n, piece in code.pieces.items() if n not in (entry, note)}
    first = max(code.pieces) + 1
    pieces[first] = _pointing(code.pieces[entry], note, symbol=NOTE_SECTION)
    symbols = {f"__tvm_ffi__metadata_{name}": (first, 0)}
    if doc:
        said = describe.note(doc.encode())
        pieces[first + 1] = _pointing(code.pieces[entry], note, piece=first + 2)
        pieces[first + 2] = Piece(".rodata", said, describe.NOTE_ALIGN, False, ())
        symbols[f"__tvm_ffi__doc_{name}"] = (first + 1, 0)
    copies = Precompiled(MappingProxyType(pieces), MappingProxyType(symbols))
    wanted = Wanted(frozenset(symbols), lambda _: ())
    lines = [as_data(copies, "describe", list(symbols), wanted)]
    lines += [f".globl {symbol}" for symbol in symbols]
    constant = describe.constant_of(metadata, triple, is_object=True)
    return constant + as_module_assembly("\n".join(lines))


def _pointing(code: Piece, note: int, *, symbol: str = "", piece: int = 0) -> Piece:
    """The code with a reference to another note."""

    def moved(each: Reference) -> Reference:
        is_note = not each.symbol and each.piece == note
        return replace(each, symbol=symbol, piece=piece) if is_note else each

    return replace(code, references=tuple(map(moved, code.references)))


def _define(emitter: Emitter) -> None:
    e = emitter
    with e.define(_TEXT, I32, PACKED.args, attributes=COLD) as function:
        note, _, _, result = function.args
        text = e.alloca(BYTE_ARRAY, name="text")
        e.store_field(text, BYTE_ARRAY, "data", e.index(note, I8, describe.NOTE_TEXT))
        size = e.load(e.index(note, I8, describe.NOTE_SIZE), I32)
        e.store_field(text, BYTE_ARRAY, "size", e.builder.zext(size, I64))
        e.ret(e.call("TVMFFIStringFromByteArray", [text, result]))
    # A variable of the module, so that LLVM assumes nothing but its address.
    note = ir.GlobalVariable(e.module, I64, _NOTE)
    note.linkage, note.initializer = "internal", ir.Constant(I64, 1)
    note.section, note.type = f".data.{_NOTE}", PTR
    with e.define(_ENTRY, I32, PACKED.args, attributes=COLD) as function:
        given = [note, *function.args[1:]]
        e.ret(e.tail_call(e.symbol(_TEXT, PACKED), given))


_DESCRIBING: Final = Support("describing", (_ENTRY,), _define)
