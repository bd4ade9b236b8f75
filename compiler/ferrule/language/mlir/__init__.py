"""The kernel IR as MLIR: its text, and a second lowering through upstream's passes.

`module` writes text in upstream's dialects and needs no package for it.  `pipeline` hands such text
to upstream's passes and makes a `Body` of what comes back, as `language.codegen` makes one, so
that wrapper and export are the same.

`func`, `scf`, `arith`, `math`, `memref`, `gpu` and `ub` say most; `cf` ends a region early where a
check fails, and `llvm` has what the others lack: addresses that come from outside, atomics with an
order and a scope, `printf`, and NVVM's intrinsics.
"""
