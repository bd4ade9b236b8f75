"""The functions of numbers that a GPU has: PTX's approximations, and libdevice's where wanted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from llvmlite import ir

from ferrule.language.codegen.cuda import approximate, libdevice
from ferrule.language.ir import ops
from ferrule.runtime.llvm.emitter import Emitter
from ferrule.specs import DType


@dataclass(frozen=True, slots=True)
class DeviceMaths:
    """What stays an op of the maths library for a GPU, and its code.

    `libdevice`: whether functions are those of NVIDIA's library.
    """

    libdevice: bool = False

    def keeps(self, op: ops.Unary | ops.Binary) -> bool:
        """Whether an op stays an op of the library, for `emit`."""
        return approximate.keeps(op) or (self.libdevice and libdevice.keeps(op))

    def emit(
        self, emitter: Emitter, op: ops.Unary | ops.Binary, dtype: DType, given: Sequence[ir.Value]
    ) -> ir.Value:
        """An op that was kept."""
        source = approximate if approximate.keeps(op) else libdevice
        return source.emit(emitter, op.op, dtype, given)
