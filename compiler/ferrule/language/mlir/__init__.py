"""The kernel IR as MLIR: its text, and a second lowering through upstream's passes.

`module` writes text in upstream's dialects and needs no package for it.  `pipeline` runs upstream's
passes on such text and makes a `Body` of the result, as `language.codegen` does, so that wrapper
and export are the same.

Most of the text uses `func`, `scf`, `arith`, `math`, `memref`, `gpu` and `ub`.  `cf` ends a region
early where a check fails.  `llvm` is used for what the others lack: addresses that come from
outside, atomics with an order and a scope, `printf`, and NVVM's intrinsics.
"""
