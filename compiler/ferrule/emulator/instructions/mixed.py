"""Sums and products of float16 or bfloat16 with float32, from sm_100 on: widened, rounded once."""

from __future__ import annotations

from ferrule.emulator.instructions.floats import F32, narrowed, read_float, saturated
from ferrule.emulator.instructions.forms import Named, form, kind
from ferrule.emulator.ptx.module import Instruction
from ferrule.emulator.warps.emitter import Emitter

_MORE = r"(?P<sat>\.sat)?\.f32\.(?P<t>f16|bf16)"


@form("add", rf"(\.rn)?{_MORE}", 3)
@form("sub", rf"(\.rn)?{_MORE}", 3)
def _sum(e: Emitter, item: Instruction, named: Named) -> None:
    _, a = read_float(e, item.operands[1], kind(named))
    value = e.op(f"f{item.opcode} {F32} {a}, {e.read(item.operands[2], 'f32')}")
    _write(e, item, named, value)


@form("fma", rf"\.rn{_MORE}", 4)
def _product(e: Emitter, item: Instruction, named: Named) -> None:
    (_, a), (_, b) = (read_float(e, each, kind(named)) for each in item.operands[1:3])
    c = e.read(item.operands[3], "f32")
    value = e.op(f"call {F32} @llvm.fma.v32f32({F32} {a}, {F32} {b}, {F32} {c})")
    _write(e, item, named, value)


def _write(e: Emitter, item: Instruction, named: Named, value: str) -> None:
    if named["sat"]:
        value = saturated(e, value, F32)
    e.write(item.operands[0], "f32", narrowed(e, value, "f32"))
