"""All forms of instructions that are emulated; what matches none is refused by name."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from typing import Final

from ferrule.emulator.instructions import forms
from ferrule.emulator.instructions.forms import Form
from ferrule.emulator.ptx.module import Immediate, Instruction, PtxError
from ferrule.emulator.warps import layout
from ferrule.emulator.warps.emitter import Emitter, splat

for _part in (
    "control", "moves", "integers", "floats", "conversions", "logic", "lanes", "atomics", "system",
    "matrices", "tensor_cores", "clusters", "mbarriers", "async_copies", "bulk_copies",
    "warpgroups",
):  # fmt: skip
    import_module(f"ferrule.emulator.instructions.{_part}")

DECLARED: Final = """declare i32 @llvm.vector.reduce.umin.v32i32(<32 x i32>)
declare i64 @llvm.readcyclecounter()
"""


@lru_cache(maxsize=4096)
def found(name: str) -> tuple[Form, dict[str, str | None]] | None:
    """The form that an instruction's whole name has, and what its pattern named."""
    opcode, _, _ = name.partition(".")
    for form in forms.FORMS.get(opcode, ()):
        match = form.pattern.fullmatch(name[len(opcode) :])
        if match is not None:
            return form, match.groupdict()
    return None


def execute(e: Emitter, item: Instruction) -> None:
    """Write what an instruction does.  PtxError for one that is not emulated."""
    known = found(item.name)
    if known is None:
        raise e.refuse()
    form, named = known
    if form.operands and len(item.operands) not in form.operands:
        raise e.refuse(f"it has {len(item.operands)} operands")
    form.write(e, item, named)


def members(e: Emitter, item: Instruction) -> str:
    """The lanes that each lane waits for: a vector of masks."""
    name = item.name
    if item.opcode in ("shfl", "vote", "match", "redux") and "sync" in item.modifiers:
        return e.read(item.operands[-1], "b32")
    if item.opcode == "elect":
        return e.read(item.operands[-1], "b32")
    if name == "bar.warp.sync":
        return e.read(item.operands[0], "b32")
    if item.opcode == "barrier" and "aligned" not in item.modifiers:
        return e.spread(e.mask)
    if found(name) is None:
        raise e.refuse()
    place = e.op(f"getelementptr i8, ptr %w, i64 {layout.LIVE}")
    return e.spread(e.op(f"load i32, ptr {place}"))


__all__ = ["DECLARED", "Callable", "Immediate", "PtxError", "execute", "found", "members", "re", "splat"]
