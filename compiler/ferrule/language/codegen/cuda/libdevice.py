"""The functions of libdevice, for kernels with that option: op by op."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from llvmlite import ir

from ferrule.compiler import halves
from ferrule.compiler.cuda.libdevice import PREFIX
from ferrule.language.ir import ops
from ferrule.language.ir.scalars import EVERY
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import F32, F64
from ferrule.specs import BFloat16, DType, Float16, Float32, Float64

_NAMES: Final = frozenset(name for name, row in EVERY.items() if row.libdevice)
_DTYPES: Final = (Float32, Float64, Float16, BFloat16)


def keeps(op: ops.Unary | ops.Binary) -> bool:
    """Whether an op is not expanded, and `emit` emits it."""
    return op.op in _NAMES and op.result.type in _DTYPES


def emit(emitter: Emitter, op: str, dtype: DType, operands: Sequence[ir.Value]) -> ir.Value:
    """A kept op; a 2-byte float is computed in float32."""
    if dtype in (Float32, Float64):
        return _call(emitter, op, operands)
    wide = [halves.widen(emitter, dtype, operand) for operand in operands]
    return halves.narrow(emitter, dtype, _call(emitter, op, wide))


def _call(emitter: Emitter, op: str, operands: Sequence[ir.Value]) -> ir.Value:
    kind = operands[0].type
    assert kind in (F32, F64)
    name = f"{PREFIX}{op}{'f' if kind == F32 else ''}"
    function = ir.FunctionType(kind, [kind] * len(operands))
    return emitter.call(emitter.symbol(name, function), list(operands))
