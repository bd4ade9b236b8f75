"""All forms of instructions that are emulated; what matches none is refused by name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from importlib import import_module
from itertools import permutations
from pkgutil import walk_packages
from typing import Final

import ferrule.emulator.instructions as _package
from ferrule.emulator.instructions import forms
from ferrule.emulator.instructions.forms import Form, Named
from ferrule.emulator.ptx.module import Instruction, Label, Module, PtxError
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
"""Of opcodes with many modifiers, the order of the manual: it is looked for first."""
_MOST: Final = 6
"""Of more modifiers not all orders are tried."""
_IN_TURN: Final = (
    re.compile(r"[usb]\d+(?:x\d+)?|b?f\d+(?:x\d+)?|tf32|[eu]\w*\dm\d\w*|pred"),
    re.compile(r"global|const|local|param|shared(?:::\w+)?"),
    re.compile(r"row|col"),
)
"""Types, state spaces and layouts: the first one is of the result, or of the first operand."""


def in_order(module: Module) -> Module:
    """A module whose instructions have their modifiers in the order of the manual: ptxas takes them
    in nearly any, and what is written by hand has others, `vote.ballot.sync.b32`."""
    functions = tuple(
        each if each.body is None else replace(each, body=tuple(map(_in_order, each.body)))
        for each in module.functions
    )
    return replace(module, functions=functions)


def _in_order(item: Instruction | Label) -> Instruction | Label:
    if isinstance(item, Label):
        return item
    name = ordered(item.name)
    if name is None or name == item.name:
        return item
    return replace(item, modifiers=tuple(name.split(".")[1:]))


@lru_cache(maxsize=4096)
def found(name: str) -> tuple[Form, dict[str, str | None]] | None:
    """The form that an instruction's whole name has, and what its pattern named."""
    name_in_order = ordered(name)
    return None if name_in_order is None else _matched(name_in_order)


@lru_cache(maxsize=4096)
def ordered(name: str) -> str | None:
    """The name with its modifiers in the order in which a form has them; None without such one."""
    if _matched(name) is not None:
        return name
    opcode, *modifiers = name.split(".")
    if len(set(modifiers)) != len(modifiers):
        return None
    order = _ORDERS.get(opcode, ())
    ranks = {word: rank for rank, words in enumerate(order) for word in words}
    modifiers.sort(key=lambda word: ranks.get(word, len(order)))
    several = permutations(modifiers) if len(modifiers) <= _MOST else [tuple(modifiers)]
    for each in several:
        tried = ".".join((opcode, *each))
        if _matched(tried) is not None and _in_turn(each) == _in_turn(modifiers):
            return tried
    return None


def _in_turn(modifiers: Sequence[str]) -> list[list[str]]:
    """The modifiers whose order has a meaning."""
    return [[word for word in modifiers if kind.fullmatch(word)] for kind in _IN_TURN]


def _matched(name: str) -> tuple[Form, dict[str, str | None]] | None:
    opcode = name.partition(".")[0]
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
