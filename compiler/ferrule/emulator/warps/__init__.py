"""A kernel as an LLVM function that executes a warp: `flow` has its blocks, `translate` its text."""
