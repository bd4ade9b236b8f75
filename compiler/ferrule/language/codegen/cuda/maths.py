"""The functions of numbers on a GPU: PTX's approximations and conversions of floats of 8 bits, and
optionally libdevice's functions."""

from __future__ import annotations

from collections.abc import Sequence

from llvmlite import ir

from ferrule.language.codegen.cuda import approximate, libdevice, narrow
from ferrule.language.ir import ops
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.specs import DType
from ferrule.specs.deferred import dataclass


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
        return approximate.keeps(op) or (self.libdevice and libdevice.keeps(op))

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
        source = approximate if approximate.keeps(op) else libdevice
        return source.emit(emitter, op.op, dtype, given)
