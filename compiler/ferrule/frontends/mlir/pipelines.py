"""The passes that lower a module where none are given."""

from __future__ import annotations

from typing import Final

REACHED: Final = ("symbol-dce",)
"""What nothing public needs goes."""

TOSA: Final = (
    "func.func(tosa-optional-decompositions,tosa-to-linalg-named,tosa-to-linalg)",
    *("tosa-to-arith", "tosa-to-tensor", "tosa-to-scf"),
)
"""tosa to linalg, arith, tensor and scf."""

BUFFERIZE: Final = (
    *("inline", "symbol-dce"),
    "convert-elementwise-to-linalg",
    "convert-tensor-to-linalg",
    "eliminate-empty-tensors",
    "empty-tensor-to-alloc-tensor",
    "one-shot-bufferize{bufferize-function-boundaries=true "
    "function-boundary-type-conversion=identity-layout-map}",
    "canonicalize",
)
"""Tensors to memrefs, those of the function's arguments compact."""

DEALLOCATE: Final = ("buffer-deallocation-pipeline", "convert-bufferization-to-memref")
"""Every memref that the function allocates is freed, and its results are its caller's."""

VERIFY: Final = ("generate-runtime-verification",)
"""Assertions that operations keep to the sizes of what they are given."""

CHECKED_LOADS: Final = ("lower-affine",)
"""Loads and stores of affine to those of memref, of which VERIFY knows assertions."""

CHECKS_TO_LLVM: Final = ("convert-index-to-llvm", "reconcile-unrealized-casts")
"""What such assertions compare with, where the passes of a user have left it."""

GENERALIZE: Final = ("func.func(linalg-generalize-named-ops)",)
"""Operations of linalg with their indexing maps."""

_TO_LOOPS: Final = (
    *("canonicalize", "cse", "convert-linalg-to-loops", "scf-forall-to-for", "lower-affine"),
    *("canonicalize", "convert-vector-to-scf", "lower-affine"),
)

TO_BRANCHES: Final = (
    *_TO_LOOPS,
    *("memref-expand", "expand-strided-metadata", "lower-affine", "convert-scf-to-cf"),
    *("convert-complex-to-standard", "math-extend-to-supported-types"),
    "arith-emulate-unsupported-floats{source-types=bf16,f16 target-type=f32}",
)
"""linalg, affine, scf and complex to cf, memref and arith; arithmetic of narrow floats to that of
f32, as not every CPU has it."""

TO_LLVM: Final = (
    *("arith-expand{include-bf16=true}", "convert-math-to-llvm", "convert-math-to-libm"),
    *("convert-complex-to-llvm", "convert-vector-to-llvm"),
    *("finalize-memref-to-llvm", "convert-ub-to-llvm", "convert-index-to-llvm"),
    *("convert-arith-to-llvm", "convert-cf-to-llvm", "convert-func-to-llvm", "canonicalize", "cse"),
    "reconcile-unrealized-casts",
)
"""vector, math, complex, memref, arith, cf and func to the dialect llvm."""

OUTLINE: Final = (
    *("inline", "canonicalize", "cse", "gpu-kernel-outlining", "canonicalize", "cse"),
)
"""Each `gpu.launch` to a function of a `gpu.module`, and its launch."""

_INSIDE: Final = (
    *_TO_LOOPS,
    *("memref-expand", "convert-scf-to-cf", "expand-strided-metadata", "lower-affine"),
    *("arith-expand", "convert-gpu-to-nvvm{index-bitwidth=64}", "convert-vector-to-llvm"),
    *("convert-to-llvm", "canonicalize", "cse", "reconcile-unrealized-casts"),
)

TO_NVVM: Final = (f"gpu.module({','.join(_INSIDE)})",)
"""What is in each `gpu.module` to the dialects nvvm and llvm."""


def pipeline(*groups: tuple[str, ...]) -> str:
    """Passes as the text that MLIR reads."""
    return f"builtin.module({','.join(each for group in groups for each in group)})"
