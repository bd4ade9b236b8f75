"""A kernel as one LLVM function that executes a warp: `flow` has its blocks, `translate` writes it."""
