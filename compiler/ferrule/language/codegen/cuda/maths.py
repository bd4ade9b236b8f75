"""The functions of numbers on a GPU: PTX's approximations and conversions of floats of 8 bits, and
optionally libdevice's functions, op by op.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from llvmlite import ir

from ferrule.compiler import halves
from ferrule.compiler.cuda.libdevice import PREFIX
from ferrule.language.codegen.cuda import approximate, narrow
from ferrule.language.codegen.values import arithmetic
from ferrule.language.ir import ops
from ferrule.language.ir.scalars import EVERY
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.runtime.llvm.layouts import F32, F64
from ferrule.specs import BFloat16, DType, Float16, Float32, Float64
from ferrule.specs.deferred import dataclass

_NAMES: Final = frozenset(name for name, row in EVERY.items() if row.libdevice)
_DTYPES: Final = (Float32, Float64, Float16, BFloat16)
_ROUNDINGS: Final = ("floor", "ceil", "round", "trunc")
"""To whole numbers: one instruction, `cvt.rmi` and the like, where a formula has four to ten."""


def _has(op: ops.Unary | ops.Binary) -> bool:
    """Whether libdevice has a function for an op."""
    return op.op in _NAMES and op.result.type in _DTYPES


def _is_rounding(op: ops.Unary | ops.Binary) -> bool:
    """Whether a GPU has an instruction for it."""
    return op.op in _ROUNDINGS and op.result.type in _DTYPES


def _of_libdevice(
    emitter: Emitter, op: str, dtype: DType, operands: Sequence[ir.Value]
) -> ir.Value:
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


@dataclass(frozen=True, slots=True)
class DeviceMaths:
    """The functions that a GPU has, which the maths library does not expand, and their code.

    `libdevice`: whether to use NVIDIA's library; `narrow`: whether all architectures have the
    instructions that convert floats of 8 bits.
    """

    libdevice: bool = False
    narrow: bool = False

    def keeps(self, op: ops.Unary | ops.Binary | ops.Cast) -> bool:
        """Whether an op is not expanded, and `emit` emits it."""
        if isinstance(op, ops.Cast):
            return self.narrow and narrow.keeps(op)
        return approximate.keeps(op) or _is_rounding(op) or (self.libdevice and _has(op))

    def emit(
        self,
        emitter: Emitter,
        op: ops.Unary | ops.Binary | ops.Cast,
        dtype: DType,
        given: Sequence[ir.Value],
    ) -> ir.Value:
        """Emits a kept op."""
        if isinstance(op, ops.Cast):
            return narrow.emit(emitter, op, given[0])
        if isinstance(op, ops.Unary) and _is_rounding(op):
            return arithmetic.unary(emitter, op.op, dtype, given[0])
        emit = approximate.emit if approximate.keeps(op) else _of_libdevice
        return emit(emitter, op.op, dtype, given)
