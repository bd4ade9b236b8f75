"""The cold functions that objects call: their names and types.

Support code is looked up by these names, also for objects that launch nothing, so that nothing else
of the launcher is imported here.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

from llvmlite import ir

from ferrule.runtime.llvm.layouts import I32, I64, PTR

OPEN: Final = "ferrule_cuda_open"
PUSH: Final = "ferrule_cuda_push"
POP: Final = "ferrule_cuda_pop"
ALLOW: Final = "ferrule_cuda_allow"
ALLOW_CLUSTERS: Final = "ferrule_cuda_allow_clusters"
REFUSED: Final = "ferrule_cuda_refused"
REGISTER: Final = "ferrule_cuda_register"
UNLOAD: Final = "ferrule_cuda_unload"
ENCODE: Final = "ferrule_cuda_encode"
CLEAR: Final = "ferrule_cuda_clear"
WRITE: Final = "ferrule_cuda_write"

PROTOTYPES: Final = MappingProxyType(
    {
        OPEN: ir.FunctionType(I32, [PTR, PTR, I32, PTR]),
        PUSH: ir.FunctionType(I32, [PTR, I32, I32, PTR]),
        POP: ir.FunctionType(I32, [PTR, PTR]),
        ALLOW: ir.FunctionType(I32, [PTR, PTR, I32, I32, PTR]),
        ALLOW_CLUSTERS: ir.FunctionType(I32, [PTR, PTR, PTR]),
        REFUSED: ir.FunctionType(I32, [PTR, PTR, PTR, PTR, PTR, PTR, I32, PTR]),
        REGISTER: ir.FunctionType(I32, [PTR]),
        UNLOAD: ir.FunctionType(I32, [PTR]),
        ENCODE: ir.FunctionType(I32, [PTR] * 8),
        CLEAR: ir.FunctionType(I32, [PTR, PTR, I64, PTR, PTR]),
        WRITE: ir.FunctionType(I32, [PTR, PTR, PTR, I64, PTR, PTR]),
    }
)
"""Each function by its name; `support` emits them."""
