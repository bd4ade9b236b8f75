"""All forms of instructions that are emulated; what matches none is refused by name."""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from pkgutil import walk_packages
from typing import Final

import ferrule.emulator.instructions as _package
from ferrule.emulator.instructions import forms
from ferrule.emulator.instructions.forms import Form, Named
from ferrule.emulator.ptx.module import Instruction, PtxError
from ferrule.emulator.warps import layout
from ferrule.emulator.warps.emitter import Emitter

for _part in walk_packages(_package.__path__, f"{_package.__name__}."):
    if _part.name != __name__:
        import_module(_part.name)

DECLARED: Final = """declare i32 @llvm.vector.reduce.umin.v32i32(<32 x i32>)
declare i64 @llvm.readcyclecounter()
"""


_ATOMIC: Final = (
    ("relaxed", "acquire", "release", "acq_rel"),
    ("cta", "cluster", "gpu", "sys"),
    ("global", "shared", "shared::cta", "shared::cluster"),
    ("add", "and", "or", "xor", "min", "max", "inc", "dec", "exch", "cas"),
    ("noftz",),
    ("L2::cache_hint",),
    ("v2", "v4", "v8"),
)
_ACCESS: Final = (
    ("weak", "volatile", "relaxed", "acquire", "release"),
    ("cta", "cluster", "gpu", "sys"),
    ("param", "global", "const", "local", "shared", "shared::cta", "shared::cluster"),
)
_ORDERS: Final = {
    "ld": _ACCESS,
    "st": _ACCESS,
    "atom": _ATOMIC,
    "red": _ATOMIC,
    "min": (("relu",),),
    "max": (("relu",),),
}
"""Of opcodes whose modifiers NVIDIA's compilers write or take in several orders, that of the
manual."""


@lru_cache(maxsize=4096)
def found(name: str) -> tuple[Form, dict[str, str | None]] | None:
    """The form that an instruction's whole name has, and what its pattern named."""
    opcode, *modifiers = name.split(".")
    match, order = _matched(opcode, name), _ORDERS.get(opcode)
    if match is not None or order is None:
        return match
    ranks = {word: rank for rank, words in enumerate(order) for word in words}
    modifiers.sort(key=lambda word: ranks.get(word, len(order)))
    return _matched(opcode, ".".join((opcode, *modifiers)))


def _matched(opcode: str, name: str) -> tuple[Form, dict[str, str | None]] | None:
    for form in forms.FORMS.get(opcode, ()):
        match = form.pattern.fullmatch(name[len(opcode) :])
        if match is not None:
            return form, match.groupdict()
    return None


def check(item: Instruction) -> None:
    """PtxError for one that is not emulated, or that has another number of operands."""
    said, form = (item.part_of or item).name, found(item.name)
    if form is None:
        raise PtxError(f"{said} is not emulated", item.line)
    if len(item.operands) not in form[0].operands:
        raise PtxError(f"{said} is not emulated: it has {len(item.operands)} operands", item.line)


def known(e: Emitter, item: Instruction) -> tuple[Form, Named]:
    """The form of an instruction.  PtxError for one that is not emulated."""
    form = found(item.name)
    assert form is not None, "it was checked before"
    return form


def execute(e: Emitter, item: Instruction) -> None:
    """Write the code of an instruction. PtxError for one that is not emulated."""
    form, named = known(e, item)
    form.write(e, item, named)
    # Of what stands for one instruction of the text, the part where the warp meets is counted.
    if e.names.watch is not None and (item.part_of is None or item.name == "wmma.start"):
        e.names.watch.executed(e, item)


def members(e: Emitter, item: Instruction) -> str:
    """The lanes that each lane waits for: a vector of masks."""
    known(e, item)
    if item.opcode in ("shfl", "vote", "match", "redux") and "sync" in item.modifiers:
        return e.read(item.operands[-1], "b32")
    if item.opcode == "elect":
        return e.read(item.operands[-1], "b32")
    if item.name == "bar.warp.sync":
        return e.read(item.operands[0], "b32")
    if item.opcode == "barrier" and "aligned" not in item.modifiers:
        return e.spread(e.mask)
    place = e.op(f"getelementptr i8, ptr %w, i64 {layout.LIVE}")
    return e.spread(e.op(f"load i32, ptr {place}"))
