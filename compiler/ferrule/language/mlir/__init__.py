"""The kernel IR as MLIR: its text, and a second lowering through upstream's passes.

`module.print_host_module` and `module.print_device_module` write text in upstream's dialects and
need no package for it.  `pipeline` hands that to upstream's passes, and makes a `Body` of what comes
back, the same kind of body that `language.codegen` makes, so that wrapper and export are the same.

`func`, `scf`, `arith`, `math`, `memref`, `gpu` and `ub` say most; `cf` ends a region early where a
check fails, and `llvm` has what the others lack: addresses that come from outside, atomics with an
order and a scope, `printf`, and NVVM's intrinsics.
"""
