"""Conversions of floats of 8 bits by instructions: `cvt.rn.satfinite` and back, from sm_89 on.

PTX converts pairs; the upper one is 0 here (PTX ISA, "Data Movement and Conversion Instructions:
cvt").  The result of `satfinite` is that of a saturating `Cast`; that of a plain one, `mathlib`
derives from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from llvmlite import ir

from ferrule.compiler import halves
from ferrule.compiler.cuda import archs
from ferrule.language.codegen.cuda.nvvm import EIGHT_BITS
from ferrule.language.ir import ops
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import F32, I8, I16, I32
from ferrule.specs import Float16, Float32

_WORDS: Final = {dtype: f"{word}x2" for dtype, word in EIGHT_BITS.items()}
"""PTX's names of pairs."""
# Ada has the first instructions for conversions of floats of 8 bits (PTX ISA, `cvt`).
_LEAST: Final = 89


def have_instructions(targets: Sequence[str]) -> bool:
    """Whether all architectures have these conversions."""
    return all(archs.capability(arch) >= _LEAST for arch in targets)


def used_in(text: str) -> bool:
    """Whether LLVM text has one of them."""
    return any(word in text for word in _WORDS.values())


def keeps(op: ops.Cast) -> bool:
    """Whether there is an instruction for a cast."""
    source, target = op.operand.type, op.result.type
    if source is Float32:
        return op.saturate and target in _WORDS
    return source in _WORDS and target is Float32


def emit(emitter: Emitter, op: ops.Cast, operand: ir.Value) -> ir.Value:
    """A kept cast."""
    if op.operand.type is Float32:
        return _narrowed(emitter.builder, _WORDS[op.result.type], operand)  # type: ignore[index]
    return _widened(emitter, _WORDS[op.operand.type], operand)  # type: ignore[index]


def _narrowed(b: ir.IRBuilder, word: str, operand: ir.Value) -> ir.Value:
    kind = ir.FunctionType(I16, [F32, F32])
    text = f"cvt.rn.satfinite.{word}.f32 $0, $1, $2;"
    pair = b.call(ir.InlineAsm(kind, text, "=h,f,f"), [ir.Constant(F32, 0.0), operand])
    return b.trunc(pair, I8)


def _widened(emitter: Emitter, word: str, operand: ir.Value) -> ir.Value:
    b, kind = emitter.builder, ir.FunctionType(I32, [I16])
    # PTX converts to float16 alone. Each of these floats is one of float16, too, so this is exact.
    text = f"cvt.rn.f16x2.{word} $0, $1;"
    pair = b.call(ir.InlineAsm(kind, text, "=r,h"), [b.zext(operand, I16)])
    return halves.widen(emitter, Float16, b.trunc(pair, I16))
