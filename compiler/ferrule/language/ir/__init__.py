"""The kernel IR: types, ops, builder, text and verifier.  Knows nothing of Python's AST or LLVM."""
