"""The kernel IR: types, ops, builder, text and verifier.  It is independent of Python's AST and of
LLVM."""
