"""The meaning of `fast` on an NVIDIA GPU: PTX's approximations, for float32.

Each is one instruction, or a few around one, like CUDA's intrinsics `__expf`, `__logf`, `__powf`, …
(PTX ISA, "Floating-Point Instructions"; CUDA C++ Programming Guide, "Intrinsic Functions", which
has their errors).  Subnormal numbers are kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Final

from llvmlite import ir

from ferrule.compiler import halves
from ferrule.language.ir import ops
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import F32
from ferrule.specs import BFloat16, DType, Float16, Float32

_Emit = Callable[..., ir.Value]

DTYPES: Final = (Float32, Float16, BFloat16)
"""The dtypes that are computed in float32."""


def keeps(op: ops.Unary | ops.Binary) -> bool:
    """Whether an op is not expanded, and `emit` emits it."""
    return op.fast and op.op in _FAST and op.result.type in DTYPES


def emit(emitter: Emitter, op: str, dtype: DType, operands: Sequence[ir.Value]) -> ir.Value:
    """A kept op; a 2-byte float is computed in float32."""
    if dtype is Float32:
        return _FAST[op](emitter.builder, *operands)
    wide = [halves.widen(emitter, dtype, operand) for operand in operands]
    return halves.narrow(emitter, dtype, _FAST[op](emitter.builder, *wide))


def _ptx(name: str) -> _Emit:
    """One instruction with one operand."""
    function = ir.FunctionType(F32, [F32])
    code = ir.InlineAsm(function, f"{name} $0, $1;", "=f,f", side_effect=False)
    return lambda b, x: b.call(code, [x])


_EX2, _LG2, _RCP = (_ptx(f"{name}.approx.f32") for name in ("ex2", "lg2", "rcp"))
_SIN, _COS = (_ptx(f"{name}.approx.f32") for name in ("sin", "cos"))


def _times(b: ir.IRBuilder, x: ir.Value, factor: float) -> ir.Value:
    return b.fmul(x, ir.Constant(F32, factor))


def _exp(b: ir.IRBuilder, x: ir.Value) -> ir.Value:
    return _EX2(b, _times(b, x, math.log2(math.e)))


def _tanh(b: ir.IRBuilder, x: ir.Value) -> ir.Value:
    """1 - 2 / (exp(2x) + 1); `tanh.approx` is less precise, and newer than the oldest
    architectures."""
    grown = b.fadd(_EX2(b, _times(b, x, 2 * math.log2(math.e))), ir.Constant(F32, 1.0))
    return b.fsub(ir.Constant(F32, 1.0), _times(b, _RCP(b, grown), 2.0))


def _sigmoid(b: ir.IRBuilder, x: ir.Value) -> ir.Value:
    return _RCP(b, b.fadd(ir.Constant(F32, 1.0), _exp(b, b.fneg(x))))


def _div(b: ir.IRBuilder, x: ir.Value, y: ir.Value) -> ir.Value:
    """A reciprocal is one instruction."""
    if isinstance(x, ir.Constant) and x.constant == 1.0:
        return _RCP(b, y)
    return b.fdiv(x, y, flags=("afn",))


_FAST: Final[MappingProxyType[str, _Emit]] = MappingProxyType(
    {
        "exp": _exp,
        "exp2": _EX2,
        "log": lambda b, x: _times(b, _LG2(b, x), math.log(2)),
        "log2": _LG2,
        "log10": lambda b, x: _times(b, _LG2(b, x), math.log10(2)),
        "sin": _SIN,
        "cos": _COS,
        "tan": lambda b, x: b.fmul(_SIN(b, x), _RCP(b, _COS(b, x))),
        "sqrt": _ptx("sqrt.approx.f32"),
        "rsqrt": _ptx("rsqrt.approx.f32"),
        "tanh": _tanh,
        "sigmoid": _sigmoid,
        "pow": lambda b, x, y: _EX2(b, b.fmul(y, _LG2(b, x))),
        "div": _div,
    }
)
"""The emitter of each op, for float32 operands."""
