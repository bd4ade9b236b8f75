"""The kernel language: what `@kernel` and `@jit` functions may say, and how it is compiled.

`lowering` turns Python's AST into the kernel IR (`ir`), `codegen` turns that into LLVM IR.
"""
