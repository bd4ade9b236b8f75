"""The kernel language: the subset of Python for `@kernel` and `@jit` functions, and its compiler.

`lowering` turns Python's AST into the kernel IR (`ir`), `codegen` turns that into LLVM IR.
"""
