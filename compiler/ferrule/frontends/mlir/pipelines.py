"""The passes that lower a module if the user gives none."""

from __future__ import annotations

from typing import Final

REACHED: Final = ("symbol-dce",)
"""Removes symbols that nothing public uses."""

TOSA: Final = (
    "func.func(tosa-optional-decompositions,tosa-to-linalg-named,tosa-to-linalg)",
    *("tosa-to-arith", "tosa-to-tensor", "tosa-to-scf"),
)
"""Lowers tosa to linalg, arith, tensor and scf."""

BUFFERIZE: Final = (
    *("inline", "symbol-dce"),
    "convert-elementwise-to-linalg",
    "convert-tensor-to-linalg",
    "eliminate-empty-tensors",
    "empty-tensor-to-alloc-tensor",
    "one-shot-bufferize{bufferize-function-boundaries=true allow-return-allocs-from-loops=true "
    "function-boundary-type-conversion=identity-layout-map}",
    "canonicalize",
)
"""Converts tensors to memrefs; those of the function's arguments are compact."""

DEALLOCATE: Final = ("buffer-deallocation-pipeline", "convert-bufferization-to-memref")
"""Frees each memref that the function allocates; its results belong to its caller."""

VERIFY: Final = ("generate-runtime-verification",)
"""Makes operations assert that their operands' sizes fit."""

CHECKED_LOADS: Final = ("lower-affine",)
"""Lowers loads and stores of affine to those of memref, for which VERIFY makes assertions."""

CHECKS_TO_LLVM: Final = ("convert-index-to-llvm", "reconcile-unrealized-casts")
"""Lowers the comparisons of such assertions, where the passes of a user have left them."""

GENERALIZE: Final = ("func.func(linalg-generalize-named-ops)",)
"""Rewrites operations of linalg with their indexing maps."""

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
"""Lowers linalg, affine, scf and complex to cf, memref and arith, and arithmetic of narrow floats
to that of f32, because not every CPU has it."""

X86_TO_LLVM: Final = ("convert-vector-to-llvm{enable-x86=true}",)
"""Lowers the instructions of the dialect x86, for modules that have some."""

TO_LLVM: Final = (
    *("arith-expand{include-bf16=true}", "convert-math-to-llvm", "convert-math-to-libm"),
    *("convert-complex-to-llvm", "convert-vector-to-llvm"),
    *("finalize-memref-to-llvm", "convert-ub-to-llvm", "convert-index-to-llvm"),
    *("convert-arith-to-llvm", "convert-cf-to-llvm", "convert-func-to-llvm", "canonicalize", "cse"),
    "reconcile-unrealized-casts",
)
"""Lowers vector, math, complex, memref, arith, cf and func to the dialect llvm."""

OUTLINE: Final = (
    *("inline", "canonicalize", "cse", "gpu-kernel-outlining", "canonicalize", "cse"),
)
"""Turns each `gpu.launch` into a function of a `gpu.module`, and a launch of it."""

_INSIDE: Final = (
    *_TO_LOOPS,
    *("memref-expand", "convert-scf-to-cf", "expand-strided-metadata", "lower-affine"),
    *("arith-expand", "convert-gpu-to-nvvm{index-bitwidth=64}", "convert-vector-to-llvm"),
    *("convert-to-llvm", "canonicalize", "cse", "reconcile-unrealized-casts"),
)

TO_NVVM: Final = (f"gpu.module({','.join(_INSIDE)})",)
"""Lowers the contents of each `gpu.module` to the dialects nvvm and llvm."""


def pipeline(*groups: tuple[str, ...]) -> str:
    """Passes in the text form that MLIR reads."""
    return f"builtin.module({','.join(each for group in groups for each in group)})"
