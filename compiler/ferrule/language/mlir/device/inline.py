"""Pieces of PTX in a kernel, as `llvm.inline_asm`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from ferrule.language.ir import ops
from ferrule.language.mlir.device.arch import EmitOp
from ferrule.language.mlir.functions import FunctionText
from ferrule.language.mlir.types import element_type
from ferrule.specs import DType

_REGISTERS: Final = {"h": "i16", "r": "i32", "l": "i64", "f": "f32", "d": "f64"}


def _emit(f: FunctionText, op: ops.InlinePtx) -> str:
    """The result of a piece of PTX; Booleans are 0 and 1 in registers of 32 bits."""
    first, *others = [each.removeprefix("=") for each in op.constraints.split(",")]
    given = [
        _converted(f, f.values[value], _REGISTERS[letter], "zext")
        for value, letter in zip(op.given, others, strict=True)
    ]
    kind = _REGISTERS[first]
    types = ", ".join(f.t.types[value] for value in given)
    text = (
        op.text.replace("\\", "\\\\")
        .replace('"', "\\22")
        .replace("\n", "\\0A")
        .replace("\t", "\\09")
    )
    found = f.t.op(
        f'llvm.inline_asm has_side_effects asm_dialect = att "{text}", '
        f'"{op.constraints},~{{memory}}" {", ".join(given)} : ({types}) -> {kind}',
        kind,
    )
    assert isinstance(op.result.type, DType)
    wanted = element_type(op.result.type, f.spaces)
    if wanted == "i1":
        zero = f.t.integer(0, kind)
        return f.t.op(f'llvm.icmp "ne" {found}, {zero} : {kind}', "i1")
    return _converted(f, found, wanted, "trunc")


def _converted(f: FunctionText, value: str, kind: str, of_integers: str) -> str:
    given = f.t.types[value]
    if given == kind:
        return value
    name = of_integers if given.startswith("i") and kind.startswith("i") else "bitcast"
    return f.t.op(f"llvm.{name} {value} : {given} to {kind}", kind)


EMITTERS: Final[Mapping[type[ops.Op], EmitOp]] = MappingProxyType({ops.InlinePtx: _emit})
